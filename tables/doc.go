// Package tables is a client for Azure Table storage: accounts, tables, rows as typed values or property bags, queries that
// show what they cost before they are sent, entity group transactions, bulk writes, and errors that errors.Is distinguishes.
// It is built on the Azure SDK's clients. It has no indexes, intents or blobs: package patterns, which is built on it, adds
// these.
//
//	Account      the SDK's clients for one storage account, made from any credential
//	Table        one table: Create, Drop, NewTransaction
//	Rows         rows as values of T, or as property bags (Entity): point operations, Query, BulkNonAtomic
//
// # Stored rows
//
// A row has the properties of T's fields (see Codec), and _tpWrite, the ID of the library's last write of the row. A
// row without room for _tpWrite is stored without it. The library's own properties have names that begin with _tp. They
// count toward the 252 properties and the 1 MiB of an entity. A T and a property bag do not show them.
//
// # Guarantee
//
// All rows are written in the same way. Input is checked against the service's limits before any request. A write has
// three outcomes: nil (applied), an error (not applied), and ErrUnknownOutcome. If a response is lost, the library
// reads the row back: if the row has the id of this write, the write was applied. It does the same if the service
// refuses a repeated request after a lost response, because an earlier attempt may have been applied. A value reads
// back equal to what was written; Codec lists the exceptions.
//
// # Crashes
//
// The service applies all operations of a transaction or none. If BulkNonAtomic ends early, any of the rows after
// Report.Resume may have been written.
//
// # Requests
//
//	Get, Insert, Replace, Merge, Upsert, Delete     1
//	Query                                           1 for each page of at most 1,000; 1 for a point query
//	Transaction                                     1
//	after a lost response                           1 more for each row, to read the outcome
//
// The SDK's retries are not included; AccountOptions.ClientOptions.Retry configures them for all requests.
//
// Guide: "Design for querying", "Entity Group Transactions", "Server-side projection".
package tables
