// Package blobs implements the blob service of the simulated account: containers, block blobs and append blobs, uncommitted
// blocks, conditions, ranges, copies, listings, and what refuses requests on blobs: leases, access tiers, holds and snapshots.
//
// A Service gets calls with the Grant of their sender, and uses a Clock, Dice and Chaos, and the Authority that decides
// whether the source of a copy may be read. It must not import another service or package simulator.
package blobs
