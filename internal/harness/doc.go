// Package harness is what the tests of several packages need alike: processes that meet trouble, die and have successors,
// workers that carry out what is left, and the bookkeeping of what callers were told. Only tests import it.
package harness
