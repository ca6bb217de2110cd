// Package eventual carries out work that does not fit into one transaction, at least once and even if processes crash: messages on a
// queue with a Worker that handles them, and the intents behind all patterns with effects outside of a partition. Package
// eventual/archive moves entities with it. The guide calls it the "Eventually consistent transactions pattern".
//
// # Stored layout
//
// A queue orders is these storage resources:
//
//	orders                  the messages; with several shards orders-0, orders-1 and so on
//	orders-poison           the messages that failed too often
//	orders-claims/claims/*  the bodies that are too large for a message, one blob each
//
// The text of a message is the base64 of a JSON object, or that object as it is:
//
//	{"v":1,"id":"5LT4...","type":"ship","sent":"2026-11-20T13:00:00.5Z","body":{"order":7}}
//	{"v":1,"id":"OZQK...","type":"ship","sent":"2026-11-20T13:00:00.5Z","steps":["charge"],"claim":{"blob":"OZQK...","length":70000,"sha256":"9f86..."}}
//
// steps are those of Message.Steps that are done. Where the JSON would have more than 48 KiB, which is the service's 64 KiB in
// base64, a blob holds the body and claim says which. Members that this build does not know are passed over. An entry of the
// poison queue is a message of type tablepatterns.poison, whose body has the reason and the original text.
//
// # Guarantee
//
// A message that Send has accepted never expires and is handled at least once, or stands on the poison queue with the reason:
// nothing is dropped. Messages come in any order, and now and then twice. While a handler runs, its message is hidden from all
// others and kept so; when that fails, the handler's context ends, with the cause ErrLeaseLost, before another process
// can get the message, and no request under that context is sent any more.
//
// A Queue is the driver.IntentRunner of repositories: given as Schema.Intents, it carries their intents, and every worker
// of the queue, in any process that makes the same repositories, carries out those whose writers died. What an intent names
// agrees with its entity in the end, whatever crashes or comes between: docs/reference/eventual.md has the argument. It holds as
// long as clocks run alike to within a sixth of the visibility timeout, and requests arrive within that time or never.
//
// # Crashes
//
// A writer that dies leaves its intent hidden until the visibility timeout is over; then a worker makes what it names agree
// with the entity as it is by then.
//
// A worker that dies leaves its messages hidden until their visibility timeout is over; then others get them. The same
// delivery counts as one of MaxDequeues, so a message that kills its workers ends on the poison queue. A worker that dies
// between putting an entry on the poison queue and deleting the message leaves a second entry with the same ID in time. A
// sender that dies between storing a large body and putting its message leaves a blob; SweepClaims removes it.
//
// # Requests
//
//	Send                     1; 2 with a large body
//	a message handled        1 for up to 32 together, 1 to delete it; with a large body 2 more
//	  and its handler        1 for every half of the visibility timeout that it takes, 1 for each of its Steps
//	an intent                2, and those of the change: 1 to put it, 1 to delete it or, with Async, to show it
//	  carried out by a worker  2 of the queue, 2 reads of the entity, 1 to 4 for each key
//	a message that failed    1 to hide it for RetryDelay
//	a message poisoned       2
//	an idle worker           1 in MaxPoll for each storage queue
//	Requeue, Purge           1 for 32 entries; 2, or 1, for each entry that matches and 1 for each that does not;
//	                         2 more to requeue one whose body is in a blob
//
// # When not to use it
//
// For what must be seen at once with the write that causes it: rows of one partition go into one transaction. For order, or
// exactly once. For more than some 2,000 messages a second on one storage queue: give it Shards.
package eventual
