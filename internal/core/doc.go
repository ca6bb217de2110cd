// Package core is the client for tables below package tables: accounts, tables, rows, queries, transactions and bulk writes for the
// packages of this module, which also read and write rows with the library's own properties. It does not know the types of entities:
// values are pointers in an any, and a Codec turns them into properties. Package tables adds the types, and documents what users call.
//
// A type of package tables, such as tables.Table, is defined as the type of this package: the packages of this module convert between
// them, and programs cannot.
package core
