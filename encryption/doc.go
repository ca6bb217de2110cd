// Package encryption encrypts chosen properties of entities before they leave the program: the guide's "Encrypting Table
// Data", for properties of every type.
//
// # Stored rows
//
// An employee whose fields Number and Salary have the tag `encrypt:"true"`:
//
//	PartitionKey  RowKey        properties
//	Sales         empid_000223  Name="June Jones"  Number=X'545045...'  Salary=X'545045...'  _encryptionSeal=X'545045...'
//
// An encrypted property keeps its name and becomes Edm.Binary: a header of 88 bytes, ciphertext, a tag of 16. The header
// has format version, data key, salt and key commitment; AES-256-GCM takes all of it into its associated data, with scope,
// table, partition key, row key, property name and type. The seal authenticates the names of the encrypted
// properties, the values of those with `encrypt:"sign"`, and the rows that hold copies. Data keys
// lie, wrapped, in the table of a Registry. The byte formats are in format.go, value.go, seal.go, stream.go, registry.go.
//
//	wrapping key       in Key Vault, or local            KeyWrapper
//	  data key         random, wrapped, in a table       Registry
//	    keys of a write  HKDF-SHA256 under a random salt of 32 bytes: encryption, MAC, commitment
//
// # Guarantee
//
// What is read is what was written, under this key of this table, by somebody with the data key, or the read is
// ErrNotAuthentic: one error, whatever was done to the row. A value does not move to another row, property, table, type or
// scope, nor to another version of its own row; none is removed or added; plaintext does not pass for what was encrypted. A
// whole row can be put back to an older state of itself, or removed: no single row can show that. A read through an index returns no
// entity that has another index key.
//
// Where a projection, or an index that keeps less, leaves properties out, nobody can tell what was left out from what somebody
// removed: each value that is there is checked. Such a read is never written
// back. Merge is refused, and so are conditions on encrypted properties. Keys are never encrypted: an index by an encrypted
// property writes it in plain, unless its key is made by a Beacon.
//
// # Crashes
//
// Encryption is part of the write of the entity and leaves nothing behind. CreateDataKey is one transaction. Rewrap,
// Reencrypt and RemoveUnusedDataKey can be cut off anywhere, and be repeated.
//
// # Requests
//
//	Insert, Replace, Get, Query                         as without encryption
//	the first write in a TTL                            1 more: which data key is current
//	the first use of a data key in a TTL                2 more: its row, and the vault to unwrap it
//	a row with a data key that nobody knows             1 more, once in 30 seconds
//	CreateDataKey                                       5, 2 of them to the vault; the first one 3, 1 of them
//	Rewrap                                              3; 2 for each key, to the vault; 2 more if it changes, 1 to the vault
//	Reencrypt                                           1, 1 for each 1,000 entities, 2 for each that is written
//
// # When not to use it
//
// Where the service's own encryption at rest is enough: it is always on, and costs nothing. Where properties have to be
// queried by range or prefix. For values over some 65,000 bytes, without package widentities: property and header share the
// service's 64 KiB; a Stream, as the Sealer of package largeentities, keeps them in blobs.
//
// A wrapping key whose public half is known, RSA-OAEP, does not protect against somebody who can write the registry's table:
// they can put a data key there that they know. So such keys are accepted only by their ids, in RegistryOptions.Trusted, or with
// TrustTable, where that table is under a credential of its own. AlgorithmA256KW needs neither.
package encryption
