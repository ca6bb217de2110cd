package blobowner_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/blobowner"
)

var owner = blobowner.Owner{What: "the entity", Prefix: "Employees/Photo/ABC/", Labels: map[string]string{"tpkey": "U2FsZXM", "tphome": "aG9tZQ"}}

func TestCheckName(t *testing.T) {
	for name, own := range map[string]bool{
		"Employees/Photo/ABC/ID":          true,
		"Employees/Photo/ABC/group/value": true,
		"Employees/Photo/ABC/with.a.dot":  true,
		"Employees/Photo/ABC/":            false,
		"Employees/Photo/ABC":             false,
		"Employees/Photo/ABD/ID":          false,
		"employees/Photo/ABC/ID":          false,
		"":                                false,
		"/":                               false,
		"Employees/Photo/ABC/..":          false,
		"Employees/Photo/ABC/.":           false,
		"Employees/Photo/ABC/../ABD/ID":   false,
		"Employees/Photo/ABC/..\\ABD":     false,
		"Employees/Photo/ABC//ID":         false,
		"Employees/Photo/ABC/ID\x00":      false,
		"Employees/Photo/ABC/ID\u0085":    false,
		"x/Employees/Photo/ABC/ID":        false,
	} {
		err := owner.CheckName(name)
		if (err == nil) != own || err != nil && !errors.Is(err, blobowner.ErrForeign) {
			t.Errorf("%q: %v, want own %v", name, err, own)
		}
	}
	assert.Error(t, (blobowner.Owner{}).CheckName("anything"), "an owner without a prefix owns a blob")
}

func TestCheckLabels(t *testing.T) {
	meta := func(pairs ...string) map[string]*string {
		m := map[string]*string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = &pairs[i+1]
		}
		return m
	}
	for name, c := range map[string]struct {
		meta map[string]*string
		own  bool
	}{
		"its own":         {owner.Metadata(nil), true},
		"with more":       {owner.Metadata(map[string]string{"tpsha256": "00"}), true},
		"in another case": {meta("Tpkey", "U2FsZXM", "TPHOME", "aG9tZQ"), true},
		"none":            {nil, false},
		"no home":         {meta("tpkey", "U2FsZXM"), false},
		"another key":     {meta("tpkey", "U2FsZXN", "tphome", "aG9tZQ"), false},
		"a value's case":  {meta("tpkey", "u2fszxm", "tphome", "aG9tZQ"), false},
		"nil":             {map[string]*string{"tpkey": nil, "tphome": nil}, false},
	} {
		if err := owner.CheckLabels("b", c.meta); (err == nil) != c.own || err != nil && !errors.Is(err, blobowner.ErrForeign) {
			t.Errorf("%s: %v, want own %v", name, err, c.own)
		}
	}
}

// FuzzCheckName: a name that passes lies under the prefix, however a client or a server normalizes the path.
func FuzzCheckName(f *testing.F) {
	for _, name := range []string{"Employees/Photo/ABC/ID", "Employees/Photo/ABC/../x", "Employees/Photo/ABC/%2e%2e/x", ""} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if owner.CheckName(name) != nil {
			return
		}
		for _, part := range strings.Split(name, "/") {
			if part == "" || part == "." || part == ".." {
				t.Errorf("%q passes", name)
			}
		}
		if !strings.HasPrefix(name, owner.Prefix) || len(name) == len(owner.Prefix) {
			t.Errorf("%q passes", name)
		}
	})
}
