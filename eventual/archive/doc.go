// Package archive moves entities to another table, partition or account, or into blobs, by the workers of an eventual.Queue. It is the
// archiver of the guide's "Eventually consistent transactions pattern".
//
// # Stored layout
//
// Mover.Move puts a message of type tablepatterns.move.<name> on the queue, whose body is
//
//	{"partition":"Sales","row":"empid_000223","incarnation":"5LT4...","to":["Sales","empid_000223"]}
//
// The member to is the key of the copy, or the name of the blob. In a repository the copy is an entity like any
// other. The copy's incarnation is derived from that of the entity: the first 26 characters of the base32 of
// the SHA-256 of "tablepatterns.move" and the entity's incarnation. ToContainer describes the blob.
//
// During a move the mover keeps rows that belong to no entity (_tpShared is "mover"). Queries, indexes and
// Verify skip them. Each row has the properties Version, Mover, Table, Partition, Row and Incarnation, which
// say what is moved, and these:
//
//	mark    beside the copy    U+FFFC movemark_<move>    Source: the ETag of the entity from which the copy was made
//	trace   beside the entity  U+FFFC movetrace_<move>   Write: the write id of the mark
//	record  beside the entity  U+FFFC moverecord_<move>  Source; Base: the ETag of the blob before it gets its content; Write: the
//	                                                     write id of the content; Round: 1, and 1 more each time it is replaced
//
// <move> is the base32 of the first 20 bytes of the SHA-256 of the mover's name, the source's table in lower
// case, the entity's partition key, row key and incarnation, and the strings of the member to. Each of these is
// preceded by its length in bytes and a space.
//
// # Order
//
// Into a repository, the worker does this:
//
//  1. Get the message, and read the entity.
//  2. Insert copy and mark in one transaction. Both have the same write id until somebody changes the copy.
//  3. Delete the entity and insert the trace in one transaction, under the ETag that the mark holds. Now the entity has moved.
//  4. Delete the mark, then the trace, then the message.
//
// Into a container, where no transaction covers a blob and a row:
//
//  1. Get the message, and read the entity.
//  2. Put a pending blob, which has the name of the move and no content, if there is no blob yet. Read does not return it.
//  3. Insert the record, which names the pending blob's ETag.
//  4. Replace the pending blob by the content, under that ETag.
//  5. Delete the entity and the record in one transaction, under the ETag that the record holds. Now the entity has moved.
//  6. Delete the message.
//
// If the service refuses one of these requests because somebody else wrote first, the worker reads the mark or record, then the entity,
// then the copy, and continues from there.
//
// With Along, the children of the entity are in the same two transactions: step 2 inserts the copies of the
// entity and of the children, and the mark holds the number of children (Along) and, as Source, a hash of all
// keys and ETags; step 3 deletes the entity and the children under the ETags that were read. In the guarantees
// below, the entity stands for the entity with its children: a change of a child counts as a change of the
// entity, at either end.
//
// # Guarantee
//
// An entity for which Move was called, and which nobody deletes, ends in exactly one place with its last
// content: at the destination or, with the reason on the poison queue, at the source. If users have changed
// both ends, it stays in both places. Between steps 2 and 3 (in a container, 4 and 5) the entity is in both
// places; at no time is it in neither. This holds despite crashes, and with any number of messages about the
// entity, which any number of workers may handle at once and in any order. What users do at either end during
// the move is never lost:
//
//   - An update of the entity is carried over to the copy unless somebody has changed the copy.
//   - An update or a delete of the copy stays. The worker deletes the entity if it has not changed since it was copied.
//   - A delete of the entity stays: the worker deletes its copy too, unless somebody has changed it.
//   - If users have changed both ends, the worker changes neither, and the message goes to the poison queue with a reason that says what
//     to do. In a container, a blob that a user has deleted, or changed without keeping its metadata, counts as changed at both ends,
//     because only the metadata shows from what the blob was made.
//   - A message names the incarnation of its entity. If the entity was deleted and another one inserted under its key, the worker changes
//     nothing. The same holds after another Mover has moved the entity back: at its destination it has another incarnation.
//
// If the destination already holds another entity under the copy's key, the worker does not change it unless
// Options.Replace is set. With Replace, that other entity can be lost even if a user deletes the moved entity
// during the move: the worker then deletes the copy or, in a container, the blob that the content was about to
// replace. In a container, a later message about the entity, such as a requeued one, also replaces a copy that
// a user has changed without keeping its metadata.
//
// If the response to a user's delete of the entity is lost and the entity no longer exists, the delete returns
// success, although a Mover may have moved the entity meanwhile. So delete the copy, too. An insert whose first
// attempt got no response can arrive a second time, after the move. Then the copy and the second entity both
// stay. If a message about the move still exists, that message goes to the poison queue; otherwise nothing
// reports the second entity. A new call of Move for it also ends on the poison queue.
//
// While two workers handle two messages about one entity, a copy that a user has deleted can reappear until the slower worker removes
// it.
//
// # Crashes
//
// If a worker dies, its message becomes visible again after the visibility timeout. The mark and the trace, or
// the record, show the next worker how far the move has come:
//
//	after            left                     the next worker
//	the read         nothing                  starts from the beginning
//	the copy         copy, mark               deletes the entity, or first brings the copy up to date
//	the delete       copy, mark, trace        deletes mark and trace
//	the mark         copy, trace              deletes the trace
//	the pending blob pending blob             inserts the record
//	the record       pending blob, record     puts the content
//	the content      blob, record             deletes entity and record
//
// With Options.Replace, the record can name the ETag of another blob instead of that of a pending one. If a
// user has deleted the entity, the next worker deletes the blob, unless a user has changed it, and then the
// record.
//
// Only a worker repairs these rows. As long as one of these rows exists, a message about the move, or its entry
// on the poison queue, exists, too, unless somebody has purged it. If a message was poisoned because it failed
// too often, requeue it: the worker continues where the last one stopped. A message that was poisoned because
// both ends had changed has left no row: if you requeue it, the move starts from the beginning.
//
// # Requests
//
//	Move                                1; 1 more for an entity that was read in part
//	a message handled                   7, to a repository and to a container
//	  with a concurrent update          5 more for each: read the mark, the entity, the copy; replace; delete. To a container 6
//	  with nothing to do                5
//	  with children, to a repository    1 more for each page of children, and 1 more for each page whenever both ends are read again
//
// In a repository whose patterns have effects outside of the partition, the insert and the delete make the
// additional requests of these patterns.
//
// # When not to use it
//
// If an entity has more than 99 rows at either end, with its children if it has any: the mark or the trace
// needs a row of the transaction, too. Within one partition of one table: use a transaction. If readers must
// never see an entity twice: for a moment it is in both places. To remove all entities of a period of time:
// drop the table of that period; see package highvolumedelete.
//
// Movers of one source need different names, even on different queues: the name says to which mover a mark,
// trace or record belongs.
package archive
