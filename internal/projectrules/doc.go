// Package projectrules holds the project's own rules as tests: which package may import which, what may be compiled in,
// how many declarations a package has, that packages are documented by examples that run, that what the documents show is
// code that tests compile, and that names, links and request counts in them are true.
//
// A rule is a function from parsed sources (or documents) to the places that break it. Each is tested twice: on the project, where it must
// find nothing, and on small sources that break it, where it must find exactly these violations.
package projectrules
