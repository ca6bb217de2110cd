// Package queues is the queue service of the simulated account: queues, their messages and receipts, and their stored access
// policies.
//
// A Service is given calls with the Grant of their sender, and a Clock, Dice and Chaos to serve them by. It must not import
// another service, nor the account that they are parts of.
package queues
