//go:build !race

package patterns_test

// raceDetector makes long tests shorter.
const raceDetector = false
