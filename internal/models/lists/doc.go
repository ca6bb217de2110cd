// Package lists is a model of package indexentities' lists in rows: a list has several rows, of which each takes a few members, and is
// written once for all members of a change set. It does no I/O. A test explores every order of requests, crashes and late requests in
// small worlds, and drops each rule of the protocol in turn.
//
// # The writer of the set
//
//  1. Read the members. Put one message, hidden: the members, and the lists in which they were and will be.
//  2. Commit all members in one transaction under their ETags.
//  3. Read all members again.
//  4. For each list that a member enters: read its rows, enter and remove the members in memory, and write the rows that differ. A new
//     row is inserted where none is; another one is replaced, or deleted if it is empty, under its ETag. With several members all rows
//     are written in one transaction; refused: one row at a time, and the list is read again after each. A member enters the first row
//     with room if no row has it; it leaves every row that has it.
//  5. The same for each list that members leave, and that was not written in 4 for them.
//  6. Read all members again. If one has changed, go round from 3.
//  7. Delete the message, unless a request was not answered.
//
// After an unknown outcome of 2 the writer sends nothing more, and the message stays hidden until its
// visibility timeout is over. A worker does 3 to 7.
//
// # What a crash leaves
//
// A crash before 2 leaves a message without work. A crash after 2 leaves members that are not in their lists,
// or still in former lists; a worker writes the lists. A crash between 4 and 5 leaves members that are in
// both lists.
//
// # Without a rule
//
//	ETags       a member of another change is lost, or comes back
//	Fresh       the same: a row is inserted over one that has been inserted meanwhile
//	OneByOne    a list that was refused together stays as it is
//	Everywhere  a member stays in a second row
//	Enter       a member is in no list for a moment
//	All         a list has a member whose change was not read again
//	Again       the same
//	Lease       a late write brings a member back after a worker has removed it
//	Unsure      the same, after the message was deleted
//
// # Not modelled
//
// Several lists in one transaction: each row has its own condition, so several lists are the same as one
// larger list; rows that have no room for one member; lists in blobs.
package lists
