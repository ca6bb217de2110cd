package interpartition_test

import (
	"cmp"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// ticket is an entity whose keys of all kinds are in indexes.
type ticket struct {
	tables.Meta
	PartitionKey, RowKey string
	Text                 string
	Number               int
}

// TestSpread: index keys of each kind are spread evenly over the partitions, and each stays in its own.
func TestSpread(t *testing.T) {
	const n = 10_000
	for name, key := range map[string]func(i int) compoundkey.Part{
		"numbers":         func(i int) compoundkey.Part { return compoundkey.Int(i, 8) },
		"distant numbers": func(i int) compoundkey.Part { return compoundkey.Int(i*1000, 8) },
		"emails":          func(i int) compoundkey.Part { return compoundkey.String(fmt.Sprintf("user%d@contoso.com", i)) },
		"pairs": func(i int) compoundkey.Part {
			return compoundkey.Tuple(compoundkey.String("Jones"), compoundkey.Int(i, 6))
		},
		"texts before one": func(i int) compoundkey.Part {
			return compoundkey.Tuple(compoundkey.Int(i, 6), compoundkey.String("open"))
		},
	} {
		for _, spread := range []int{2, 3, 8, 16, 60, 64} {
			x := interpartition.NewUnique("spread", func(v *ticket) compoundkey.Part { return key(v.Number) }, &interpartition.Options[ticket]{Spread: spread})
			copies := outsideCopies(t, x)
			counts := map[string]int{}
			for i := range n {
				counts[copies(&ticket{PartitionKey: "p", RowKey: "r", Number: i})[0].Partition]++
			}
			for partition, count := range counts {
				if most := 1.5 * n / float64(spread); float64(count) > most {
					t.Errorf("%s over %d: %d of %d are in %s", name, spread, count, n, partition)
				}
			}
			if len(counts) != spread {
				t.Errorf("%s over %d: %d partitions", name, spread, len(counts))
			}
		}
	}
}

// outsideCopies returns the keys of the copies that an index makes.
func outsideCopies[T any](t *testing.T, x *interpartition.Unique[T, compoundkey.Part]) func(*T) []tables.Key {
	t.Helper()
	account := harness.Account(t)
	repo := assert.Must[*patterns.Repository[T]](t)(patterns.NewRepository(account.Table("Copies"), patterns.Schema[T]{}, x))
	implementation := harness.PatternOf(t, repo, "spread")
	return func(v *T) (keys []tables.Key) {
		for _, c := range assert.Must[[]driver.OutsideCopy](t)(implementation.Outside.Copies(v)) {
			keys = append(keys, c.Key)
		}
		return keys
	}
}

func ticketText(v *ticket) string { return fmt.Sprintf("%q %d", v.Text, v.Number) }

// numbersOf reads to the end.
func numbersOf(t *testing.T, all iter.Seq2[*ticket, error]) (found []string) {
	t.Helper()
	for v, err := range all {
		assert.Check(t, err)
		found = append(found, ticketText(v))
	}
	return found
}

// byText leaves out the numbers.
func byText(all []string) (found []string) {
	for _, text := range all {
		found = append(found, text[:strings.LastIndex(text, " ")])
	}
	return found
}

func wantTickets(t *testing.T, read string, want, got []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", read, got, want)
	}
}

