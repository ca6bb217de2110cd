// Package entity represents the entities of the table service: how they are parsed from JSON and written as JSON at each
// level of metadata, the limits of keys, names, values and sizes, and the Set that keeps them sorted by key.
//
// It handles only texts and values. It does not know tables, requests or grants, and must not import request or tables.
package entity
