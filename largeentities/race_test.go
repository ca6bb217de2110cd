//go:build race

package largeentities_test

// raceDetector makes long tests shorter.
const raceDetector = true