// TestSpans: each span selects the same entities in every kind of index, and in the same order: that of the index keys, then that of the entities' keys.
func TestSpans(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	w := newWorld(t, s, kind{})
	p := assert.Must[*process](t)(w.start(s))
	values := []string{"a", "a!", "a/b", "ab", "abc", "a b", "b", "ä", "", "a_b", "\U0001F600"}
	type keys = compoundkey.Interval[compoundkey.Part]
	type view struct {
		unique bool
		spread int
	}
	text := func(v *ticket) compoundkey.Part { return compoundkey.String(v.Text) }
	pair := func(v *ticket) compoundkey.Part {
		return compoundkey.Tuple(compoundkey.String(v.Text), compoundkey.Int(v.Number, 2))
	}
	var attached []patterns.Pattern[ticket]
	texts, pairs := map[view]*either[ticket]{}, map[view]*either[ticket]{}
	for i, v := range []view{{}, {spread: 1}, {spread: 5}, {unique: true}, {unique: true, spread: 5}} {
		options := &interpartition.Options[ticket]{Spread: v.spread}
		pairs[v] = newEither(v.unique, fmt.Sprint("pairs", i), pair, options)
		attached = append(attached, pairs[v])
		if !v.unique {
			texts[v] = newEither(false, fmt.Sprint("texts", i), text, options)
			attached = append(attached, texts[v])
		}
	}
	repo := assert.Must[*patterns.Repository[ticket]](t)(patterns.NewRepository(p.store.Table(s.TableName(t)), patterns.Schema[ticket]{Name: "tickets"}, attached...))
	assert.Check(t, p.store.Create(ctx))
	var all []*ticket
	for i, value := range values {
		for number := range 3 {
			v := &ticket{PartitionKey: []string{"p_1", "p2"}[number%2], RowKey: fmt.Sprintf("r_%d_%d", i, number), Text: value, Number: number}
			all = append(all, v)
		}
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, v := range all {
		assert.Check(t, repo.Insert(ctx, v))
	}
	slices.SortFunc(all, func(a, b *ticket) int {
		return cmp.Or(compoundkey.Compare(a.Text, b.Text), a.Number-b.Number)
	})
	for name, span := range map[string]struct {
		span []keys
		has  func(*ticket) bool
	}{
		"All":          {nil, func(*ticket) bool { return true }},
		"Exactly":      {[]keys{compoundkey.Exactly(compoundkey.String("a"))}, func(v *ticket) bool { return v.Text == "a" }},
		"Exactly !":    {[]keys{compoundkey.Exactly(compoundkey.String("a!"))}, func(v *ticket) bool { return v.Text == "a!" }},
		"Exactly \"\"": {[]keys{compoundkey.Exactly(compoundkey.String(""))}, func(v *ticket) bool { return v.Text == "" }},
		"Prefix":       {[]keys{compoundkey.Prefix(compoundkey.String("a"))}, func(v *ticket) bool { return strings.HasPrefix(v.Text, "a") }},
		"Prefix a/":    {[]keys{compoundkey.Prefix(compoundkey.String("a/"))}, func(v *ticket) bool { return strings.HasPrefix(v.Text, "a/") }},
		"Between": {[]keys{compoundkey.Between(compoundkey.String("a"), compoundkey.String("ab"))}, func(v *ticket) bool {
			return compoundkey.Compare(v.Text, "a") >= 0 && compoundkey.Compare(v.Text, "ab") < 0
		}},
		"Through": {[]keys{compoundkey.Through(compoundkey.String("a"), compoundkey.String("ab"))}, func(v *ticket) bool {
			return compoundkey.Compare(v.Text, "a") >= 0 && compoundkey.Compare(v.Text, "ab") <= 0
		}},
		"Below":   {[]keys{compoundkey.Below(compoundkey.String("ab"))}, func(v *ticket) bool { return compoundkey.Compare(v.Text, "ab") < 0 }},
		"AtLeast": {[]keys{compoundkey.AtLeast(compoundkey.String("ab"))}, func(v *ticket) bool { return compoundkey.Compare(v.Text, "ab") >= 0 }},
	} {
		want := numbersOf(t, func(yield func(*ticket, error) bool) {
			for _, v := range all {
				if span.has(v) && !yield(v, nil) {
					return
				}
			}
		})
		for v, x := range texts {
			wantTickets(t, fmt.Sprint("text ", name, v), byText(want), byText(numbersOf(t, x.Range(ctx, span.span...))))
		}
		for v, x := range pairs {
			wantTickets(t, fmt.Sprint("pair ", name, v), want, numbersOf(t, x.Range(ctx, span.span...)))
			query := x.Query(span.span...)
			if v.spread > 1 {
				query = query.AllowTableScan()
			}
			got := numbersOf(t, query.All(ctx))
			if v.spread > 1 {
				slices.Sort(got)
				wantTickets(t, fmt.Sprint("query ", name, v), slices.Sorted(slices.Values(want)), got)
				continue
			}
			wantTickets(t, fmt.Sprint("query ", name, v), want, got)
		}
	}
	for v, x := range pairs {
		one := compoundkey.Exactly(compoundkey.Tuple(compoundkey.String("a"), compoundkey.Int(1, 2)))
		wantTickets(t, fmt.Sprint("a tuple ", v), []string{`"a" 1`}, numbersOf(t, x.Range(ctx, one)))
		through := compoundkey.Through(compoundkey.Tuple(compoundkey.String("a"), compoundkey.Int(1, 2)), compoundkey.Tuple(compoundkey.String("a!"), compoundkey.Int(0, 2)))
		got := numbersOf(t, x.Range(ctx, through))
		if got[0] != `"a" 1` || got[1] != `"a" 2` || got[len(got)-1] != `"a!" 0` {
			t.Errorf("through a tuple %v: %q", v, got)
		}
		if _, err := x.Get(ctx, compoundkey.String("a")); err == nil {
			t.Errorf("%v: the beginning of a tuple is found as a key", v)
		}
		wantTickets(t, fmt.Sprint("All of the beginning of a tuple ", v), nil, numbersOf(t, x.All(ctx, compoundkey.String("a"))))
		found := assert.Must[*ticket](t)(x.Get(ctx, compoundkey.Tuple(compoundkey.String("a/b"), compoundkey.Int(2, 2))))
		wantTickets(t, fmt.Sprint("Get ", v), []string{`"a/b" 2`}, []string{ticketText(found)})
	}
	for v, x := range texts {
		wantTickets(t, fmt.Sprint("shared ", v), []string{`"a" 1`, `"a" 0`, `"a" 2`}, numbersOf(t, x.All(ctx, compoundkey.String("a"))))
		if found := assert.Must[*ticket](t)(x.Get(ctx, compoundkey.String("a!"))); found.Number != 1 || found.Text != "a!" {
			t.Errorf("%v: %+v", v, found)
		}
	}
}
