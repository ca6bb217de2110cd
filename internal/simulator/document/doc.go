// Package document reads and writes XML documents as the services do, including the byte order mark and the choice of escaped
// characters.
//
// It handles only texts and names of elements; callers interpret documents. It imports only package protocol.
package document
