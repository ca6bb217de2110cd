// Package harness has the helpers that the tests of several packages share: processes that meet faults, die and are replaced by others,
// workers that finish their work, and counts of the results that callers got. Only tests import it.
package harness
