// Package newcomer tests the programs that a newcomer copies: those of README.md and of the tutorial, and the
// first example that pkg.go.dev shows of each package. Its test builds them in a module outside of the
// repository and runs them.
package newcomer
