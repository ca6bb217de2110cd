// Package document reads and writes documents in XML as the services do, down to the byte order mark and the characters that
// are escaped.
//
// It is given texts and names of elements. What a document means is for its callers; the package imports protocol alone.
package document
