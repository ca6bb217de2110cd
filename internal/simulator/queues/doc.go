// Package queues implements the queue service of the simulated account: queues, their messages and receipts, and their stored
// access policies.
//
// A Service gets calls with the Grant of their sender, and uses a Clock, Dice and Chaos. It must not import another service
// or package simulator.
package queues
