// Package accounts is for tests that go through the front door: it makes a simulated account, signs requests by code of its own,
// sends them and checks the answers.
//
// The packages below simulator use it in external tests only, since it imports simulator.
package accounts
