package marks

import (
	"maps"
	"slices"
	"testing"
	"time"
)

// TestFind: absent, settled, marked; the owner, then the entity to which the key passes, then the row again.
func TestFind(t *testing.T) {
	marked, passed := row("d", "d", "w1", ann), row("d", "d", "w1", ann, ben)
	settled, later := Row{Names: []Key{ann}, ETag: "e1"}, row("d", "", "", cy)
	later.ETag = "e2"
	type reads struct {
		row Row
		has []bool
	}
	for name, tc := range map[string]struct {
		find  Find
		reads []reads
		want  []Step
		who   Key
	}{
		"none":                           {Find{}, []reads{{}}, []Step{Nobody}, Key{}},
		"no copy":                        {Find{}, []reads{{row: Row{ETag: "e1"}}}, []Step{Nobody}, Key{}},
		"settled":                        {Find{}, []reads{{row: settled}}, []Step{Content}, Key{}},
		"settled, of an index of owners": {Find{OnlyOwner: true}, []reads{{settled, []bool{true}}}, []Step{Ask, Answer}, ann},
		"marked":                         {Find{}, []reads{{marked, []bool{true}}}, []Step{Ask, Answer}, ann},
		"the key has passed":             {Find{}, []reads{{passed, []bool{false, true}}}, []Step{Ask, Ask, Answer}, ben},
		"nobody, and the same row again": {Find{}, []reads{{marked, []bool{false}}, {row: marked}}, []Step{Ask, AskAgain, Nobody}, ann},
		"nobody, and another row":        {Find{}, []reads{{passed, []bool{false, false}}, {later, []bool{true}}}, []Step{Ask, Ask, AskAgain, Ask, Answer}, cy},
		"nobody, and the row has gone":   {Find{}, []reads{{marked, []bool{false}}, {}}, []Step{Ask, AskAgain, Nobody}, ann},
		"without FollowMarks":            {Find{Without: FollowMarks}, []reads{{row: marked}}, []Step{Content}, Key{}},
		"without ReadNext":               {Find{Without: ReadNext}, []reads{{passed, []bool{false}}, {row: passed}}, []Step{Ask, AskAgain, Nobody}, ann},
		"without RowAgain":               {Find{Without: RowAgain}, []reads{{marked, []bool{false}}}, []Step{Ask, Nobody}, ann},
	} {
		f, who := tc.find, Key{}
		var got []Step
		for _, r := range tc.reads {
			got = append(got, f.Row(r.row))
			for _, has := range r.has {
				who = f.Entity()
				got = append(got, f.Has(has))
			}
		}
		if !slices.Equal(got, tc.want) || who != tc.who && tc.who != (Key{}) {
			t.Errorf("%s: %v, %v", name, got, who)
		}
	}
}

// TestFindKeepsTheFirstAnswer: whether a mark has expired is judged by the answer before the entities were read.
func TestFindKeepsTheFirstAnswer(t *testing.T) {
	young := row("d", "d", "", ann)
	for rule, want := range map[Rules]bool{0: false, ExpiryFirst: true} {
		f := Find{Without: rule}
		f.Row(young)
		f.Has(false)
		if f.Row(expired(young)); f.Last.Expired() != want {
			t.Errorf("without %v: expired %v", rule, f.Last.Expired())
		}
	}
}

