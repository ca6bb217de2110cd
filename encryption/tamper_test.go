package encryption_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/tables"
)

// with returns p with another value of one property.
func with(p tables.Properties, name string, v tables.Value) tables.Properties {
	p = slices.Clone(p)
	p.Set(name, v)
	return p
}

func without(p tables.Properties, names ...string) tables.Properties {
	return slices.DeleteFunc(slices.Clone(p), func(x tables.Property) bool { return slices.Contains(names, x.Name) })
}

// TestEveryByteCounts: with any bit of any byte of anything encrypted changed, or the end cut off or extended, the row is
// refused, by one and the same error; whole, and where only that property and the seal, or that property alone, were read.
func TestEveryByteCounts(t *testing.T) {
	a := loader(t, nil)
	p := a.stored(t, aKey, text("A", "a secret"), tables.Property{Name: "B", Value: tables.Int64(42)}, text("P", "plain"))
	texts, points := map[string]bool{}, 0
	refused := func(changed tables.Properties, what string) {
		t.Helper()
		points++
		out, err := a.Load(t.Context(), allOf(aKey), changed)
		texts[refusedBy(t, err, what)] = true
		if out != nil {
			t.Fatalf("%s: properties came with the error", what)
		}
	}
	for _, name := range []string{"A", "B", encryption.SealProperty} {
		whole, _ := p.Get(name).Bytes()
		for i := range whole {
			bits := []byte{0x01, 0x80}
			if i < 8 || testing.Short() {
				bits = []byte{0x01}
			}
			for _, bit := range bits {
				changed := slices.Clone(whole)
				changed[i] ^= bit
				refused(with(p, name, tables.Binary(changed)), fmt.Sprintf("%s, byte %d", name, i))
			}
			refused(with(p, name, tables.Binary(whole[:i])), fmt.Sprintf("%s cut at %d", name, i))
		}
		refused(with(p, name, tables.Binary(append(slices.Clone(whole), 0))), name+" extended")
		for _, v := range []tables.Value{tables.String("a secret"), tables.Int64(42), tables.Binary(nil), tables.Boolean(true)} {
			refused(with(p, name, v), fmt.Sprintf("%s replaced by %v", name, v.Type()))
		}
	}
	for _, name := range []string{"A", "B"} { // as it is read by a projection
		whole, _ := p.Get(name).Bytes()
		for i := range whole {
			changed := slices.Clone(whole)
			changed[i] ^= 1
			for _, beside := range []string{"P", encryption.SealProperty} {
				_, err := a.Load(t.Context(), partOf(aKey), tables.Properties{{Name: name, Value: tables.Binary(changed)}, {Name: beside, Value: p.Get(beside)}})
				texts[refusedBy(t, err, fmt.Sprintf("a projection, %s, byte %d", name, i))] = true
				points++
			}
		}
	}
	if len(texts) != 1 {
		t.Errorf("%d texts of errors: %v", len(texts), texts)
	}
	t.Logf("%d changes, all refused by one error", points)
	if points < 900 {
		t.Errorf("only %d changes were tried", points)
	}
	assert.NoError(t, assert.Err(a.Load(t.Context(), allOf(aKey), p)), "what was not changed")
}

