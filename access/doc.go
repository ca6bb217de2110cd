// Package access gives others a part of a table by tokens, shared access signatures, and takes it back: the guide's "Controlling
// access with Shared Access Signatures".
//
// # Stored layout
//
// A token is stored nowhere: it is the query of an address, signed with the account's key. One for the rows 'empid_000123' up
// to but without 'empid_000124' of partition Sales:
//
//	https://contoso.table.core.windows.net/Employees
//	  ?sv=2019-02-02&tn=employees           version and table
//	  &sp=ru                                query and update
//	  &st=...12:45:00Z&se=...14:00:00Z      from 15 minutes ago for an hour
//	  &spr=https                            only with TLS
//	  &spk=Sales&srk=empid_000123           the first key
//	  &epk=Sales&erk=empid_000123%EF%BF%BD  the last key, U+FFFD at its end
//	  &sig=...
//
// Stored access policies are a list of up to five that belongs to the table. While a change of it is under way, one entry
// more is there, or takes the place of the one that is revoked:
//
//	_tpLock_4YIFK2ZQV7...                   a lock; it has expired and opens nothing
//
// # Guarantee
//
// A token never opens more than the Range it was made of. The service's bounds include their end, so one that is to be left
// out becomes the key before it; see Rows for what that leaves out at the very end, which is nothing that package compoundkey
// makes. A range that a token cannot express, such as a partition whose key is empty, is refused: the signature is the
// same for an empty bound and for none, and its holder could leave it away.
//
// A Client sends nothing that its token surely does not allow, and says so by ErrOutside or ErrNotPermitted, each of which
// is tables.ErrDenied. Whether the token has expired or been revoked is for the service to say, by its own clock.
//
// The text of a token comes out by RevealAddress and RevealQuery only. No verb of package fmt, no encoder, log line, error or
// span of a Token, Signer, Issuer or Client holds it, nor the account's key.
//
// Policies: the service has no ETag or condition for them. Create and Revoke take turns with all programs that use this
// package with the default of PoliciesOptions.UnsafeSettle, here called Settle: none undoes what another has been told is done,
// and a revoked policy does not come back, as long as a request arrives within a sixth of Settle of being sent, or never. Entries of others stay as they are. A
// program that does not take turns, such as the portal, which writes back a list it has read before, can undo
// a change; List tells.
//
// # Crashes
//
// Signing leaves nothing. A process that dies in its turn leaves its lock, which the next change waits for, six times
// Settle, and takes away. A policy that was to be revoked is then gone already, unless nothing was sent; revoking it
// again makes sure. One that was to be created is there or is not.
//
// # Requests
//
//	Sign, Parse, Open, Issuer.Token               0
//	what a Client refuses                         0
//	everything else of a Client                   as with the account's key
//	Policies.List                                 1
//	Policies.Create, Revoke                       4 and Settle; 1 more for each quarter of Settle in which others have the turn
//
// # When not to use it
//
// For a service of your own, which can have the account's key or, better, a token credential. For rights that follow from an
// entity's properties: a token knows keys only. For rights that must end at once: revoking a policy may take the
// service 30 seconds, there are five policies a table, and a token without one is good until it expires; make that soon. On
// Cosmos DB for Table, whose keys have no order: NewSigner refuses it. With Microsoft Entra ID, the SDK signs no tokens
// for tables (ErrNoSharedKey).
package access
