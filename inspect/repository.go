package inspect

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Repository does what As does for the entities of a repository in its table. It also reports what Verify and
// Rebuild would find: which rows are the repository's own, entities under a key other than Schema.Key
// returns, entities that an index refuses, index keys that two rows want, and what Rebuild costs. You can
// call it before the patterns have stored anything.
//
// Requests: those of Table, and as many again for a second scan if two rows may want the same key.
func Repository[T any](ctx context.Context, r *patterns.Repository[T], options *Options) (*Report, error) {
	const op = "inspect.Repository"
	host := patterns.HostOf(r)
	if host == nil {
		return nil, errs.Wiringf(op, "", "the repository is nil; make it with patterns.NewRepository")
	}
	typed, err := newTypeJudge[T](op, host.Table())
	if err != nil {
		return nil, err
	}
	o, err := options.checked(op, host.Table())
	if err != nil {
		return nil, err
	}
	j := &repositoryJudge[T]{typeJudge: typed, host: host, patterns: host.Patterns(), prices: *o.Prices, keys: newTaken(o.MaxKeys)}
	for _, p := range j.patterns {
		j.sealed = j.sealed || p.Transform != nil || p.Layout != nil
	}
	j.cost = newCost(j.patterns)
	return inspect(ctx, op, host.Table(), options, j)
}

// repositoryJudge implements judge for Repository.
type repositoryJudge[T any] struct {
	*typeJudge[T]
	host     driver.Host[T]
	patterns []driver.Implementation[T]
	sealed   bool // a pattern transforms entities, so that only the repository can read them
	prices   Prices

	own, library, neither  int64
	otherKeys, sealedCount int64
	otherExamples          []Key
	refused                reasons[refusal]
	keys                   *taken
	cost                   *cost
}

// refusal is the reason why an index makes no copy.
type refusal struct{ pattern, reason string }

// row implements judge.
func (j *repositoryJudge[T]) row(_ context.Context, row *core.Row, k kind) error {
	if k != isEntity {
		j.library++
		return nil
	}
	j.keys.add(j.standing(row))
	if !j.host.Owns(row.Key, row.Properties) {
		j.neither++
		return nil
	}
	j.cost.read++
	if j.sealed && has(row, rows.Incarnation) {
		j.own++
		j.read++
		j.sealedCount++
		return nil
	}
	v := j.value(row)
	if v == nil {
		j.neither++
		return nil
	}
	j.own++
	j.finish(v, row)
	if j.host.KeyOf(v) != row.Key {
		if j.otherKeys++; len(j.otherExamples) < mostExamples {
			j.otherExamples = append(j.otherExamples, keyOf(row.Key))
		}
		return nil
	}
	keys, l := j.wants(v, row, true)
	for _, w := range keys {
		j.keys.add(w)
	}
	j.cost.entity(row.Key.Partition, l)
	return nil
}

// standing returns the wanted key that stands for the row itself, which has this key already.
func (j *repositoryJudge[T]) standing(row *core.Row) wanted {
	return wanted{table: j.host.Table().Name(), key: row.Key, by: row.Key}
}

// finish sets the fields of a value that are its row's keys and metadata.
func (j *repositoryJudge[T]) finish(v *T, row *core.Row) {
	codec := (*core.Codec)(j.codec)
	codec.Finish(row, row.Key, v)
}

// wants returns the keys of an entity's copies, and what its patterns have not stored for it yet. If tell is true, it
// records why an index refuses the entity.
func (j *repositoryJudge[T]) wants(v *T, row *core.Row, tell bool) (keys []wanted, l lack) {
	refuse := func(pattern string, err error) {
		if err != nil && tell {
			j.refused.add(refusal{pattern, reasonOf(err)}, row.Key)
		}
	}
	listed, _ := text(row, rows.Copies)
	for _, p := range j.patterns {
		if p.Copies != nil {
			copies, err := guarded(func() ([]driver.Copy, error) { return p.Copies(v) })
			refuse(p.Name, err)
			for _, c := range copies {
				keys = append(keys, wanted{p.Name, j.host.Table().Name(), tables.Key{Partition: row.Key.Partition, Row: c.RowKey}, row.Key})
			}
			if !slices.Contains(strings.Split(listed, ","), p.Name) {
				l.copies += len(copies)
			}
		}
		if p.Outside != nil {
			copies, err := guarded(func() ([]driver.OutsideCopy, error) { return p.Outside.Copies(v) })
			refuse(p.Name, err)
			table := j.host.Table()
			if p.Outside.Table != nil {
				table = p.Outside.Table
			}
			for _, c := range copies {
				l.outside = append(l.outside, wanted{p.Name, table.Name(), c.Key, row.Key})
			}
		}
		if p.Audit != nil && p.Audit.Expected != nil {
			expected, err := guarded(func() ([]driver.Fact, error) { return p.Audit.Expected(v) })
			refuse(p.Name, err)
			for _, fact := range expected {
				if p.OutsideKeys == nil {
					l.lists = append(l.lists, fact.Place)
				} else {
					l.facts++
				}
			}
		}
	}
	return append(keys, l.outside...), l
}

// guarded converts a panic of a key function into an error: the function may get rows that its program has never read.
func guarded[R any](call func() (R, error)) (result R, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the key function panics with a %T", p)
		}
	}()
	return call()
}

// garbled implements judge.
func (j *repositoryJudge[T]) garbled(e *tables.Error) {
	j.typeJudge.garbled(e)
	j.neither++
}