// TestRemovedAndAdded: no encrypted property leaves or comes unseen.
func TestRemovedAndAdded(t *testing.T) {
	a := loader(t, nil)
	p := a.stored(t, aKey, text("A", "1"), text("B", "2"), text("P", "plain"))
	empty := a.stored(t, aKey, text("P", "plain"))
	other := a.stored(t, aKey, text("A", "1"), text("B", "2"), text("C", "3"), text("P", "plain"))
	for what, changed := range map[string]tables.Properties{
		"A removed":                       without(p, "A"),
		"both removed":                    without(p, "A", "B"),
		"the seal removed":                without(p, encryption.SealProperty),
		"a value and the seal":            without(p, "A", encryption.SealProperty),
		"all that is encrypted":           without(p, "A", "B", encryption.SealProperty),
		"C of another version":            append(slices.Clone(p), tables.Property{Name: "C", Value: other.Get("C")}),
		"C in plain":                      append(slices.Clone(p), text("C", "3")),
		"A copied to a plain one":         with(p, "P", p.Get("A")),
		"the seal of an empty one":        with(p, encryption.SealProperty, empty.Get(encryption.SealProperty)),
		"plaintext with an empty seal":    append(slices.Clone(empty), text("A", "1")),
		"ciphertext with an empty seal":   append(slices.Clone(empty), tables.Property{Name: "A", Value: p.Get("A")}),
		"plaintext alone":                 {text("A", "1"), text("P", "plain")},
		"nothing":                         nil,
		"the old libraries' metadata":     append(slices.Clone(p), text("_ClientEncryptionMetadata1", "{}")),
		"the old libraries' and no seal":  append(without(p, encryption.SealProperty), text("_ClientEncryptionMetadata1", "{}")),
		"A named otherwise":               append(without(p, "A"), tables.Property{Name: "a", Value: p.Get("A")}),
		"the seal of more properties":     with(p, encryption.SealProperty, other.Get(encryption.SealProperty)),
		"another version's, but the seal": with(other, encryption.SealProperty, p.Get(encryption.SealProperty)),
	} {
		_, err := a.Load(t.Context(), allOf(aKey), changed)
		refusedBy(t, err, what)
	}
	if read := assert.Must[tables.Properties](t)(a.Load(t.Context(), allOf(aKey), empty)); len(read) != 1 {
		t.Errorf("an entity with nothing to encrypt has %d properties", len(read))
	}
}

// TestEveryPairSwapped: no value is accepted in another's place: of another row, partition, property, version, type, table,
// scope, data key or registry. A whole older version of the row is the one thing that is.
func TestEveryPairSwapped(t *testing.T) {
	home := loader(t, nil)
	stranger := worldOn(t, home.s) // another registry, with other data keys
	scoped := loaderIn(t, home.world, "Employees", &encryption.Options{Scope: "tenant B"})
	elsewhere := loaderIn(t, home.world, "Managers", nil)
	foreign := loaderIn(t, stranger, "Employees", nil)
	row, partition := tables.Key{Partition: "Sales", Row: "empid_000224"}, tables.Key{Partition: "Salesempid", Row: "_000223"}
	values := []tables.Property{text("A", "same"), text("B", "same"), {Name: "C", Value: tables.Binary([]byte("same"))}}
	rows := map[string]struct {
		attached
		key tables.Key
		p   tables.Properties
	}{}
	add := func(name string, a attached, key tables.Key) {
		entry := rows[name]
		entry.attached, entry.key, entry.p = a, key, a.stored(t, key, values...)
		rows[name] = entry
	}
	add("the row", home, aKey)
	add("an older version", home, aKey)
	add("another row", home, row)
	add("another partition", home, partition)
	add("another table", elsewhere, aKey)
	add("another tenant", scoped, aKey)
	add("another registry", foreign, aKey)
	assert.Must[encryption.DataKeyID](t)(home.registry.CreateDataKey(t.Context()))
	add("another data key", home, aKey)

	names := []string{"A", "B", "C", encryption.SealProperty}
	swaps, texts := 0, map[string]bool{}
	for to, target := range rows {
		for from, source := range rows {
			for _, left := range names {
				for _, right := range names {
					if to == from && left == right {
						continue
					}
					_, err := target.Load(t.Context(), allOf(target.key), with(target.p, left, source.p.Get(right)))
					texts[refusedBy(t, err, fmt.Sprintf("%s of %s as %s of %s", right, from, left, to))] = true
					swaps++
				}
			}
			_, err := target.Load(t.Context(), allOf(target.key), source.p)
			sameRow := target.key == source.key && target.table.Name() == source.table.Name() && target.registry == source.registry && (to == "another tenant") == (from == "another tenant")
			if sameRow && err != nil {
				t.Errorf("a whole older version, %s as %s: %v", from, to, err)
			} else if !sameRow {
				texts[refusedBy(t, err, fmt.Sprintf("the whole of %s as %s", from, to))] = true
				swaps++
			}
		}
	}
	if len(texts) != 1 || swaps < 1000 {
		t.Errorf("%d swaps, %d texts of errors", swaps, len(texts))
	}
	t.Logf("%d swaps, all refused by one error", swaps)
}

