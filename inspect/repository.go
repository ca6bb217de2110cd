package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

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
		return nil, tables.Wiringf(op, "", "the repository is nil; make it with patterns.NewRepository")
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

// repositoryJudge implements judge for Repository: it determines how a repository would read the rows of its
// table.
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
func (j *repositoryJudge[T]) row(_ context.Context, row *tables.RawRow, k kind) error {
	if k != isEntity {
		j.library++
		return nil
	}
	j.keys.add(j.standing(row))
	if !j.owns(row) {
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

// standing returns the key of a row as a wanted key that is already taken.
func (j *repositoryJudge[T]) standing(row *tables.RawRow) wanted {
	return wanted{table: j.host.Table().Name(), key: row.Key, by: row.Key}
}

// owns reports whether a row is an entity of the repository.
func (j *repositoryJudge[T]) owns(row *tables.RawRow) bool {
	return j.host.Owns(row.Key, row.Properties)
}

// finish sets the fields of a value that come from its row's keys and metadata, not from properties.
func (j *repositoryJudge[T]) finish(v *T, row *tables.RawRow) {
	codec := tables.CodecOf(rows.Open, j.codec)
	codec.Finish(row, row.Key, v)
}

// wants returns the keys of an entity's copies, and the copies and facts that patterns have not stored for it
// yet. With tell it records why an index refuses the entity.
func (j *repositoryJudge[T]) wants(v *T, row *tables.RawRow, tell bool) (keys []wanted, l lack) {
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

// guarded converts a panic of a program's key function into an error, since the function gets rows that the
// program may never have read before.
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
	return s.run(ctx, &visitor{page: func() {}, row: func(_ context.Context, row *tables.RawRow) error {
		if kindOf(row) != isEntity {
			return nil
		}
		j.keys.confirm(j.standing(row))
		v := new(T)
		if !j.owns(row) || j.sealed && has(row, rows.Incarnation) || j.codec.Decode(row.Properties, v) != nil {
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

func has(row *tables.RawRow, name string) bool {
	_, ok := text(row, name)
	return ok
}

// text returns one of the library's own properties.
func text(row *tables.RawRow, name string) (string, bool) {
	for _, p := range row.System {
		if p.Name == name {
			return p.Value.Text()
		}
	}
	return "", false
}
