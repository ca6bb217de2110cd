// Package encryption encrypts chosen properties of entities, of every type, in the program before they are sent: the guide's "Encrypting Table
// Data".
//
// A field with the tag `encrypt:"true"`, or a property that Options.Resolver chooses, is stored as Edm.Binary with 128 bytes more than its padded
// plaintext. All other properties are signed, except Options.Unsigned. A Registry stores the data keys in a table, wrapped by a KeyWrapper.
// docs/reference/encryption.md describes formats and keys.
//
// # Guarantee
//
// A read returns values that somebody with the data key wrote under the entity's key in this account and table, or ErrNotAuthentic, whatever was
// changed in the row. A value cannot be moved to another row, property, table, account, type or scope, nor to another version of its own row. No
// encrypted or signed property can be added or removed, and no plaintext is accepted in place of a ciphertext. A read through an index returns no
// entity that belongs under another index key. But a read does not detect that somebody who can write rows has restored an older state of a whole
// row, or has deleted it.
//
// # Limits
//
// A projection, or an index with Options.Project, reads only some properties. They are checked, but a missing property may have been removed, so
// such an entity cannot be written back. Merge, and conditions on encrypted properties, return tables.ErrInvalid. Keys are never encrypted: an
// index by an encrypted property stores its plaintext, unless the key function uses a Beacon.
//
// Anybody who has the public half of an RSA wrapping key and can write the registry's table can insert a data key that they know. So data keys
// wrapped by RSA are accepted only if RegistryOptions.Trusted lists their ids, or with TrustTable, which requires that only a separate credential
// can write that table. AlgorithmA256KW needs neither.
//
// A crash leaves nothing of an encryption; repeat an interrupted Rewrap, Reencrypt or RemoveUnusedDataKey.
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
// If encryption at rest is enough: the service always does that, without charge. If properties must be queried by range or prefix. For values over
// 65,418 bytes, use it with package widentities, or package largeentities with a Stream as its Options.Sealer.
package encryption
