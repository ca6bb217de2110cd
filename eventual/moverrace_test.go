//go:build race

package eventual_test

const moverRace = true
