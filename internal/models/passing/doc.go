// Package passing is a model of the protocol by which a unique key outside of the partition passes from one
// member of a change set, X, to another member, Y. It does no I/O. A test explores every order of requests,
// crashes, late requests and lost messages in small worlds, and drops each rule of the protocol in turn.
//
// # What is stored
//
//	entity   its ETag, and the unique key that it has
//	row      of a key: the copy and its claim, written in one transaction. The claim is derived from the owner and, for a reserved or
//	         marked key, from the set's change c, so the service checks in the transaction who may write the copy. A marked copy also
//	         names c and Y in a property of its own, and readers still see it as the copy of X
//	message  the intent of a change: its members, and the union of their old and new keys
//
// # The writer of the set
//
//  1. Read the members.
//  2. Put the message, hidden. It names X and Y, and the union of old and new keys.
//  3. For each key that is new to the set: reserve it. For each key that passes: mark it, 1 request, one transaction: delete the claim
//     (X, plain), insert the claim (X, c), merge into the copy: passes by c to Y, with the term of a reservation. It needs no read
//     before, since the plain claim is its condition. The keys of one partition go together, in one order for all sets.
//     Refused: the change is refused with ErrDuplicate; go to 7 if anything was prepared, otherwise delete the message.
//     Unknown outcome: send nothing more, and leave the message hidden until its time is over.
//  4. Commit all members in one transaction under their ETags. No attempt is sent after the term, less a margin, has passed since
//     before the first attempt of 3. Refused or too late: go to 7. Unknown outcome: as in 3.
//  5. Transfer each marked key, 1 request, one transaction: delete the claim (X, c), replace the copy by that of Y without the mark,
//     insert the claim (Y, plain). Fill each reservation. No key is free in between.
//  6. Read all members again. If one has changed, go to 7. Otherwise delete the message.
//
// # Any holder of the message of c: the writer after 3, a worker, or Repair's intent
//
//  7. Read the members, then for each named key decide by its row, and write it under the claim that the row shows:
//     - a member has the key, and the row is absent: insert copy and plain claim
//     - a member has it and owns the row, plain or of c: write the copy with a plain claim (give back, fill, update)
//     - a member has it, another member owns the row, marked by c: transfer, as in 5
//     - the row is marked or reserved by another change: leave it; that change's message writes it, and reads the members afterwards.
//     This is no failure, and the message need not remain for it
//     - a member has it, and the row is otherwise another's: the message remains (ErrDuplicate)
//     - no member has it, a member owns the row, marked or reserved by c: delete copy and claim
//     - no member has it, a member owns the row with a plain claim: read that member again; if it still lacks
//     the key, delete the copy under the ETag of before that read
//  8. Read all members again; if one has changed, go to 7. Delete the message, unless a key was another's.
//
// A message of another change never writes a marked copy, even if it names X and the key, and even if X was
// written since. A holder that finds the plain claim missing must read the copy before it restores the claim
// (claimOwn), and leave it if it is marked.
//
// # What a crash leaves
//
//	before 2                nothing
//	between 2 and 3         the message: a worker finds nothing to do
//	between 3 and 4         marked and reserved keys. Nobody can take them. A worker gives the marked keys back to X and frees the others
//	between 4 and 5         Y has the key, and the row is X's, marked. Nobody can take it. A worker transfers it to Y
//	between 5 and 6         the message: a worker finds the copies as they should be, and reads the members again
//	after 3, message lost   marked rows. When the term and a grace have passed since the row's Timestamp, Repair puts an intent with the
//	                        id c, which names X, Y and the key, and a worker does 7 and 8
//
// # Requests
//
// Each marked key needs 1 request for the mark and 1 for the transfer. A reservation and its fill would need
// 2, and the removal of the key from X 3.
//
// # Without a rule
//
//	Mark      two entities get the key: the old owner's message deletes the copy before the set has taken it over
//	OnlyOwn   two entities get it: another message of X gives the mark back, or deletes the copy
//	Transfer  two entities get it: it is free between the release and the take
//	GiveBack  a refused set leaves its marks
//	Again     a stale copy
//	Has       two entities get it: a worker deletes the copy that the owner has again
//	Lease     a copy is wrong, or two entities get it: the transaction arrives after a worker has given the key back
//	Deadline  the transaction comes after Repair's intent has given the key back: Y never gets its copy
//	Taker     two entities get it: Repair's intent deletes the copy, since it does not read Y
//
// # Not modelled
//
// Several keys of one entity; inserts and deletes as such (an entity without keys stands for one that does not exist); clocks; a
// retry of a refused change, which begins again with a new id, new reservations and new marks.
package passing
