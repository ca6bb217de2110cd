// Package sets is a model of a change set whose members have copies in one other partition. The set reserves
// and writes these copies together. It does no I/O. A test explores every order of requests, crashes and late
// requests in small worlds, and drops each rule of the protocol in turn.
//
// # The writer of the set
//
//  1. Read the members. Put one message, hidden: the members, and the union of their old and new keys.
//  2. Unique keys: reserve the new ones of all members in one transaction, each with its claim. Refused: reserve them one by one. One is
//     another's: the change is refused, and the writer handles the message, which frees the others.
//  3. Commit all members in one transaction under their ETags. Refused: as in 2.
//  4. Write the new copies of all members in one transaction: only those that this change has added, each over its reservation or, if
//     the keys are not unique, where nothing is. Refused: go on, they are written one by one in 5.
//  5. For each named key that was not written in 4: read its row; write, fill or remove the copy under its claim. Before a unique key
//     is removed, its owner is read again, and the copy is deleted under its ETag.
//  6. Read all members again. If one has changed, go round: 5 for all named keys, also those of 4.
//  7. Delete the message, unless a request was not answered or a key is another's.
//
// After an unknown outcome of 2, 3 or 4 the writer sends nothing more, and the message stays hidden until its
// visibility timeout is over. A worker reads the members, and does 5 to 7.
//
// # What a crash leaves
//
// A crash before 3 leaves reservations, which a worker frees. A crash after 3 leaves the members without
// their copies, which a worker writes one by one. A crash after 4 leaves only the message.
//
// # Without a rule
//
//	Claims    a joint write overwrites the copy of another entity, and a later round deletes it
//	OneByOne  one key of the joint write is another's, and no copy is written
//	Anew      a stale copy: a later round leaves out what was written together
//	All       a stale copy of a member that is not read again
//	Handle    a refused set leaves its reservations
//	Own       two entities get one key: a holder frees the reservation of another change, which then commits
//	Lease     a joint write arrives after a worker: a copy or reservation of nobody
//	Unsure    the same, after the message was deleted
//
// # Not modelled
//
// Keys that pass between members (package passing); lists; more than one partition outside.
package sets
