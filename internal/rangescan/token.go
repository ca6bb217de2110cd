package rangescan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/internal/continuation"
)

// token is the text form of a State.
type token struct {
	Version int    `json:"v"`
	Query   string `json:"q"` // fingerprint of the query
	State
	Left int `json:"l,omitempty"` // number of rows that the query's limit still allows
}

const tokenVersion = 1

// Token returns the text of a state, with the fingerprint of the query and the number of rows that its limit still allows.
func (s State) Token(query string, left int) string {
	return continuation.Encode(token{tokenVersion, query, s, left})
}

// ParseState is the inverse of Token for a scan of this many initial ranges; "" is the beginning, with limit rows left.
func ParseState(text, query string, ranges, limit int) (s State, left int, err error) {
	if text == "" {
		return State{}, limit, nil
	}
	var t token
	switch {
	case continuation.Decode(text, &t) != nil:
		return s, 0, fmt.Errorf("ParallelOptions.Resume, of %d characters, is not Report.Resume of an earlier parallel read", len(text))
	case t.Version != tokenVersion:
		return s, 0, fmt.Errorf("ParallelOptions.Resume has version %d, and this build reads version %d; begin again without it", t.Version, tokenVersion)
	case t.Query != query:
		return s, 0, errors.New("ParallelOptions.Resume is the token of another query or of other partitions; repeat those of that read")
	}
	if t.Left < 0 || (limit > 0) != (t.Left > 0) || !t.Valid(ranges) {
		return s, 0, errors.New("ParallelOptions.Resume is damaged: its ranges do not follow each other; begin again without it")
	}
	return t.State, t.Left, nil
}

// Valid reports whether a scan of this many initial ranges can have the state.
func (s State) Valid(ranges int) bool {
	return s.Next >= 0 && s.Next <= ranges && follow(s.Ranges)
}

// follow reports whether ranges are in the order of their keys and do not overlap.
func follow(all []Range) bool {
	for i, r := range all {
		if r.From.Side > Behind || r.To != nil && (r.To.Side > Behind || r.ends(r.From)) ||
			i > 0 && (all[i-1].To == nil || all[i-1].To.Compare(r.From) > 0) {
			return false
		}
	}
	return true
}

// Has reports whether the ranges that have begun may still have rows of a partition.
func (s State) Has(partition string) bool {
	all := Partition(partition)
	return slices.ContainsFunc(s.Ranges, func(r Range) bool { return r.From.Compare(*all.To) < 0 && !r.ends(all.From) })
}
