// Package request parses requests to the table service and checks all stateless rules: for URLs, operations, transactions and
// queries. It also begins the responses, whose form depends on the request alone, including errors.
//
// It gets a protocol.Call. It stores nothing and checks no permission, and it must not import tables, authorization or
// environment.
package request
