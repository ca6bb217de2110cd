// Package continuation encodes the position at which a query continues after a page as text: the continuation token, which is opaque to
// callers and has a version.
package continuation

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
)

// Position is the position at which a query continues.
type Position struct {
	Version   int      `json:"v"`
	Query     string   `json:"q"`           // fingerprint of the query
	Partition string   `json:"p,omitempty"` // partition and row of the service's own continuation headers
	Row       string   `json:"r,omitempty"`
	After     []string `json:"k,omitempty"` // used in place of Partition and Row: keys of the last row that was read
	Left      int      `json:"n,omitempty"` // number of entities that the query's Top still allows; 0 without Top
}

const version = 1

// More reports whether the position has keys, so that the query continues there.
func (p Position) More() bool { return p.Partition != "" || len(p.After) == 2 }

// Token returns the text of the position.
func (p Position) Token() string {
	p.Version = version
	return Encode(p)
}

// Encode returns the text of a token: JSON in base64. The position is a struct of strings and numbers, which always
// marshal.
func Encode(position any) string {
	text, _ := json.Marshal(position)
	return base64.RawURLEncoding.EncodeToString(text)
}

// Decode decodes the text of a token into a position.
func Decode(token string, position any) error {
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, position)
}

// Hash returns a short hash of a formatted text, by which a token identifies its query or run.
func Hash(format string, args ...any) string {
	h := fnv.New64a()
	fmt.Fprintf(h, format, args...)
	return fmt.Sprintf("%016x", h.Sum64())
}

// Parse decodes a token; it returns an error unless the token belongs to the query with this fingerprint. top
// is the query's Top, 0 for none.
func Parse(token, query string, top int) (Position, error) {
	var p Position
	if Decode(token, &p) != nil {
		return p, fmt.Errorf("the continuation token of %d characters is not one that Page has returned; give Page.Next of the page before, unchanged", len(token))
	}
	if p.Version != version {
		return p, fmt.Errorf("the continuation token has version %d, and this build reads version %d; begin the query again", p.Version, version)
	}
	if p.Query != query {
		return p, errors.New("the continuation token belongs to another query; give Page.Next of a page of this query")
	}
	if !p.More() || p.Partition != "" && p.After != nil || p.Left < 0 {
		return p, errors.New("the continuation token is damaged: it has no position; begin the query again")
	}
	if top > 0 && (p.Left <= 0 || p.Left > top) {
		return p, fmt.Errorf("the continuation token is damaged: it leaves %d entities of a query with Top %d; begin the query again", p.Left, top)
	}
	return p, nil
}

// Fingerprint returns a hash of everything that determines the result of a query. The page size is not part of it: it may change between
// pages.
func Fingerprint(endpoint, table, filter string, selected []string, top int) string {
	return Hash("%q %q %q %q %d", endpoint, table, filter, selected, top)
}
