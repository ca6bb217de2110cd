//go:build race

package denormalization_test

// raceDetector makes long tests shorter.
const raceDetector = true
