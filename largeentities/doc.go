// Package largeentities keeps large properties of entities in blobs, and in the entity a pointer to each: the guide's "Large
// entities pattern".
//
// NewProperty is for fields of type []byte and string, whose values are held in memory. NewStream is for fields of type
// Stream: values of any size, written from a reader and read as far as they are asked for, in constant memory.
//
// # Stored layout
//
// An employee of department Sales with a photo of 34,816 bytes:
//
//	PartitionKey  RowKey        Photo
//	Sales         empid_000223  tp1 34816 9f86...0a08 Employees/Photo/ZPQP...UVIA/5LT4... image/jpeg
//
//	blob                                  content    metadata
//	Employees/Photo/ZPQP...UVIA/5LT4...   the photo  tpkey=U2Fs...  tpterm=600  tpsha256=9f86...0a08  tphome=...
//
// The pointer is "tp1", length, SHA-256 in hexadecimal, the blob's name and its content type, with a space between. It takes
// the place of the value and has the other type: a []byte or a Stream is Edm.Binary within the entity and its pointer
// Edm.String, a string Edm.String and its pointer Edm.Binary. A value of up to Options.Threshold bytes stays in the entity, as if
// there were no pattern.
//
// A blob's name is Options.Prefix, or the table's and the property's name, a hash of the entity's key, and the id of the change
// that wrote it, so it is never used again and its content never changes. tpkey is the entity's key and tphome account and table, in
// base64; Sweep finds the entity by them. Copies of an entity, in its partition and in others, hold the same pointer.
//
// # Guarantee
//
// An entity never points at a blob that is not there whole: it is stored before the transaction that points at it, and deleted
// after the one that does so no longer. The order is: intent, which names the old blob and the new; new blob; transaction; copies in
// other partitions; old blob; message. What was written is read back equal, or with a typed error: length and SHA-256 are checked on
// every reading of the whole, and the last bytes are handed over when they are right only. A range is checked to come from the blob
// that the pointer means; its own hash is stored nowhere.
//
// A value that did not change, of the same length and SHA-256, keeps its blob: nothing is sent. A Stream that was read and is
// written back keeps it, too; written into another entity, it is copied to a blob of that one's own.
//
// A reader who meets a blob that was replaced since the entity was read reads the entity again, by itself where the value is a
// []byte or string. A Stream says tables.ErrConflict then: read the entity again. Where the row is still the same, the blob is lost,
// and it is tables.ErrGarbled. An entity with a []byte or string that is lost cannot be read nor written until Discard has
// taken the value away.
//
// # Crashes
//
// A crash at any point leaves at most a blob that nothing points at, and a message that names it; a worker of the queue deletes
// those of the named blobs at which the entity does not point by then. Where the message is lost or poison, Sweep finds the
// blob. Blocks of an upload that was cut off are seen by nobody, and the service drops them after a week.
//
// The transaction is sent within Options.Deadline after its blob was stored, or never: then it is eventual.ErrLeaseLost. While
// another value of the same entity is still being sent, the blob is made younger by a request in each half of the Deadline. An upload can
// take any time: the message is kept hidden meanwhile.
//
// # Requests
//
//	Insert, or a change of the value   1 blob, 1 transaction, 2 of the queue, 1 to read again
//	  of more than a block             1 for each Options.BlockSize, and 1 for the blob
//	  that had a blob before           1 more, to delete it
//	  in a Merge, Update, Upsert       what these read first, and 1 for each []byte and string in a blob
//	the same with Async                1 less to read again, and the delete is the worker's
//	Delete                             1 transaction, 2 of the queue, 1 for each blob, 1 to read again
//	a change of other properties       as without the pattern
//	Get                                1, and 1 for each []byte and string in a blob; none for a Stream
//	Stream.Open, OpenRange, Download   1; Download with Concurrency 1 for each Options.BlockSize
//	Discard                            1, 1 for each []byte and string in a blob, 2 if it is lost; then a Replace where one was
//	  and a worker deletes the old one 1 more, for the blob's metadata
//	SignedURL                          1; with a token credential 2
//	Sweep                              1 for each 5,000 blobs, 1 for each entity with an old one, 1 for each deleted
//
// # When not to use it
//
// For values that fit: up to 64 KiB a property, 1 MiB an entity; Threshold leaves them there. For many values of middle size,
// wide entities are read in one request. For values that are appended to, or changed in part: each change writes all of it. For
// a property that encryption encrypts in its row: the blob would hold it in clear, and the repository is refused. Options.Sealer
// encrypts the blob instead: then all values go out, and the pointer is "tp2", with the length of the value and the SHA-256 of
// the sealed form, which tells nobody whether two values are equal.
// For Streams in entities that archive.ToContainer is to archive: an archived entity has a []byte or string in full, and
// of a Stream it would have the pointer, whose blob goes with the entity, so archive.New refuses the repository.
// archive.ToRepository moves such entities, and copies the blobs.
package largeentities
