// Package environment has what surrounds the services of the simulated account: the virtual Clock, the Dice that makes all
// random choices, and the Chaos that configures failures.
//
// It does not know requests and responses, and imports no other package of this project.
package environment
