// Package marks is a model of marked copies: an index in other partitions without a queue (package internal/marks, whose functions the model
// calls). It does no I/O. A test explores every order of requests, crashes, repeated and late requests in small worlds, and drops each rule of
// the protocol in turn.
//
// # What is modelled
//
//	changes   inserts, moves, changes that keep the key, and deletes, of one entity or of a set of two, whose keys may pass
//	index     two keys, in one partition, so that one transaction writes both rows, or in two (spread keys). Copies are full, or store
//	          only the owner, as in a list with one row for each value and entity
//	reader    finds the entity of a key, and settles the row if its mark has expired
//	repairer  begins with any row that is marked and expired, or damaged
//	Verify    compares a row with an entity: it must find nothing, since nothing is wrong
//	Rebuild   of a page of entities whose rows do not exist yet
//	damage    somebody deletes a row, or restores an old one
//	old build a process that does not know the index
//
// A process may die at any step. A write may be applied, and its answer be lost, so that it is sent again; a copy of it may arrive
// later; or it gets no answer and arrives later, or never; or a proxy sends a commit twice and returns the second answer. A commit does not
// arrive after its term. At most one request is late at a time.
//
// # What holds in each state
//
//	settled   a settled row names an entity that exists, has the key and, for a full copy, has that version
//	found     an entity that has a key is named by the row of the key, from the end of Rebuild on
//	unique    no two entities have one key
//	read      what a reader answers was true at a moment between its beginning and its end
//
// From each state, a state can be reached in which no row is marked. Rows that somebody has damaged are left out until Repair has marked them.
//
// # Without a rule
//
//	Hold               settled: a commit leaves a settled copy of the old version
//	WaitTerm           found: another entity takes the row, and then the first change commits
//	InsertByTerm       found: an entity exists for the moment, so its second insert looks over; it is deleted, and that insert commits
//	AtBase             found: an insert marks the row of its entity, which exists; the entity is deleted, the insert commits, and the delete removes the row
//	InsertUnderWay     found: the same, with an entity that another insert under way has inserted after it was read
//	StaysNamed         found: the row names another entity when the acquirer commits
//	FreshOnce          found: after a lost answer, a change believes that nobody relies on a row that it took over, and releases it
//	InsertMissing      settled: Rebuild inserts the row that a change under way would have held
//	WriteNext          found: the row still names only the giver when the taker has the key
//	ReleaseFresh       found: a refused change deletes a row that another change has made its own
//	LookBeforeRelease  found: a proxy sends a commit twice and returns the refusal, and the change releases the row of its own entity
//	SettleCommitted    settled: a refused change settles what has not been committed
//	LeaveUnknown       found: a row is released, and then the commit arrives
//	FollowMarks        read: the owner of a marked row, which lacks the key
//	ReadNext           read: none, though the taker has the key
//	RowAgain           read: none, though somebody had the key all the time: it passed between the reads of the row and of the giver
//	TidyAfterTerm      settled, found: a row is tidied, and then its change commits
//	ConfirmMissing     Verify reports a row that its entity needed for a moment only
//	MarkDamage         settled: Repair settles a row whose change under way had held it before the damage
//	CommitInTerm       settled, found: a row is tidied, and then its change commits
//	InsertOnce         found: an entity is inserted, deleted, and inserted again by a copy of the request, without its row
//	OneTransaction     unique: the taker has the key before the giver has given it up
//	SettleUnderMark    settled: a change settles a row that a later change has marked
//	RowThenEntity      settled: a job reads the entity, and then a row that a change has marked since
//	ExpiryFirst        found: the change commits after the entity was read, its term passes, and the row is tidied
//	RebuildAgain       settled: the entity has changed between the read of the page and the insert of the row
//	LeaveUnbuilt       found: a change holds, and then deletes, a row that another entity or an insert has put in the way of its own
//	EveryWriter        settled: a build that does not know the index commits
//
// # Not modelled
//
// AskForMarked and EvaluateAgain, which are about queries of many rows: only walks of the code show them. Two pages of one Rebuild; several keys of one
// entity in one index; clocks: a term passes at any moment, and a mark has expired when the terms of all who have marked the row have passed.
package marks