// TestAgree: what Verify finds at a row, and what Repair writes.
func TestAgree(t *testing.T) {
	holder, other := Holder{ann, "v1"}, Holder{ben, "w1"}
	settled, young := Row{Names: []Key{ann}, Version: "v1", ETag: "e1"}, row("d", "d", "v1", ann)
	for name, tc := range map[string]struct {
		row     Row
		has     []Holder
		same    bool
		want    Agreement
		without Rules
	}{
		"nothing":             {Row{}, nil, false, Agreement{}, 0},
		"missing":             {Row{}, []Holder{holder}, false, Agreement{Missing, true, Insert, Marked(ann, "job")}, 0},
		"right":               {settled, []Holder{holder}, true, Agreement{}, 0},
		"different":           {settled, []Holder{{ann, "v2"}}, false, Agreement{Different, true, Replace, Marked(ann, "job")}, 0},
		"settled for another": {settled, []Holder{other}, true, Agreement{Different, true, Replace, Marked(ben, "job")}, 0},
		"spurious":            {settled, nil, false, Agreement{Spurious, true, Replace, Marked(ann, "job")}, 0},
		"two have the key":    {settled, []Holder{holder, other}, true, Agreement{Finding: Twice, Confirm: true}, 0},
		"marked and young":    {young, []Holder{holder}, false, Agreement{}, 0},
		"marked and expired":  {expired(young), []Holder{holder}, false, Agreement{Old, false, Replace, Settled(ann, "v1")}, 0},
		"expired, nobody's":   {expired(young), nil, false, Agreement{Finding: Old, Verb: Delete}, 0},
		"no copy":             {Row{ETag: "e1"}, []Holder{holder}, false, Agreement{Finding: InTheWay}, 0},
		"no copy, no key":     {Row{ETag: "e1"}, nil, false, Agreement{}, 0},
		"eager":               {young, nil, false, Agreement{Finding: Old, Verb: Delete}, TidyAfterTerm},
		"settled at once":     {Row{}, []Holder{holder}, false, Agreement{Missing, true, Insert, Settled(ann, "v1")}, MarkDamage},
	} {
		got := Agree(&tc.row, tc.has, tc.same, "job", tc.without)
		wantRow(t, got.Row, tc.want.Row)
		if got.Finding != tc.want.Finding || got.Verb != tc.want.Verb || got.Confirm != tc.want.Confirm {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := settled.Owners(ann); !slices.Equal(got, []Key{ann}) {
		t.Errorf("the owner is read twice: %v", got)
	}
	if got := settled.Owners(ben); !slices.Equal(got, []Key{ann, ben}) {
		t.Errorf("not both are read: %v", got)
	}
}

// TestConfirmed: a finding holds if the row is the same, and for a missing row also if the entity is.
func TestConfirmed(t *testing.T) {
	is, again, none := Row{ETag: "e1"}, Row{ETag: "e2"}, Row{}
	v1, v2 := []Holder{{ann, "v1"}}, []Holder{{ann, "v2"}}
	for name, tc := range map[string]struct {
		was, again *Row
		now        []Holder
		without    Rules
		want       bool
	}{
		"the same row":                  {&is, &is, nil, 0, true},
		"another row":                   {&is, &again, v1, 0, false},
		"still missing":                 {&none, &none, v1, 0, true},
		"there by now":                  {&none, &is, v1, 0, false},
		"missing, another version":      {&none, &none, v2, 0, false},
		"missing, without a third read": {&none, &none, v2, ConfirmMissing, true},
	} {
		if got := Confirmed(tc.was, tc.again, v1, tc.now, tc.without); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestExpired: 35 s by the service's clock alone.
func TestExpired(t *testing.T) {
	now := time.Now()
	for after, want := range map[time.Duration]bool{-time.Hour: false, 0: false, Term: false, Term + Grace - 1: false, Term + Grace: true} {
		if r := (Row{Written: now, Answered: now.Add(after)}); r.Expired() != want {
			t.Errorf("after %v: %v", after, !want)
		}
	}
	for _, r := range []Row{{}, {Written: now}, {Answered: now}} {
		if r.Expired() {
			t.Errorf("%+v has expired", r)
		}
	}
	if got := Deadline(now).Sub(now); got != 25*time.Second {
		t.Errorf("a commit is sent until %v after the beginning", got)
	}
}

// TestParse: Parse reads what Each writes.
func TestParse(t *testing.T) {
	for name, r := range map[string]Row{
		"settled":        Settled(ann, "v1"),
		"without ETag":   Settled(ann, ""),
		"marked":         Marked(Key{}, "job"),
		"acquired":       {Names: []Key{ann}, Mark: "c", Acquirer: "c", Base: "v1"},
		"passed":         {Names: []Key{ann, ben}, Mark: "c", Acquirer: "c", Base: "w1"},
		"only the mark":  {Mark: "c"},
		"no copy at all": {},
	} {
		stored := map[string]string{}
		r.Each(func(name, text string) { stored[name] = text })
		if got := parse(stored); !slices.Equal(got.Names, r.Names) || got.Version != r.Version || got.Mark != r.Mark || got.Acquirer != r.Acquirer || got.Base != r.Base {
			t.Errorf("%s: %+v becomes %+v", name, r, got)
		}
	}
	forged := map[string]string{"_tpPartition": "Sales", "_tpPrimary": "ann", "_tpNext": "ben"}
	if got := parse(forged); !slices.Equal(got.Names, []Key{ann}) {
		t.Errorf("a forged name is believed: %v", got.Names)
	}
	want := []string{"_tpAcquirer", "_tpBase", "_tpMark", "_tpNext", "_tpPartition", "_tpPrimary", "_tpVersion"}
	stored := map[string]string{}
	(&Row{Names: []Key{ann, ben}, Version: "v", Mark: "m", Acquirer: "a", Base: "b"}).Each(func(name, text string) { stored[name] = text })
	if got := slices.Sorted(maps.Keys(stored)); !slices.Equal(got, want) {
		t.Errorf("stored properties %v", got)
	}
	if got := Filter("Age gt 3"); got != "(Age gt 3) or _tpMark gt ''" {
		t.Error(got)
	}
}

func parse(stored map[string]string) Row {
	return Parse(func(name string) (string, bool) {
		text, ok := stored[name]
		return text, ok
	})
}

func TestRuleNames(t *testing.T) {
	if EvaluateAgain.String() != "EvaluateAgain" || (Hold|AtBase).String() != "Hold, AtBase" || len(RuleNames()) != len(names) || EvaluateAgain != 1<<(len(names)-1) {
		t.Errorf("%v of %v", EvaluateAgain, RuleNames())
	}
}
