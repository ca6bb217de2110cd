//go:build !race

package interpartition_test

// raceDetector makes long tests shorter.
const raceDetector = false
