//go:build !race

package logtail_test

// raceDetector makes long tests shorter.
const raceDetector = false
