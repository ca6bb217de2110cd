//go:build race

package logdata_test

// raceDetector makes long tests shorter.
const raceDetector = true
