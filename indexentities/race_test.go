//go:build race

package indexentities_test

// raceDetector makes long tests shorter.
const raceDetector = true
