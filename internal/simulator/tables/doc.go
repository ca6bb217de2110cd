// Package tables implements the table service of the simulated account: tables, their entities, transactions, pages of
// queries, service properties and stored access policies. It has the state; the packages below it have the stateless parts.
//
// A Service gets calls with the Grant of their sender, and uses a Clock, Dice and Chaos. It must not import another service
// or package simulator.
package tables
