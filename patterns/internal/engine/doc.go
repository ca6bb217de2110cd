// Package engine plans and writes the changes of one repository. Package patterns adds the type of the entities and the exported methods;
// Verify, Repair and Rebuild, in that package, use parts of this one.
//
// In reading order, a change goes through
//
//	verbs.go          what the caller asked for becomes a Work
//	set.go            Run: the way from the Works of a change set to the transaction, and what makes it start over
//	companions.go     entities that patterns change in the same transaction
//	change.go         the checks before the first request; orphaned copies, and what of the entity is read again
//	complete.go       properties that follow from other entities
//	draft.go          the plan of a set: the rows of all members, shared rows, rows to remove
//	planning.go       the rows of one entity: its own and its copies
//	layout.go         an entity that is spread over several rows
//	operation.go      a row of the plan, and what its failure means
//	reservation.go    unique keys in other partitions, reserved before the transaction
//	reconcile.go      what is outside of the partition is made consistent with the entity, after the transaction or in a worker
//	outsidewrite.go   a copy in another partition, with its claim
//	batch.go          copies of several members, written together
//
// and a read through row.go and load.go. prior.go defines the state that an entity's Meta carries from one change to the next.
package engine
