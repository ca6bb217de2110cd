package marks

import (
	"fmt"
	"slices"
	"testing"
)

var (
	ann, ben, cy = Key{"Sales", "ann"}, Key{"Sales", "ben"}, Key{"Sales", "cy"}
	home, work   = at("home"), at("work")
)

func at(row string) Site { return Site{"Staff", Key{"email", row}} }

// had returns a member whose change starts from the ETag v1, or inserts the entity if it had no site.
func member(entity Key, base string, had []Site, has ...Site) Member {
	return Member{Entity: entity, Base: base, Had: had, Has: has}
}

func describe(p *Place) string {
	name := func(m *Member) string {
		if m == nil {
			return "-"
		}
		return m.Entity.Row
	}
	text := fmt.Sprintf("%s %s>%s %d", p.Row, name(p.Giver), name(p.Taker), p.Verb)
	if p.Fresh {
		text += " fresh"
	}
	return text
}

func TestPlan(t *testing.T) {
	one := func(s Site) []Site { return []Site{s} }
	for name, tc := range map[string]struct {
		members []Member
		without Rules
		want    []string
	}{
		"insert acquires":             {[]Member{member(ann, "", nil, home)}, 0, []string{"home ->ann 3 fresh"}},
		"key stays: hold":             {[]Member{member(ann, "v1", one(home), home)}, 0, []string{"home ann>ann 2"}},
		"delete holds":                {[]Member{member(ann, "v1", one(home))}, 0, []string{"home ann>- 2"}},
		"key changes":                 {[]Member{member(ann, "v1", one(work), home)}, 0, []string{"home ->ann 3 fresh", "work ann>- 2"}},
		"key passes: read first":      {[]Member{member(ann, "v1", one(home)), member(ben, "v1", nil, home)}, 0, []string{"home ann>ben 1"}},
		"keys are swapped":            {[]Member{member(ann, "v1", one(home), work), member(ben, "v1", one(work), home)}, 0, []string{"home ann>ben 1", "work ben>ann 1"}},
		"two had it: the taker holds": {[]Member{member(ann, "v1", one(home), home), member(ben, "v1", one(home))}, 0, []string{"home ann>ann 2"}},
		"nothing elsewhere":           {[]Member{member(ann, "v1", nil)}, 0, nil},
		"without Hold":                {[]Member{member(ann, "v1", one(home), home)}, Hold, []string{"home ann>ann 0"}},
		"without WriteNext":           {[]Member{member(ann, "v1", one(home)), member(ben, "v1", nil, home)}, WriteNext, []string{"home ann>ben 2"}},
	} {
		places, twice := Plan("c", tc.members, tc.without)
		var got []string
		for i := range places {
			got = append(got, describe(&places[i]))
		}
		if !slices.Equal(got, tc.want) || twice != nil {
			t.Errorf("%s: %q, %v", name, got, twice)
		}
	}
	if _, twice := Plan("c", []Member{member(ann, "v1", one(home), home), member(ben, "", nil, home)}, 0); twice == nil || *twice != home {
		t.Errorf("two members take a key: %v", twice)
	}
}

// TestGroups: one transaction for each partition of a table, with at most 100 rows.
func TestGroups(t *testing.T) {
	m := member(ann, "", nil, home, Site{"Other", Key{"email", "x"}}, Site{"Staff", Key{"badge", "x"}})
	for i := range 100 {
		m.Has = append(m.Has, at(fmt.Sprint(i)))
	}
	places, _ := Plan("c", []Member{m}, 0)
	var sizes []int
	for _, g := range Groups(places) {
		sizes = append(sizes, len(g))
	}
	if !slices.Equal(sizes, []int{1, 1, 100, 1}) {
		t.Errorf("groups of %v places", sizes)
	}
	if Groups(nil) != nil {
		t.Error("no places have groups")
	}
}

