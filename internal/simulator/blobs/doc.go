// Package blobs is the blob service of the simulated account: containers, block blobs and append blobs, uncommitted blocks,
// conditions, ranges, copies and listings.
//
// A Service is given calls with the Grant of their sender, a Clock, Dice and Chaos to serve them by, and the Authority that says
// whether the source of a copy may be read. It must not import another service, nor the account that they are parts of.
package blobs
