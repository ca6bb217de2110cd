// Package entity holds the entities of the table service: how they are read from JSON and written to it at each level of
// metadata, the limits of keys, names, values and sizes, and the Set that keeps them in the order of their keys.
//
// It is given texts and values. It knows nothing of tables, requests or grants, and must not import request or tables.
package entity
