// Package eventual carries out work that does not fit into one transaction, at least once and even if processes
// crash. It has queues of messages, Workers that handle the messages, and the intents that all patterns with
// effects outside of a partition use. Package eventual/archive uses it to move entities. The guide calls this
// the "Eventually consistent transactions pattern".
//
// # Stored layout
//
// A queue orders is these storage resources:
//
//	orders                  the messages; with several shards orders-0, orders-1 and so on
//	orders-poison           the messages that failed too often
//	orders-claims/claims/*  the bodies that are too large for a message, one blob each
//
// The text of a message is a JSON object, in base64 or not
//
//	{"v":1,"id":"5LT4...","type":"ship","sent":"2026-11-20T13:00:00.5Z","body":{"order":7}}
//	{"v":1,"id":"OZQK...","type":"ship","sent":"2026-11-20T13:00:00.5Z","steps":["charge"],"claim":{"blob":"OZQK...","length":70000,"sha256":"9f86..."}}
//
// steps are the finished steps of Message.Steps. If the JSON would exceed 48 KiB, which is 64 KiB in base64, the
// service's limit, a blob holds the body and claim names it. Workers ignore members that they do not know. An entry
// of the poison queue is a message of type tablepatterns.poison, whose body has the reason and the original text.
//
// # Guarantee
//
// A message that Send has accepted never expires. It is handled at least once, or goes to the poison queue with
// the reason. Deliveries can be duplicated, reordered and delayed. While a handler runs, its worker keeps the
// message hidden from all other workers. If the worker cannot, the handler's context ends, with the cause
// ErrLeaseLost, before another process can get the message, and the library sends no further request under that
// context.
//
// A patterns.Store has a Queue for the intents of its repositories. The Queue stores intents as messages. If a writer dies,
// any worker of the Queue whose program has made the same repositories carries out the intent. Despite crashes and concurrent
// writers, the rows that an intent names converge to what their entity requires: docs/reference/eventual.md has the argument.
// It assumes that clocks run at the same speed to within a sixth of the visibility timeout, and that a request arrives within
// that time or never.
//
// # Crashes
//
// If a writer dies, its intent stays hidden until its visibility timeout is over; then a worker reconciles the rows
// that it names with the entity as it is at that time.
//
// If a worker dies, its messages stay hidden until their visibility timeout is over; then other workers get
// them. The interrupted delivery counts toward MaxDequeues, so a message that kills its workers ends on the
// poison queue. If a worker dies between putting an entry on the poison queue and deleting the message, the
// poison queue later gets a second entry with the same ID. If a sender dies between storing a large body and
// putting its message, the body's blob stays; SweepClaims removes it.
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
// If the effect must be visible together with the write that causes it: use a transaction, with rows of one
// partition. If you need messages in order, or exactly once. For more than about 2,000 messages a second on one
// storage queue: set Shards.
package eventual
