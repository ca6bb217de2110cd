// Package request reads requests to the table service and holds all rules that need no state: for addresses, operations,
// transactions and queries. It begins the answers, too, whose form depends on the request alone, refusals among them.
//
// It is given a protocol.Call. It stores nothing and asks for no permission: it must not import tables, authorization or
// environment.
package request
