// Package access gives other programs and users access to a part of a table by tokens (shared access signatures), and revokes it: the guide's
// "Controlling access with Shared Access Signatures". docs/reference/access.md shows what a token contains.
//
// # Guarantee
//
// A token never allows more than its Range. The service's ranges include their end, so an excluded end becomes the key before it: see Rows. A range
// that a token cannot express is refused, such as a partition whose key is empty: the signature is the same without a bound, so the token's holder
// could remove it.
//
// A Client does not send what its token certainly does not allow, but returns ErrOutside or ErrNotPermitted, in an error of kind tables.ErrDenied.
// Only the service decides, by its own clock, whether the token has expired or been revoked.
//
// Only RevealAddress and RevealQuery return the text of a token. No verb of package fmt, encoder, log line, error or span of a Token, Signer,
// Issuer or Client holds it, nor the account's key.
//
// The service has no ETag for policies. Create and Revoke take a lock, an entry of the list that opens nothing, which all programs with this
// package and the same PoliciesOptions.UnsafeSettle (here called Settle) respect: an acknowledged change is not undone, and a revoked policy does
// not come back. This assumes that a request arrives within a sixth of Settle after it was sent, or never. A program that ignores the lock, such as
// the portal, can undo a change: call List to see.
//
// If a process dies with the lock, the next change waits for six times Settle and removes it. The policy that it was creating or revoking may or
// may not exist: call List, or revoke again.
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
// For a service of your own, which can have the account's key or, better, a token credential. For rights that depend on an entity's properties. For
// rights that must end at once: the service may take 30 seconds to revoke a policy, a table has only five, and a token without a policy is valid
// until it expires. On Cosmos DB for Table, whose keys have no order, NewSigner refuses; with Microsoft Entra ID, the SDK signs no tokens for
// tables (ErrNoSharedKey).
package access
