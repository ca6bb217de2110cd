// Package explore runs the processes of a test with many orders of their storage calls: [Schedules] runs one order for
// each seed, [Interleavings] runs every possible order. Both run the real code on the simulator of package storagetest.
package explore