// TestPartial: of a read that leaves properties out what is there is checked; the same properties are refused where all of them
// were read.
func TestPartial(t *testing.T) {
	a := loader(t, nil)
	p := a.stored(t, aKey, text("A", "1"), text("B", "2"), text("P", "plain"))
	older := a.stored(t, aKey, text("A", "1"), text("B", "2"), text("P", "plain"))
	for what, names := range map[string][]string{"one": {"A", encryption.SealProperty}, "both": {"B", "A", encryption.SealProperty}, "a plain one": {"P", encryption.SealProperty},
		"a plain one and one": {"P", "A", encryption.SealProperty}, "the seal": {encryption.SealProperty}} {
		var projected tables.Properties
		for _, name := range names {
			projected.Set(name, p.Get(name))
		}
		read, err := a.Load(t.Context(), partOf(aKey), projected)
		if err != nil || len(read) != len(without(projected, encryption.SealProperty)) {
			t.Errorf("%s: %d properties, %v", what, len(read), err)
		}
		for _, x := range read {
			if want := map[string]string{"A": "1", "B": "2", "P": "plain"}[x.Name]; x.Value != tables.String(want) {
				t.Errorf("%s: %s is %#v", what, x.Name, x.Value)
			}
		}
		_, err = a.Load(t.Context(), allOf(aKey), projected)
		refusedBy(t, err, what+", as all that there is")
	}
	for what, projected := range map[string]tables.Properties{
		"nothing":                    nil,
		"a plain one":                {text("P", "plain")},
		"a plain one that changed":   {text("P", "forged"), {Name: encryption.SealProperty, Value: p.Get(encryption.SealProperty)}},
		"a plain one that was added": {text("Q", "plain"), {Name: encryption.SealProperty, Value: p.Get(encryption.SealProperty)}},
		"plaintext":                  {text("A", "1")},
		"one without the seal":       {{Name: "A", Value: p.Get("A")}},
		"plaintext beside":           {{Name: "B", Value: p.Get("B")}, text("A", "1")},
		"two versions":               {{Name: "B", Value: p.Get("B")}, {Name: "A", Value: older.Get("A")}},
		"an older one with the seal": {{Name: "A", Value: older.Get("A")}, {Name: encryption.SealProperty, Value: p.Get(encryption.SealProperty)}},
	} {
		_, err := a.Load(t.Context(), partOf(aKey), projected)
		refusedBy(t, err, what)
	}
}

// TestAcceptPlaintext: the mode for migrations accepts what has no seal, and what the seal does not name; all else it
// refuses as ever.
func TestAcceptPlaintext(t *testing.T) {
	strict := loader(t, nil)
	a := loaderIn(t, strict.world, "Employees", &encryption.Options{AcceptPlaintext: true})
	p := strict.stored(t, aKey, text("A", "1"), text("P", "plain"))
	for what, accepted := range map[string]tables.Properties{
		"a row from before":          {text("A", "1"), text("P", "plain")},
		"a property declared since":  append(slices.Clone(p), text("B", "2")),
		"a row that is encrypted":    p,
		"a row without any property": nil,
	} {
		assert.NoError(t, assert.Err(a.Load(t.Context(), allOf(aKey), accepted)), what)
	}
	for what, refused := range map[string]tables.Properties{
		"the seal removed":    without(p, encryption.SealProperty),
		"a value in plain":    with(p, "A", tables.String("1")),
		"a value removed":     without(p, "A"),
		"a copied ciphertext": append(slices.Clone(p), tables.Property{Name: "B", Value: p.Get("A")}),
	} {
		_, err := a.Load(t.Context(), allOf(aKey), refused)
		refusedBy(t, err, what)
	}
}
