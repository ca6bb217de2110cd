// Package tables is a client for Azure Table storage: accounts, tables, rows as typed values or property bags, queries that say what
// they cost, entity group transactions, bulk writes, and errors that errors.Is tells apart. It is built on the Azure SDK's clients.
//
// It knows nothing of indexes, intents or blobs: package patterns builds on it.
//
//	Account      the SDK's clients for one storage account, made from any credential
//	Table        create and drop; Transaction
//	Rows         rows as values of T, or as property bags (Entity): point operations, Query, BulkNonAtomic
//
// # Stored rows
//
// A row holds the properties that T's fields stand for (see Codec), and _tpWrite, the ID of the write that left it, unless the row is
// full without it. The library's own properties have names that begin with _tp. They count toward the 252 properties and the 1 MiB
// of an entity. A T and a property bag do not show them.
//
// # Guarantee
//
// Every row goes through one write path. Input is checked against the service's limits before any request. A write has three
// outcomes: nil (applied), an error (not applied) and ErrUnknownOutcome. If a response is lost, the library reads the row back. It
// does so also if the SDK has repeated a request and gets 409 or 412, since the first attempt may have been applied: the write ID in the
// row tells. What is read equals what was written.
//
// # Crashes
//
// All operations of a transaction are applied, or none. If BulkNonAtomic ends early, any of the rows after its Resume mark may be written.
//
// # Requests
//
//	Get, Insert, Replace, Merge, Upsert, Delete     1
//	Query                                           1 for each page of at most 1,000; 1 for a point query
//	Transaction                                     1
//	after a lost response                           1 more for each row, to find out
//
// Retries of the SDK are not counted; AccountOptions.ClientOptions.Retry is the one retry rule for all requests.
//
// Guide: "Design for querying", "Entity Group Transactions", "Server-side projection".
package tables
