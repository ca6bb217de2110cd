// Package deferred is a model of rows in other partitions that are written under an intent, such as those of relationships.Members: a
// row for each entity at its parent, and the number of them, which all entities of the parent share. It does no I/O. A test explores
// every order of requests, crashes and late requests in small worlds, and drops each rule of the protocol in turn.
//
// # The protocol
//
//	writer   1. read the members of the change set
//	         2. put the message, hidden: the members, and the rows that they have before or after the change, but not both. Each request
//	            from here on is sent under the lease of the message
//	         3. wait until no background holder of this process works for a member
//	         4. commit all members in one transaction under their ETags. Refused: delete the message
//	         5. for each named row: read it; if the member, as committed, requires another, read the number, and write both in one
//	            transaction under their ETags. Refused: repeat for this row
//	         6. return to the caller. The same holder goes on in the background
//	         7. read all members again. Repeat 5 and 7 for those that have changed
//	         8. delete the message. If a request got no answer, leave the message hidden until its time is over
//	worker   get a message, read its members, and do 5, 7 and 8
//	Rebuild  compare rows with their entities, put a message that names those that are wrong, and do what a worker does
//
// A writer that leaves some patterns to workers (patterns.Async) does 5 for the others, shows the message, and returns.
//
// # What a crash leaves
//
// Between 2 and 4 the message, for which a worker finds nothing to do; after 4 the message and rows, of which a worker writes those that
// differ.
//
// # What holds
//
// In each state, a number is that of the rows. In each final state, each entity has a row at its parent and at no other. While only the
// caller's process is at work, and no request is unanswered, the caller reads its own last write. After Rebuild has put its message, the
// same holds for rows that were wrong before.
//
// # Without a rule
//
//	Intent  wrong rows: the writer, or Rebuild, dies, and no process writes the rest
//	Named   a wrong row: a holder writes a row that only the message of a later change named, after that was handled
//	ETags   a wrong number: two entities come to a parent at once
//	Again   a wrong row: a concurrent writer's holder came before this one's write
//	Wait    the background holder of a change goes round for the next one, and overwrites a row of the one after that
//	Whole   a wrong row of the pattern that is not left to workers: the entity has changed, and the worker writes the others only
//	Lease   a wrong row: a commit, or a holder without its lease, writes after the worker
//	Unsure  a wrong row: an unanswered commit arrives after the message was deleted
//
// # Not modelled
//
// What else a holder writes: copies (packages holder and fanout), the calls of a handler (outbox), blobs. Copies in indexes have no intent
// (marks). Clocks; a message that was put twice.
package deferred
