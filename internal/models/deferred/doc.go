// Package deferred is a model of a writer that returns before the closing read of its intent, and of keys that a writer leaves to a
// worker under the same message. It does no I/O. A test explores every order of requests, crashes and late requests in small worlds,
// and drops each rule of the protocol in turn. Its unique keys with claims stand for places outside of the partition that one
// entity at a time may have and that are written under a condition; copies in indexes are none of them (package marks).
//
// # The close in the background
//
//  1. Wait until no background holder of this process works for an entity of this change. Other entities do not wait.
//  2. Read the members. Put one message, hidden: the members, and the union of their old and new keys. The lease begins here.
//  3. Unique keys: reserve the new ones, under the claim of this change.
//  4. Commit all members in one transaction under their ETags, before the deadline of the reservations.
//  5. Apply once, still before the writer returns, with the members as committed: first fill the fresh keys, under the claim of this
//     change; then write the keys that stay; then remove the released ones. A released unique key costs a read of its row and of its
//     owner, and is deleted under the row's ETag of before that read.
//  6. Return to the caller. A background holder has the same message and the same lease, and renews it.
//  7. Background: read all members again. One has changed: forget which keys are fresh, and go round: reconcile the named keys with
//     what was read, and read all members again.
//  8. Background: delete the message. If a request was not answered, leave the message hidden until its time
//     is over. If a key belongs to another entity, show the message to the workers.
//
// A change that is refused after 3 does not return before its message is handled: otherwise its reservations would refuse the keys to
// the caller's next change.
//
// How it combines with the other rules:
//
//   - Unique. The removal of released keys belongs to 5, not to the background: otherwise the caller's next
//     change, which may be of another entity and does not wait, fails at a key that the caller has released.
//     Only 5 relies on keys being fresh: in a later round, another process may have freed and taken the key,
//     so the holder reads the row first. The deadline ends with 4; it does not limit the background.
//   - Several members. The wait is for every member: a change waits if any of its members has a background
//     holder. 7 reads all members again, also the members without a key in the message.
//   - Lease. The background holder sends under the lease of 2, whose context must not be the caller's, since
//     the caller's context ends when the call returns. When the lease is lost the holder stops and deletes
//     nothing. The next change need not wait for it any longer.
//   - A shutdown either waits for the background holders, or shows their messages to the workers.
//
// # Some keys at once, the rest by a worker, under one message
//
// The steps 1 to 4 are the same. Then
//
//  5. Write the keys of the synchronous patterns, as above.
//  6. Show the message to the workers with a marker: the ETag of the entity from which these keys were
//     written. There is no marker if the entity does not exist, or if a request was not answered. Return.
//     There is no closing read: the worker makes it.
//  7. Worker: read the entity. Its ETag is the marker's: write the rest of the keys. Otherwise write all keys of the message.
//  8. Worker: read the entity again. It has changed: write all keys of the message, and repeat 8. Delete the message.
//
// A message with several members has a marker for each, and a worker compares each. The model has one.
//
// # What a crash leaves
//
//	before 2         nothing
//	between 2 and 3  the message: a worker finds nothing to do
//	between 3 and 4  reservations and the message: a worker frees them
//	between 4 and 5  the entity without its copies, and the message: a worker writes all of them
//	between 5 and 8  the copies are right, unless a concurrent writer came; the message, without or with a marker: a worker reads the
//	                 entity again, and writes what differs
//
// The worker gets the message when its visibility timeout is over, or at once after a shutdown that shows the
// message.
//
// # What every final state must meet
//
// Every copy matches the current entity. In no state do two entities have the same unique key. While nobody
// but the caller's process is at work, and no request is unanswered, the caller reads its own last write in
// every copy that the writer makes itself, and no change of the caller fails at a key that an earlier change
// has released.
//
// # Without a rule
//
//	Wait     the background holder of a change goes round for the next one, and overwrites a copy of the one after that
//	Again    a stale copy: a concurrent writer's holder came before this one's write
//	Lease    a stale copy: a holder without its lease writes after the worker
//	Unsure   a stale copy: an unanswered request arrives after the message was deleted
//	Release  the caller's next change is refused the key, or finds the old copy
//	Present  a stale copy: an entity is deleted, inserted and deleted, and the marker of the first delete is taken for the last
//	Whole    a stale copy of a synchronous pattern: the entity has changed, and the worker writes the rest only
//
// # Not modelled
//
// Lists; a key that passes between members; deadlines; several processes of one caller.
package deferred
