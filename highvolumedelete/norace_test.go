//go:build !race

package highvolumedelete_test

// raceDetector makes long tests shorter.
const raceDetector = false
