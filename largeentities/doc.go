// Package largeentities stores large properties of entities in blobs, and in the entity a pointer to each blob: the guide's
// "Large entities pattern".
//
// NewProperty is for fields of type []byte and string, whose values are read into memory with the entity. NewStream is for
// fields of type Stream: values of any size, uploaded from a reader and read when they are opened, in constant memory.
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
// The pointer consists of "tp1", the length in bytes, the SHA-256 hash in hexadecimal, the blob's name and
// its content type, separated by spaces. It is stored in the property in place of the value, with another
// type: in place of a []byte or Stream (Edm.Binary) the pointer is an Edm.String, in place of a string
// (Edm.String) it is an Edm.Binary. A value of at most Options.Threshold bytes is stored in the entity, as
// without this package.
//
// The name of a blob consists of Options.Prefix (default: the names of table and property), a hash of the entity's key, and
// a random text. So a name is never reused, and a blob's content never changes. The metadata contain
// the entity's key (tpkey) and the account and table (tphome), in base64, so that Sweep can find the entity. All copies of an
// entity contain the same pointer.
//
// # Guarantee
//
// An entity never points to a missing or incomplete blob: the blob is stored before the transaction that writes the pointer, and
// deleted, in the background, after the transaction that removes it. There is no queue and no worker. A read returns the bytes that
// were written, or an error: each read of a whole value checks length and SHA-256, and returns the last bytes only if they are
// right. A read of a range checks only that the blob is the one to which the pointer refers, because no hash of a range is stored.
//
// A []byte, string or NewStreamBytes with the same bytes and content type as before keeps its blob, and nothing is uploaded. A
// Stream that was read and is written back unchanged keeps its blob, too; written into another entity, it is copied into a new
// blob. A new Stream from a reader or function gets a new blob, whatever its bytes.
//
// If a blob was replaced after a reader had read the entity, the library reads the entity again for a []byte
// or string. For a Stream it returns tables.ErrConflict; read the entity again in this case. If the blob of a
// []byte or string is missing although the entity has not changed, the read returns tables.ErrGarbled; that
// of a Stream returns tables.ErrConflict again. An entity whose []byte or string is lost can be neither read
// nor written until Discard has removed the value.
//
// # Crashes
//
// A crash leaves at most unreferenced blobs, one for each value of the change; so does a transaction with an unknown outcome. Sweep deletes
// them: run it from time to time, such as once a day. The service discards the uncommitted blocks of an interrupted upload after a week; no
// reader sees them.
//
// The library sends the transaction within Options.Deadline after the blob was stored, or not at all; then the change returns
// tables.ErrUnavailable. While another value of the same entity is still being uploaded, the library renews the blob's date with
// one request in each half of the Deadline. An upload may take any time. A transaction that inserts an entity with a blob is sent once.
//
// # Requests
//
//	Insert, or a change of the value   1 blob, 1 transaction
//	  of more than a block             1 for each Options.BlockSize, and 1 for the blob
//	  that was in a blob before        1 more, to delete that blob; 2 for a Stream, which nothing has read before
//	  that is refused                  2 more, to read the entity and delete the new blob
//	  in a Merge, Update, Upsert       what the verb reads, and 1 for each []byte and string in a blob
//	Delete                             1 transaction, 1 for each blob (2 for a Stream's)
//	a change of other properties       as without the pattern
//	Get                                1, and 1 for each []byte and string in a blob; none for a Stream
//	Stream.Open, OpenRange, Download   1; Download with Concurrency 1 for each Options.BlockSize
//	Discard                            1, 1 for each []byte and string in a blob (2 if the blob is lost); a Replace if one was lost
//	a Discard that deletes a blob      1 more, for the blob's metadata
//	SignedURL                          2; with a token credential 3
//	Sweep                              1 for each 5,000 blobs, 1 for each entity with an old blob (2 if the entity does not exist), 1 for each blob deleted
//
// # When not to use it
//
// If all values fit into the entity: binary values up to 64 KiB, texts up to 32,768 UTF-16 units, 1 MiB in all. For
// many values of medium size: widentities reads them in one request. For values that are appended to or changed in
// part, since each change writes the whole blob. For properties with the tag `encrypt`, because the blob would be in
// the clear: NewRepository refuses them. Options.Sealer encrypts blobs instead; then all values are stored in blobs,
// and the pointer begins with "tp2" and contains the value's length and the SHA-256 hash of the sealed bytes, which
// does not show whether two values are equal. For Streams in entities that archive.ToContainer archives: the archive
// would contain the pointer, but the blob is deleted with the entity, so archive.New refuses the repository.
// archive.ToRepository moves entities together with their blobs.
package largeentities
