// Package engine plans and writes the changes of one repository. Package patterns adds the type of the entities and the exported methods;
// Verify, Repair and Rebuild, in that package, use parts of this one.
//
// In reading order, a change goes through
//
//	verbs.go          what the caller asked for becomes a Work
//	work.go           Work and Change; prior, the state that an entity's Meta carries from one change to the next
//	set.go            Run: the way from the Works of a change set to the transaction, and what makes it start over
//	companions.go     properties that follow from other entities; entities that patterns change in the same transaction
//	change.go         the checks before the first request; orphaned copies, and what of the entity is read again
//	draft.go          the plan of a set: the rows of each entity, shared rows, rows to remove, and what the failure of a row means
//	layout.go         an entity that is spread over several rows
//	outside.go        the keys of an entity's copies in other partitions
//	marking.go        these copies are marked before the transaction, and settled after it, in the background (rest.go)
//	reconcile.go      other effects outside of the partition are made consistent with the entity, after the transaction or in a worker
//
// and a read through load.go; follow.go reads through copies in other partitions, and agree.go makes them agree with their entities for
// jobs. jobs.go has what bulk writes and jobs such as Rebuild use.
package engine
