// Package access gives other programs and users access to a part of a table by tokens (shared access signatures), and
// revokes it: the guide's "Controlling access with Shared Access Signatures".
//
// # Stored layout
//
// A token is not stored: it is the query of an address, signed with the account's key. A token for the rows from
// 'empid_000123' up to, and without, 'empid_000124' of partition Sales:
//
//	https://contoso.table.core.windows.net/Employees
//	  ?sv=2019-02-02&tn=employees           version and table
//	  &sp=ru                                query and update
//	  &st=...12:45:00Z&se=...14:00:00Z      from 15 minutes ago to an hour from now
//	  &spr=https                            only with TLS
//	  &spk=Sales&srk=empid_000123           the first key
//	  &epk=Sales&erk=empid_000123%EF%BF%BD  the last key, U+FFFD at its end
//	  &sig=...
//
// A table has a list of up to five stored access policies. During a change, the list has one more entry, or one in
// place of the revoked policy:
//
//	_tpLock_4YIFK2ZQV7...                   a lock; it has expired and opens nothing
//
// # Guarantee
//
// A token never allows more than its Range. The service's ranges include their end, so an excluded end becomes the
// key before it. The comment of Rows says which keys at the end of the range a token therefore omits; package
// compoundkey makes no such keys. A range that a token cannot express is refused, such as a partition whose key is
// empty: the signature is the same for an empty bound and for no bound, so the token's holder could remove the bound.
//
// A Client does not send a request that its token certainly does not allow, but returns ErrOutside or
// ErrNotPermitted, in an error of kind tables.ErrDenied. Only the service decides, by its own clock, whether
// the token has expired or been revoked.
//
// Only RevealAddress and RevealQuery return the text of a token. No verb of package fmt, no encoder, log line, error or span of a Token,
// Signer, Issuer or Client holds it, nor the account's key.
//
// Policies: the service has no ETag or condition for them. Create and Revoke take a lock that all programs
// with this package and the same PoliciesOptions.UnsafeSettle (here called Settle) respect: no program undoes
// an acknowledged change of another, and a revoked policy does not come back. This assumes that a request
// arrives within a sixth of Settle after it was sent, or never. Other entries are not changed. A program that
// ignores the lock can undo a change: the portal, for example, writes back a list that it has read before.
// Call List to see whether that has happened.
//
// # Crashes
//
// Signing stores nothing. If a process dies while it holds the lock, the lock stays; the next change waits
// for six times Settle and removes it. A policy that was being revoked is already removed, unless no request
// was sent: revoke it again to be sure. A policy that was being created may or may not exist: call List.
//
// # Requests
//
//	Sign, Parse, Open, Issuer.Token               0
//	what a Client refuses                         0
//	everything else of a Client                   as with the account's key
//	Policies.List                                 1
//	Policies.Create, Revoke                       4, in about the time Settle; at most 1 more for each quarter of Settle in which another program holds the lock
//
// # When not to use it
//
// For a service of your own, which can have the account's key or, better, a token credential. For rights that depend
// on an entity's properties: a token is limited by keys only. For rights that must end at once: the service may take
// 30 seconds to revoke a policy, a table has only five, and a token without a policy is valid until it expires, so
// choose a short lifetime. On Cosmos DB for Table, whose keys have no order: NewSigner refuses it. With Microsoft
// Entra ID, the SDK signs no tokens for tables (ErrNoSharedKey).
package access
