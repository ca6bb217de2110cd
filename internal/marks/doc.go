// Package marks decides how copies of an entity in other partitions stay right without a queue. It does no I/O: each function says what to do with
// a row, given what was read of it and of its entities. The model in internal/models/marks walks through every order of requests with
// these functions.
//
// A copy is settled or marked. A settled copy is current, always: whoever changes the entity marks the copies that the change makes wrong before it
// commits. A marked copy sends its readers to the entity. So a crash leaves rows that cost a reader one more request, and nothing that is wrong.
//
// # What is stored
//
//	_tpPartition, _tpPrimary  all copies     the owner: the key of the entity's own row
//	_tpVersion                settled, full  the ETag of the own row of which the copy was made; beside a mark it means nothing
//	_tpMark                   marked         the ID of the last change or job that has marked the row. Old content may stand beside it
//	_tpAcquirer               acquired       the ID of the change that takes the key for an entity
//	_tpBase                   acquired       the ETag of the entity from which that change started; absent for an insert
//	_tpNext                   passed         the entity to which a change set passes the key; the two above are then of that entity
//
// The row's Timestamp is the time of the last mark. Settling replaces the whole row. A copy whose properties the change leaves alone, and which does not
// store the ETag, needs no mark.
//
// # Order of requests
//
//  1. Mark, within the term: Plan and Groups give one transaction for each partition of an index, all in parallel. A key that a member has is held:
//     merge the mark. A key that a member takes is acquired: insert the row, marked. A key that passes: read the row and replace it, with both names.
//     A row in the way: read it, then the entities that Asks returns, and Decide.
//  2. Commit the transaction of the entities, each under its ETag, until Deadline. A transaction with an insert is sent once, since no ETag
//     guards it.
//  3. After a commit that is known to have succeeded: settle each row under the ETag of its mark. After one that is known to have failed, or was not
//     sent: read the entities of fresh rows again, and delete those rows whose entity lacks the key. After an unknown outcome: nothing. All this needs no
//     caller to wait for it.
//
// # While an index is being built
//
// Rows of keys that entities have are missing, so a row that is there may name another entity. Builds that write then, from before Rebuild until after it, mark and do
// not settle, release or delete rows of the index (step 3 leaves them out), and every reader follows them. Rebuild inserts the missing rows of a page,
// marked; reads the entities again; settles the rows of those that still have the key, under the ETags; and reports a row in the way that names another entity.
// The index is built when a Rebuild has reported nothing.
//
// # What a crash leaves
//
//	in 1                  marked rows; their entities are as before. A key that the change would take is refused to others until the mark has expired, or
//	                      until the acquirer's entity changes
//	in 2, no answer       marked rows; their entities are as before or as after the change. An insert that arrives late, within the term, finds its rows.
//	                      One that is sent twice, with a delete in between, leaves an entity without its row: Verify finds it Missing
//	in 3                  marked rows; their entities are as after the change
//	in Rebuild or Repair  marked rows without an acquirer
//
// # Who repairs it
//
// The next change of the entity marks and settles the rows again. Besides, a row that is marked for longer than Term and Grace is settled, or deleted, by
// a reader that has followed it, by Repair, and by the process itself if it still runs: row, then entities, then Agree, then the write under the row's
// ETag. What is damaged (Missing, Spurious, Different) is marked by Repair at once, so that readers are right from then on, and settled later.
package marks
