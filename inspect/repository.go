package inspect

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Repository is As for the entities of a repository. It also reports what Verify and Rebuild would find: the repository's own rows, entities under
// a key other than Schema.Key returns, entities that an index refuses, index keys that two rows want, and what Rebuild costs. The patterns need not
// have stored anything.
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

type repositoryJudge[T any] struct {
	*typeJudge[T]
	host     driver.Host
	patterns []*driver.Implementation
	sealed   bool // a pattern transforms entities: only the repository can read them
	prices   Prices

	own, library, neither  int64
	otherKeys, sealedCount int64
	otherExamples          []Key
	refused                reasons[refusal]
	keys                   *taken
	cost                   *cost
}

type refusal struct{ pattern, reason string }

// row implements judge.
func (j *repositoryJudge[T]) row(_ context.Context, row *tablerow.Row, k kind) error {
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
	if j.sealed && row.Own.Incarnation != "" {
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

// standing stands for the row itself, which has this key already.
func (j *repositoryJudge[T]) standing(row *tablerow.Row) wanted {
	return wanted{table: j.host.Table().Name(), key: row.Key, by: row.Key}
}

func (j *repositoryJudge[T]) finish(v *T, row *tablerow.Row) {
	codec := (*core.Codec)(j.codec)
	codec.Finish(row, row.Key, v)
}

// wants returns the keys of an entity's copies, and what is not stored for it yet. With tell, it records why an index refuses the entity.
func (j *repositoryJudge[T]) wants(v *T, row *tablerow.Row, tell bool) (keys []wanted, l lack) {
	refuse := func(pattern string, err error) {
		if err != nil && tell {
			j.refused.add(refusal{pattern, reasonOf(err)}, row.Key)
		}
	}
	listed := row.Own.Copies
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
		if p.Effect.List != nil && p.Effect.Expected != nil {
			expected, err := guarded(func() ([]driver.Fact, error) { return p.Effect.Expected(v) })
			refuse(p.Name, err)
			for _, fact := range expected {
				if p.Effect.OutsideKeys == nil {
					l.lists = append(l.lists, fact.Place)
				} else {
					l.facts++
				}
			}
		}
	}
	return append(keys, l.outside...), l
}

// guarded recovers a key function, which may get rows that its program has never read.
func guarded[R any](call func() (R, error)) (result R, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the key function panics with a %T", p)
		}
	}()
	return call()
}

func (j *repositoryJudge[T]) garbled(e *tables.Error) {
	j.typeJudge.garbled(e)
	j.neither++
}

// page implements judge.
func (j *repositoryJudge[T]) page() { j.cost.page() }

// confirm scans again if two rows may want a key, and compares the keys themselves.
func (j *repositoryJudge[T]) confirm(ctx context.Context, s *scan) error {
	if !j.keys.doubtful() {
		return nil
	}
	return s.run(ctx, &visitor{page: func() {}, row: func(_ context.Context, row *tablerow.Row) error {
		if kindOf(row) != isEntity {
			return nil
		}
		j.keys.confirm(j.standing(row))
		v := new(T)
		if !j.host.Owns(row.Key, row.Properties) || j.sealed && row.Own.Incarnation != "" || j.codec.Decode(row.Properties, v) != nil {
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

// wanted is a key of a copy or, without a pattern, of a row.
type wanted struct {
	pattern string
	table   string
	key     tables.Key
	by      tables.Key // entity or row
}

// taken finds keys that several rows want, in bounded memory: the first scan fills a Bloom filter, which suspects keys wanted twice and very few
// others; the second compares the suspects.
type taken struct {
	seed     maphash.Seed
	filter   []uint64
	room     int // that the filter still takes
	skipped  int64
	suspects map[uint64]struct{}

	by    map[spot]*claimed
	bytes int // of the map by, about
}

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
	return &taken{seed: maphash.MakeSeed(), filter: make([]uint64, most/64*filterBits+filterBits), room: most, suspects: map[uint64]struct{}{}, by: map[spot]*claimed{}}
}

// spotOf has the table's name in lower case, since table names ignore case.
func spotOf(w wanted) spot { return spot{strings.ToLower(w.table), w.key} }

const (
	// filterBits for each key, of which a key sets filterHashes: of a million different keys none is suspected, and of 10 million some 3,500.
	filterBits   = 12
	filterHashes = 8
	// mostSuspects limits the suspects, mostCompared the bytes of their keys.
	mostSuspects = 100_000
	mostCompared = 32 << 20
)

func (t *taken) bit(h uint64, turn int) (word, mask uint64) {
	step := h>>32 | h<<32 | 1
	at, _ := bits.Mul64(h+uint64(turn)*step, uint64(len(t.filter))*64)
	return at / 64, 1 << (at % 64)
}

func (t *taken) holds(h uint64) bool {
	for turn := range filterHashes {
		if word, mask := t.bit(h, turn); t.filter[word]&mask == 0 {
			return false
		}
	}
	return true
}

// add is for the first scan.
func (t *taken) add(w wanted) {
	h := maphash.Comparable(t.seed, spotOf(w))
	switch _, suspect := t.suspects[h]; {
	case suspect:
	case t.holds(h):
		if len(t.suspects) == mostSuspects {
			t.skipped++
			return
		}
		t.suspects[h] = struct{}{}
	case t.room == 0:
		t.skipped++
	default:
		t.room--
		for turn := range filterHashes {
			word, mask := t.bit(h, turn)
			t.filter[word] |= mask
		}
	}
}

// doubtful reports whether a second scan is needed. It frees the filter.
func (t *taken) doubtful() bool {
	t.filter = nil
	return len(t.suspects) > 0
}

// confirm is for the second scan.
func (t *taken) confirm(w wanted) {
	at := spotOf(w)
	if _, suspect := t.suspects[maphash.Comparable(t.seed, at)]; !suspect {
		return
	}
	c := t.by[at]
	if c == nil {
		if t.bytes > mostCompared {
			t.skipped++
			return
		}
		c = &claimed{table: w.table}
		t.by[at] = c
		t.bytes += 400 + len(at.table) + len(at.key.Partition) + len(at.key.Row)
	}
	if c.wanted > 0 && c.last == w.by && c.patterns[len(c.patterns)-1] == w.pattern {
		return // the entity wants the key twice
	}
	if !slices.Contains(c.patterns, w.pattern) {
		c.patterns = append(c.patterns, w.pattern)
	}
	c.last = w.by
	if c.wanted++; len(c.by) < mostExamples && t.bytes <= mostCompared {
		c.by = append(c.by, keyOf(w.by))
		t.bytes += 64 + len(w.by.Partition) + len(w.by.Row)
	}
}

// report returns at most mostProblems keys, and how many more there are.
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
