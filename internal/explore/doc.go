// Package explore runs the processes of a test in many orders of their storage calls: [Schedules] in as many orders as there are seeds,
// and [Interleavings] in every order that there is. Both run real code on the simulator of package storagetest.
package explore