// page implements judge.
func (j *repositoryJudge[T]) page() { j.cost.page() }

// confirm implements judge: if hashes of keys were equal, it scans again and compares the keys themselves.
func (j *repositoryJudge[T]) confirm(ctx context.Context, s *scan) error {
	if !j.keys.doubtful() {
		return nil
	}
	return s.run(ctx, &visitor{page: func() {}, row: func(_ context.Context, row *core.Row) error {
		if kindOf(row) != isEntity {
			return nil
		}
		j.keys.confirm(j.standing(row))
		v := new(T)
		if !j.host.Owns(row.Key, row.Properties) || j.sealed && has(row, rows.Incarnation) || j.codec.Decode(row.Properties, v) != nil {
			return nil
		}
		if j.finish(v, row); j.host.KeyOf(v) != row.Key {
			return nil
		}
		keys, _ := j.wants(v, row, false)
		for _, w := range keys {
			j.keys.confirm(w)
		}
		return nil
	}})
}

// report implements judge.
func (j *repositoryJudge[T]) report(r *Report) {
	j.typeJudge.report(r)
	j.cost.page()
	s := &Schema{Repository: j.host.Table().Name(), Own: j.own, Library: j.library, Neither: j.neither, OtherKeys: j.otherKeys,
		OtherKeysExamples: append([]Key{}, j.otherExamples...), Sealed: j.sealedCount, Refused: []RefusedEntity{}, KeysNotCompared: j.keys.skipped}
	for _, x := range j.refused.list {
		s.Refused = append(s.Refused, RefusedEntity{x.of.pattern, x.of.reason, x.rows, x.examples})
	}
	s.TakenKeys, s.OtherTakenKeys = j.keys.report()
	s.Rebuild = j.cost.report(j.prices)
	r.Schema = s
}

func has(row *core.Row, name string) bool {
	_, ok := text(row, name)
	return ok
}

// text returns a text among the library's own properties of a row.
func text(row *core.Row, name string) (string, bool) {
	for _, p := range row.System {
		if p.Name == name {
			return p.Value.Text()
		}
	}
	return "", false
}

// wanted is a key that a copy of an entity needs or, without a pattern, that a row has.
type wanted struct {
	pattern string
	table   string
	key     tables.Key
	by      tables.Key // the entity, or the row
}

// taken finds keys that several rows want. The first scan keeps a hash of 64 bits for each key; the second compares the keys whose hashes
// occurred twice.
type taken struct {
	seed    maphash.Seed
	most    int
	seen    map[uint64]struct{}
	skipped int64
	equal   map[uint64]bool // hashes that occurred twice

	by map[spot]*claimed
}

// spot is a key in a table.
type spot struct {
	table string
	key   tables.Key
}

type claimed struct {
	table    string
	patterns []string
	wanted   int64
	by       []Key
	last     tables.Key
}

func newTaken(most int) *taken {
	return &taken{seed: maphash.MakeSeed(), most: most, seen: map[uint64]struct{}{}, equal: map[uint64]bool{}, by: map[spot]*claimed{}}
}

// spotOf returns where a copy is wanted, with the table's name in lower case, since table names ignore case.
func spotOf(w wanted) spot { return spot{strings.ToLower(w.table), w.key} }

// mostEqual limits the hashes that occurred twice, and so the memory of the second scan.
const mostEqual = 100_000

// add records a key of the first scan.
func (t *taken) add(w wanted) {
	h := maphash.Comparable(t.seed, spotOf(w))
	if _, twice := t.seen[h]; twice {
		if len(t.equal) < mostEqual || t.equal[h] {
			t.equal[h] = true
		} else {
			t.skipped++
		}
		return
	}
	if len(t.seen) >= t.most {
		t.skipped++
		return
	}
	t.seen[h] = struct{}{}
}

// doubtful reports whether a second scan is needed. It frees the hashes of the first.
func (t *taken) doubtful() bool {
	t.seen = nil
	return len(t.equal) > 0
}

// confirm records a key of the second scan.
func (t *taken) confirm(w wanted) {
	at := spotOf(w)
	if !t.equal[maphash.Comparable(t.seed, at)] {
		return
	}
	c := t.by[at]
	if c == nil {
		c = &claimed{table: w.table}
		t.by[at] = c
	}
	if c.wanted > 0 && c.last == w.by && c.patterns[len(c.patterns)-1] == w.pattern {
		return // the same entity wants the key twice
	}
	if !slices.Contains(c.patterns, w.pattern) {
		c.patterns = append(c.patterns, w.pattern)
	}
	c.last = w.by
	if c.wanted++; len(c.by) < mostExamples {
		c.by = append(c.by, keyOf(w.by))
	}
}

// report returns at most mostProblems of the keys that several rows want, and how many more there are.
func (t *taken) report() (all []TakenKey, other int64) {
	all = []TakenKey{}
	for at, c := range t.by {
		if c.wanted > 1 {
			slices.Sort(c.patterns)
			all = append(all, TakenKey{c.patterns, c.table, keyOf(at.key), c.wanted, c.by})
		}
	}
	slices.SortFunc(all, func(a, b TakenKey) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Key.Partition, b.Key.Partition), cmp.Compare(a.Key.Row, b.Key.Row))
	})
	if n := len(all) - mostProblems; n > 0 {
		all, other = all[:mostProblems], int64(n)
	}
	return all, other
}
