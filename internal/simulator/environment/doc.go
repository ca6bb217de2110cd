// Package environment holds what surrounds the services of the simulated account: the virtual Clock, the Dice from which all
// chance comes, and the Chaos that says what goes wrong.
//
// It is given a start, a seed and rates. It knows nothing of requests and answers, and imports no other package of this project.
package environment
