// Package engine plans and writes the changes of one repository. Package patterns adds the type of the entities and the exported methods;
// Verify, Repair and Rebuild, in that package, use parts of this one.
//
// In reading order, a change goes through
//
//	verbs.go          what the caller asked for becomes a Work
//	change.go         Run: the way from a Work to the transaction, and what makes it start over
//	complete.go       properties that follow from other entities
//	planning.go       the plan: the entity's own rows, its copies, shared rows, staged rows of other repositories
//	layout.go         an entity that is spread over several rows
//	operation.go      a row of the plan, and what its failure means
//	reservation.go    unique keys in other partitions, reserved before the transaction
//	reconcile.go      what is outside of the partition agrees with the entity, after the transaction or in a worker
//	outsidewrite.go   a copy in another partition, with its claim
//
// and a read through row.go and load.go. prior.go defines the state that an entity's Meta carries from one change to the next.
package engine
