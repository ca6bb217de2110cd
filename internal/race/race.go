//go:build race

package race

// Enabled reports whether the program was built with the race detector, which makes everything several times slower.
const Enabled = true
