// Package encryption encrypts chosen properties of entities, of every type, in the program before they are sent: the guide's
// "Encrypting Table Data".
//
// # Stored rows
//
// An employee whose fields Number and Salary have the tag `encrypt:"true"`:
//
//	PartitionKey  RowKey        properties
//	Sales         empid_000223  Name="June Jones"  Number=X'545045...'  Salary=X'545045...'  _encryptionSeal=X'545045...'
//
// An encrypted property keeps its name and becomes Edm.Binary: a header of 88 bytes, a nonce of 12 bytes, the ciphertext, and a tag of 16 bytes. The
// header contains format version, data key id, salt and key commitment. The cipher is AES-256-GCM; its associated data are the
// header, scope, account, table, partition key, row key, property name and type, so a value cannot be moved elsewhere. The seal
// authenticates which properties are encrypted, the values of all others except Options.Unsigned, and which rows hold copies
// of the entity. A Registry stores the data keys, wrapped, in a table of its own. docs/reference/encryption.md describes
// the byte formats.
//
//	wrapping key         in Key Vault or in the program       KeyWrapper
//	  data key           random; wrapped, in a table          Registry
//	    keys of a write  HKDF-SHA256 with 32 bytes of random salt: one each for encryption, MAC and commitment
//
// # Guarantee
//
// A read returns values that somebody with the data key wrote under the entity's key in this account and table, or
// ErrNotAuthentic, whatever was changed in the row. A value cannot be moved to another row, property, table, account, type or
// scope, nor to another version of its own row. No encrypted or signed property can be added or removed, and no
// plaintext is accepted in place of a ciphertext. But a read does not detect that somebody who can write rows has
// restored an older state of a whole row, or has deleted a row. A read through an index returns no entity that
// belongs under another index key.
//
// A projection, or an index with Options.Project, reads only some properties. Each value read is checked, but the package cannot
// distinguish a property that was not read from one that somebody removed, so an entity read in this way cannot be written back.
// Merge, and conditions on encrypted properties, return tables.ErrInvalid. Keys are never encrypted: an index by an encrypted
// property stores its plaintext in the keys, unless the key function uses a Beacon.
//
// # Crashes
//
// Encryption is part of the write of the entity and leaves nothing of its own. CreateDataKey is one transaction. If Rewrap,
// Reencrypt or RemoveUnusedDataKey is interrupted, run it again.
//
// # Requests
//
//	Insert, Replace, Get, Query                           as without encryption
//	the first write in a TTL (default 5 minutes)          1 more, for the id of the current data key
//	the first use of a data key in a TTL                  2 more: its row, and the vault to unwrap it
//	a row with a data key that the registry does not have 1 more, once in 30 seconds
//	CreateDataKey                                         5, 2 of them to the vault; for the first data key 3, 1 of them to the vault
//	Rewrap                                                2; 2 to the vault for each key; 2 more for a key that changes, 1 of them to the vault
//	Reencrypt                                             1, 1 for each 1,000 entities, 1 for each transaction of 100 rows
//
// # When not to use it
//
// If encryption at rest is enough: the service always encrypts at rest, without charge. If properties must be
// queried by range or prefix. For values over 65,418 bytes, because property and header share the service's
// 64 KiB: use it with package widentities, or store the values in blobs with package largeentities and a
// Stream as its Options.Sealer.
//
// A wrapping key with a public half (RSA-OAEP) does not protect against somebody who can write the registry's table: they can
// insert a data key that they know. So the package accepts data keys wrapped by RSA only if RegistryOptions.Trusted lists their
// ids, or if TrustTable is set, which requires that only a separate credential can write that table. A data key wrapped with
// AlgorithmA256KW needs neither.
package encryption
