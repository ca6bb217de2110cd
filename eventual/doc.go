// Package eventual carries out work that does not fit into one transaction, at least once and even if processes crash: queues of messages, Workers
// that handle them, and the intents of all patterns with effects outside of a partition. Package eventual/archive uses it to move entities. The
// guide calls this the "Eventually consistent transactions pattern".
//
// # Guarantee
//
// A message that Send has accepted never expires. It is handled at least once, or goes to the poison queue with the reason. Deliveries can be
// duplicated, reordered and delayed. While a handler runs, its worker keeps the message hidden from all other workers. If it cannot, the handler's
// context ends with the cause ErrLeaseLost before another process can get the message, and the library sends no further request under that context.
//
// A patterns.Store has a Queue for the intents of its repositories. If a writer dies, its intent stays hidden until its visibility timeout is over;
// then any worker whose program has made the same repositories reconciles the rows that it names with the entity as it is at that time. This
// assumes that clocks run at the same speed to within a sixth of the visibility timeout, and that a request arrives within that time or never.
//
// If a worker dies, other workers get its messages after the visibility timeout. The interrupted delivery counts toward MaxDequeues, so a message
// that kills its workers is poisoned. A worker that dies while it poisons a message can leave two entries with one ID. A sender that dies can leave
// the blob of a large body; SweepClaims removes it.
//
// # Requests
//
//	Send                     1; 2 with a large body
//	a message handled        1 for a poll, which gets up to 32 messages; 1 to delete the message; with a large body 2 more
//	  by its handler           1 for every half of the visibility timeout that it takes, 1 for each of its Steps
//	an intent                2, and those of the change: 1 to put it, 1 to delete it or, with Async, to make it visible
//	  finished by a worker     2 of the queue, 2 reads of the entity, 1 to 4 for each key, if the entity does not change
//	a message that failed    1 to hide it for RetryDelay
//	a message poisoned       2
//	an idle worker           1 in MaxPoll for each storage queue
//	Requeue                  1 for 32 entries; 2 for each requeued entry, or 4 if the message's body is in a blob; 1 for each
//	                         other entry
//	Purge                    1 for 32 entries; 1 for each entry
//
// # When not to use it
//
// If the effect must be visible together with the write that causes it, use a transaction with rows of one partition. Messages are neither in order
// nor delivered exactly once. For more than about 2,000 messages a second on one storage queue, set Shards.
//
// docs/reference/eventual.md has the argument for convergence; docs/reference/storage-format.md has the stored formats.
package eventual
