package access_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/access"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestRangesSayWhatTheyAre makes ranges whose bounds are empty, quoted or not ASCII, and invalid ranges. A range covers what was
// asked for, or its error says why it cannot.
func TestRangesSayWhatTheyAre(t *testing.T) {
	o := newOwner(t, storagetest.Simulator(t, nil))
	long := strings.Repeat("x", 513)
	for text, r := range map[string]access.Range{
		"the whole table": access.WholeTable(),
		`partition "O'Brien" through partition "O'Brien"`: access.Partition("O'Brien"),
		`("Sälés", "a") through ("Sälés", "b")`:           access.Through(at("Sälés", "a"), at("Sälés", "b")),
		`partition "A" through ("B", "b")`:                access.Through(at("A", ""), at("B", "b")),
		`("p", "a") through partition "p"`:                access.Rows("p", compoundkey.Range("a", "")),
		`partition "a" through the last key`:              access.Partitions(compoundkey.Range("a", "")),
		"the first key through partition \"a\ufffd\"":     access.Partitions(compoundkey.Range("", "b")),
		"partition \"p\" through (\"p\", \"a\ufffd\")":    access.Rows("p", compoundkey.Range("", "b")),
		`("p", "😀") through ("p", "😀")`:                   access.Row(at("p", "😀")),
	} {
		if r.Err() != nil || r.String() != text {
			t.Errorf("%s: %v", text, r)
		}
		parsed := assert.Must[access.Token](t)(access.Parse(o.sign(access.Grant{Range: r, Permissions: access.Query}).RevealAddress()))
		if parsed.Range().String() != text || parsed.Range().IsWholeTable() != r.IsWholeTable() || parsed.Range().First() != r.First() || parsed.Range().Last() != r.Last() {
			t.Errorf("%s came back as %v", text, parsed.Range())
		}
	}
	for what, r := range map[string]access.Range{
		"none": {}, "an empty partition": access.Partition(""), "an empty row": access.Row(at("p", "")), "an empty span": access.Rows("p", compoundkey.Range("b", "a")), "up to the empty key": access.Through(at("", ""), at("", "a")),
		"from a row of the empty partition": access.Through(at("", "a"), at("b", "b")), "no such key": access.Partition("a/b"), "a broken key": access.Partition("\xff"), "a long one": access.Row(at("p", long)), "backwards": access.Through(at("b", "b"), at("a", "a")),
		"all partitions": access.Partitions(compoundkey.All()), "a span with an error": access.Rows("p", compoundkey.Prefix("a\x00").Under("\xff")),
		"between what a token can end at": access.Rows("p", compoundkey.Range("a\uFFFD\uFFFE", "b")),
	} {
		if r.Err() == nil || !strings.HasPrefix(r.String(), "no range: ") || r.Contains(at("p", "a")) || r.Contains(tables.Key{}) {
			t.Errorf("%s: %v", what, r)
		}
		if _, err := o.signer.Sign(access.Grant{Table: o.table.Name(), Range: r, Permissions: access.Query, InsecureHTTP: true}); !errors.Is(err, tables.ErrInvalid) || strings.Contains(err.Error(), long) {
			t.Errorf("%s is signed: %v", what, err)
		}
	}
	if (access.Token{}).RevealAddress() != "" || (access.Token{}).RevealQuery() != "" {
		t.Error("no token has a text")
	}
	assert.ErrorIs(t, assert.Err(access.NewSigner(nil, "a2V5", nil)), tables.ErrWiring, "a signer of no account")
	if _, err := access.NewPolicies(o.table.Account().Table("a b"), nil); !errors.Is(err, tables.ErrWiring) {
		t.Errorf("policies of a table that there cannot be: %v", err)
	}
}
