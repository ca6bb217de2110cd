package access

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Range is the part of a table that a token allows. The zero Range is refused, so that a forgotten one does not allow the whole table. A Range that
// cannot be signed exactly carries an error, which Err and Signer.Sign return; it never allows more than was requested.
type Range struct {
	made     bool   // not the zero Range
	spk, srk string // "" is no bound
	epk, erk string // included; "" is no bound
	err      error
}

// WholeTable returns the Range of every entity of the table.
func WholeTable() Range { return Range{made: true} }

// Partition returns the Range of one partition.
func Partition(partition string) Range {
	return makeRange(tables.Key{Partition: partition}, tables.Key{Partition: partition})
}

// Partitions returns the Range of the partitions whose keys are in the span, such as compoundkey.Starting("customer", compoundkey.Int(42, 6)). See
// Rows for its end.
func Partitions(span compoundkey.Span) Range {
	last, err := lastOf(span)
	switch {
	case err != nil:
		return Range{err: err}
	case span.From() == "" && span.To() == "":
		return Range{err: errors.New("the span contains all keys; use WholeTable to allow the whole table")}
	}
	return makeRange(tables.Key{Partition: span.From()}, tables.Key{Partition: last})
}

// Rows returns the Range of the rows of a partition whose keys are in the span: compoundkey.Range("a", "b") includes "a" and not "b". Since the
// service's ranges include their end, it omits keys with U+FFFD, U+FFFE or U+FFFF at the position of the end's last character, which package
// compoundkey does not make. It includes no key outside of the span.
func Rows(partition string, span compoundkey.Span) Range {
	last, err := lastOf(span)
	if err != nil {
		return Range{err: err}
	}
	if span.To() != "" && last == "" {
		return Range{err: errEmptyKey}
	}
	return makeRange(tables.Key{Partition: partition, Row: span.From()}, tables.Key{Partition: partition, Row: last})
}

// Row returns the Range of one entity.
func Row(key tables.Key) Range { return Through(key, key) }

// Through returns the Range from first to last, both included: the rest of first's partition, all partitions between, and last's up to its row.
func Through(first, last tables.Key) Range {
	if last.Row == "" {
		return Range{err: errEmptyKey}
	}
	return makeRange(first, last)
}

// errEmptyKey: the signature is the same without a bound, so the token's holder could remove it.
var errEmptyKey = errors.New("a bound of the range is the empty key, which a signature does not distinguish from no bound; use other keys")

// lastOf returns the last key of a token for the span, "" without end.
func lastOf(span compoundkey.Span) (string, error) {
	switch {
	case span.Err() != nil:
		return "", span.Err()
	case span.Empty():
		return "", errors.New("the span is empty; it must contain a key")
	case span.To() == "":
		return "", nil
	}
	last, _ := before(span.To())
	if compoundkey.Compare(last, span.From()) < 0 {
		return "", fmt.Errorf("the span contains only keys that continue with %U or higher, where a token cannot end; use a wider span", fill)
	}
	return last, nil
}

// makeRange returns the Range from first to last; an empty key is no bound. It refuses an empty Partition with a Row, and four empty keys.
func makeRange(first, last tables.Key) Range {
	for _, key := range []string{first.Partition, first.Row, last.Partition, last.Row} {
		if err := compoundkey.CheckKey(key); err != nil {
			return Range{err: err}
		}
	}
	switch order := compoundkey.Compare(first.Partition, last.Partition); {
	case first.Partition == "" && last.Partition == "" && first.Row == "" && last.Row == "":
		return Range{err: errEmptyKey}
	case first.Partition == "" && first.Row != "", last.Partition == "" && last.Row != "":
		return Range{err: errEmptyKey}
	case last.Partition == "": // without end
	case order > 0 || order == 0 && last.Row != "" && compoundkey.Compare(first.Row, last.Row) > 0:
		return Range{err: errors.New("the range ends before it begins; give the first key first")}
	}
	return Range{made: true, spk: first.Partition, srk: first.Row, epk: last.Partition, erk: last.Row}
}

// Err returns why Signer.Sign refuses the range, or nil.
func (r Range) Err() error {
	if r.err == nil && !r.made {
		return errors.New("the Range is the zero Range; use WholeTable to allow the whole table")
	}
	return r.err
}

// First returns the first key; an empty Partition or Row is no bound.
func (r Range) First() tables.Key { return tables.Key{Partition: r.spk, Row: r.srk} }

// Last returns the last key, included; an empty Partition or Row is no bound.
func (r Range) Last() tables.Key { return tables.Key{Partition: r.epk, Row: r.erk} }

// IsWholeTable reports whether the range is the whole table.
func (r Range) IsWholeTable() bool { return r.made && r.spk == "" && r.epk == "" }

// Contains reports whether the service accepts the key for a token with this range.
func (r Range) Contains(key tables.Key) bool {
	if r.Err() != nil {
		return false
	}
	if order := compoundkey.Compare(key.Partition, r.spk); order < 0 || order == 0 && compoundkey.Compare(key.Row, r.srk) < 0 {
		return false
	}
	if r.epk == "" {
		return true
	}
	order := compoundkey.Compare(key.Partition, r.epk)
	return order < 0 || order == 0 && (r.erk == "" || compoundkey.Compare(key.Row, r.erk) <= 0)
}

// String returns the bounds.
func (r Range) String() string {
	switch err := r.Err(); {
	case err != nil:
		return "no range: " + err.Error()
	case r.IsWholeTable():
		return "the whole table"
	}
	bound := func(partition, row, none string) string {
		switch {
		case partition == "":
			return none
		case row == "":
			return fmt.Sprintf("partition %q", partition)
		}
		return fmt.Sprintf("(%q, %q)", partition, row)
	}
	return bound(r.spk, r.srk, "the first key") + " through " + bound(r.epk, r.erk, "the last key")
}

// fill ends a range's last key. Keys of package compoundkey have only characters up to U+FFFC; U+FFFF would omit fewer others, but a proxy may refuse it in a URL.
const fill = '\uFFFD'

// before returns the last key below end, but for keys that fill omits; ok is false if there is none.
//
// Let end be p and a last character c. Below it are p, and every key that begins with p and a character below c. So the result is p, the last legal
// character below c, and fill; or p alone without such a character.
func before(end string) (last string, ok bool) {
	if end == "" {
		return "", false
	}
	c, n := utf8.DecodeLastRuneInString(end)
	p := end[:len(end)-n]
	b, ok := legalBefore(c, compoundkey.MaxUnits-edm.Units(p))
	if !ok {
		return p, true
	}
	last = p + string(b)
	if edm.Units(last) < compoundkey.MaxUnits {
		last += string(fill)
	}
	return last, true
}

// legalBefore returns the last character before c that is legal in a key and takes at most so many code units; ok is false if there is none.
func legalBefore(c rune, units int) (rune, bool) {
	for c = characterBefore(c); c >= ' '; c = characterBefore(c) {
		if (c <= 0xFFFF || units >= 2) && compoundkey.CheckKey(string(c)) == nil {
			return c, true
		}
		if c > 0xFFFF {
			c = 0x10000 // no surrogate pair fits: continue before all of them
		}
	}
	return 0, false
}

// characterBefore returns the character before c by UTF-16 code units, where surrogates sort between U+D7FF and U+E000; -1 if c is the first.
func characterBefore(c rune) rune {
	switch c {
	case 0xE000:
		return utf8.MaxRune
	case 0x10000:
		return 0xD7FF
	}
	return c - 1
}
