package marks

import (
	"slices"
	"testing"
	"time"
)

// row returns a row that was read while its mark was young.
func row(mark, acquirer, base string, names ...Key) Row {
	return Row{Names: names, Mark: mark, Acquirer: acquirer, Base: base, ETag: "e1", Written: time.Unix(0, 0), Answered: time.Unix(1, 0)}
}

func expired(r Row) Row {
	r.Answered = r.Written.Add(Term + Grace)
	return r
}

// TestDecide: may c write its mark over a row?
func TestDecide(t *testing.T) {
	insert, take := member(ann, "", nil, home), member(ann, "v1", nil, home)
	pass := []Member{member(ann, "v1", []Site{home}), member(ben, "w1", nil, home)}
	none, v1, v2, w1 := Seen{}, Seen{ETag: "v1"}, Seen{ETag: "v2"}, Seen{ETag: "w1"}
	has := func(s Seen) Seen { s.Has = true; return s }
	settled := Row{Names: []Key{ann}, Version: "v1", ETag: "e1"}
	for name, tc := range map[string]struct {
		members []Member
		row     Row
		seen    []Seen
		want    Verdict
		fresh   bool
		without Rules
	}{
		"a member is not at its base":                                           {[]Member{take}, row("d", "", "", ann), []Seen{v2}, Conflict, false, 0},
		"a member is not at its base … and the rule is dropped":                 {[]Member{take}, row("d", "", "", ann), []Seen{v2}, Allowed, false, AtBase},
		"a member is not at its base … and is inserted":                         {[]Member{insert}, row("d", "", "", ann), []Seen{v1}, Exists, false, 0},
		"a member at its base":                                                  {[]Member{take}, row("d", "d", "v1", ann), []Seen{v1}, Allowed, false, 0},
		"an insert of the member is under way":                                  {[]Member{insert}, row("d", "d", "", ann), []Seen{none}, Inserting, false, 0},
		"an insert of the member is under way … and the rule is dropped":        {[]Member{insert}, row("d", "d", "", ann), []Seen{none}, Allowed, false, InsertUnderWay},
		"an insert of the member is under way … and over":                       {[]Member{insert}, expired(row("d", "d", "", ann)), []Seen{none}, Allowed, false, 0},
		"another has the key":                                                   {[]Member{take}, row("d", "", "", ben), []Seen{has(w1)}, Duplicate, false, 0},
		"another has the key, settled":                                          {[]Member{take}, Row{Names: []Key{ben}, ETag: "e1"}, nil, Duplicate, false, 0},
		"another has lost the key":                                              {[]Member{take}, row("d", "", "", ben), []Seen{w1}, Allowed, true, 0},
		"another is taking it":                                                  {[]Member{take}, row("d", "d", "w1", ben), []Seen{w1}, Taking, false, 0},
		"another is taking it … and the rule is dropped":                        {[]Member{take}, row("d", "d", "w1", ben), []Seen{w1}, Allowed, true, WaitTerm},
		"another is taking it … and has changed since":                          {[]Member{take}, row("d", "d", "w1", ben), []Seen{{ETag: "w2"}}, Allowed, true, 0},
		"another is taking it … and its term has passed":                        {[]Member{take}, expired(row("d", "d", "w1", ben)), []Seen{w1}, Allowed, true, 0},
		"another is inserted with it":                                           {[]Member{take}, row("d", "d", "", ben), []Seen{w1}, Taking, false, 0},
		"another is inserted with it … judged by the version":                   {[]Member{take}, row("d", "d", "", ben), []Seen{w1}, Allowed, true, InsertByTerm},
		"another is inserted with it … and its term has passed":                 {[]Member{take}, expired(row("d", "d", "", ben)), []Seen{w1}, Allowed, true, 0},
		"the own answer was lost":                                               {[]Member{take}, row("c", "c", "v1", ann), nil, Allowed, true, 0},
		"no copy":                                                               {[]Member{take}, Row{ETag: "e1"}, nil, Foreign, false, 0},
		"passes, settled for the giver":                                         {pass, settled, nil, Allowed, false, 0},
		"passes, the giver has changed":                                         {pass, row("d", "", "", ann), []Seen{has(v2)}, Conflict, false, 0},
		"passes, the taker has changed":                                         {pass, row("d", "d", "w1", ann, ben), []Seen{has(v1), {ETag: "w2"}}, Conflict, false, 0},
		"passes, an earlier set passes it to the taker":                         {pass, row("d", "d", "w1", ann, ben), []Seen{has(v1), w1}, Allowed, false, 0},
		"passes, an earlier set passes it to another":                           {pass, row("d", "d", "x1", ann, cy), []Seen{has(v1), {ETag: "x1"}}, Taking, false, 0},
		"passes, an earlier set passes it to another … and the rule is dropped": {pass, row("d", "d", "x1", ann, cy), []Seen{has(v1), {ETag: "x1"}}, Allowed, false, StaysNamed},
		"passes, another has it by now":                                         {pass, row("d", "d", "x1", ann, cy), []Seen{v1, has(Seen{ETag: "x2"})}, Duplicate, false, 0},
		"passes, the giver is acquiring it itself":                              {pass, row("d", "d", "v1", ann), []Seen{has(v1)}, Allowed, false, 0},
		"takes, a set passes it from the member to another":                     {[]Member{take}, row("d", "d", "w1", ann, ben), []Seen{v1, w1}, Taking, false, 0},
		"takes, a set has failed to pass it to the member":                      {[]Member{take}, expired(row("d", "d", "v1", ben, ann)), []Seen{w1, v1}, Allowed, false, 0},
		"takes, a set passes it to the member, and the giver has":               {[]Member{take}, row("d", "d", "v1", ben, ann), []Seen{has(w1), v1}, Duplicate, false, 0},
	} {
		places, _ := Plan("c", tc.members, tc.without)
		p := &places[0]
		if asks := p.Asks(&tc.row); len(asks) != len(tc.seen) {
			t.Errorf("%s: %d entities are read", name, len(asks))
			continue
		}
		got := p.Decide(&tc.row, tc.seen)
		if got != tc.want || got == Allowed && p.Fresh != tc.fresh {
			t.Errorf("%s: verdict %d, fresh %v", name, got, p.Fresh)
		}
		if own := p.Mark == "e1"; got == Allowed && !own && (p.Verb != Replace || p.Under != "e1") || own && p.Verb != None {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// TestFreshOnce: a row that was taken over from another change of the entity is not fresh, also if the answer is lost.
func TestFreshOnce(t *testing.T) {
	for rule, fresh := range map[Rules]bool{0: false, FreshOnce: true} {
		places, _ := Plan("c", []Member{member(ann, "v1", nil, home)}, rule)
		p, other, own := &places[0], row("d", "d", "v1", ann), row("c", "c", "v1", ann)
		p.Decide(&other, []Seen{{ETag: "v1"}})
		p.Refused()
		if p.Decide(&own, nil); p.Fresh != fresh || p.Verb != None || p.Mark != "e1" {
			t.Errorf("without %v: %+v", rule, p)
		}
	}
}

// TestAsks: a settled row answers for its owner.
func TestAsks(t *testing.T) {
	p := only(t, member(ann, "v1", []Site{home}), member(ben, "w1", nil, home))
	settled := func(version string, of Key) Row { return Row{Names: []Key{of}, Version: version, ETag: "e1"} }
	for name, tc := range map[string]struct {
		row  Row
		want []Key
	}{
		"marked":                         {row("d", "", "", ann, cy), []Key{ann, cy}},
		"the own mark":                   {row("c", "c", "w1", ann, ben), nil},
		"settled for another":            {settled("x1", cy), nil},
		"settled for a member":           {settled("v1", ann), nil},
		"settled for another version":    {settled("v2", ann), []Key{ann}},
		"settled, the ETag is not known": {settled("", ann), []Key{ann}},
		"no copy":                        {Row{ETag: "e1"}, nil},
	} {
		if got := p.Asks(&tc.row); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
