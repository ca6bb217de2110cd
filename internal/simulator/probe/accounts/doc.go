// Package accounts helps to test the simulator through Simulator.Do: it makes an account, signs requests by code of its own,
// sends them and checks the responses.
//
// Packages below simulator use it only in external tests, because it imports simulator.
package accounts