// TestMark goes through the requests that mark a place.
func TestMark(t *testing.T) {
	insert, hold := member(ann, "", nil, home), member(ann, "v1", []Site{home}, home)
	p := only(t, insert)
	wantRow(t, p.Content(), Row{Names: []Key{ann}, Mark: "c", Acquirer: "c"})
	p.Refused()
	if p.Verb != Read {
		t.Errorf("a row is in the way: %d", p.Verb)
	}
	if v := p.Decide(&Row{}, nil); v != Allowed || p.Verb != Insert || !p.Fresh {
		t.Errorf("the row has gone: %d, %s", v, describe(p))
	}
	p.Wrote("e1")
	if p.Verb != None || p.Mark != "e1" {
		t.Errorf("marked: %+v", p)
	}
	p = only(t, hold)
	wantRow(t, p.Content(), Row{Mark: "c"})
	p.Refused()
	if p.Verb != Insert || p.Fresh {
		t.Errorf("a held row is missing: %s", describe(p))
	}
	wantRow(t, p.Content(), Row{Names: []Key{ann}, Mark: "c", Acquirer: "c", Base: "v1"})
	p = only(t, member(ann, "v1", []Site{home}), member(ben, "w1", nil, home))
	p.Decide(&Row{}, nil)
	if p.Verb != Insert || p.Fresh {
		t.Errorf("a row that passes is missing: %s", describe(p))
	}
	wantRow(t, p.Content(), Row{Names: []Key{ann, ben}, Mark: "c", Acquirer: "c", Base: "w1"})
	p = only(t, hold)
	p.without = InsertMissing
	if p.Refused(); p.Verb != None {
		t.Errorf("without InsertMissing: %s", describe(p))
	}
}

// only returns the place of home for the members of change c.
func only(t *testing.T, members ...Member) *Place {
	t.Helper()
	places, twice := Plan("c", members, 0)
	if len(places) != 1 || twice != nil {
		t.Fatalf("%d places, %v", len(places), twice)
	}
	return &places[0]
}

func wantRow(t *testing.T, got, want Row) {
	t.Helper()
	if !slices.Equal(got.Names, want.Names) {
		t.Errorf("the row names %v, not %v", got.Names, want.Names)
	}
	if got.Names, want.Names = nil, nil; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v, not %+v", got, want)
	}
}

// TestAfter: settle only after success, release fresh rows only, and write nothing after an unknown outcome or without the mark's ETag.
func TestAfter(t *testing.T) {
	taken, gone := Place{Taker: &Member{}, Mark: "e1"}, Place{Giver: &Member{}, Mark: "e1"}
	fresh, unmarked := taken, taken
	fresh.Fresh, unmarked.Mark = true, ""
	without := func(p Place, r Rules) Place { p.without = r; return p }
	for name, tc := range map[string]struct {
		p    Place
		want [3]Verb // after Committed, Refused, Unknown
	}{
		"stays or was acquired":     {taken, [3]Verb{Replace, None, None}},
		"goes":                      {gone, [3]Verb{Delete, None, None}},
		"fresh":                     {fresh, [3]Verb{Replace, Read, None}},
		"no ETag":                   {unmarked, [3]Verb{}},
		"without SettleCommitted":   {without(taken, SettleCommitted), [3]Verb{Replace, Replace, None}},
		"without ReleaseFresh":      {without(taken, ReleaseFresh), [3]Verb{Replace, Read, None}},
		"without LookBeforeRelease": {without(fresh, LookBeforeRelease), [3]Verb{Replace, Delete, None}},
		"without LeaveUnknown":      {without(fresh, LeaveUnknown), [3]Verb{Replace, Read, Read}},
	} {
		for o, want := range tc.want {
			if got := tc.p.After(Outcome(o)); got != want {
				t.Errorf("%s, outcome %d: %d, not %d", name, o, got, want)
			}
		}
	}
	if taken.Release(Seen{ETag: "v2", Has: true}) != None || taken.Release(Seen{ETag: "v1"}) != Delete {
		t.Error("a row is released although its entity has the key, or is not released")
	}
}
