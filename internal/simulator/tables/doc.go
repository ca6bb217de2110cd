// Package tables is the table service of the simulated account: tables, the entities stored in them, transactions, pages of
// queries, service properties and stored access policies. It holds the state; what needs none is in the packages below it.
//
// A Service is given calls with the Grant of their sender, and a Clock, Dice and Chaos to serve them by. It must not import
// another service, nor the account that they are parts of.
package tables
