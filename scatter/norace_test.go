//go:build !race

package scatter_test

// raceDetector says that everything takes some ten times longer.
const raceDetector = false
