package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/marks"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
)

// OutsideSource returns a source of the entities that have copies in a table, in the order of the copies. A settled copy is the entity; a marked one
// is followed to the entity's own row. The source sends no Schema.Where, which compares the keys and properties of an entity's own row.
func (r *Engine) OutsideSource(table *core.Table, span compoundkey.Span, keep []string) *core.Source {
	onlyOwner := keep != nil && len(keep) == 0
	src, kept := r.Primary, r.keeps(keep)
	src.Table, src.Where, src.Kept, src.Span, src.Skips = table, nil, kept, span, r.Schema.Own.Keyed()
	src.Marked = rows.Mark
	src.System = append(slices.Clone(src.System), rows.Partition, rows.Version, rows.Mark, rows.Next)
	if onlyOwner {
		kept = nil // what is read is always the entity
	}
	src.Load = func(ctx context.Context, row *tablerow.Row, selected []string) (any, error) {
		m := marksOf(row)
		if !slices.ContainsFunc(m.Names, func(k marks.Key) bool { return r.Schema.Own.Keeps(entity.Key(k)) }) {
			return nil, nil
		}
		keys := onlyOwner && onlyKeys(selected)
		f := &following{engine: r, table: table, key: row.Key, selected: selected, kept: kept, keys: keys, find: marks.Find{OnlyOwner: onlyOwner && !keys, Without: marks.Waived(ctx)}}
		if step := f.find.Row(m); step == marks.Content {
			return f.load(ctx, row)
		}
		return core.Later(f.value), nil
	}
	return &src
}

// onlyKeys reports whether a query selects no property besides the entity's keys, which every copy has.
func onlyKeys(selected []string) bool {
	return selected != nil && !slices.ContainsFunc(selected, func(name string) bool { return name != "PartitionKey" && name != "RowKey" })
}

// following is a read through a marked copy.
type following struct {
	engine         *Engine
	table          *core.Table
	key            entity.Key // of the copy
	selected, kept []string
	keys           bool // nothing but keys is read, of a copy that holds only whose it is
	find           marks.Find
	meets          func(entity.Key, entity.Properties) bool
}

// load makes the value of a settled copy.
func (f *following) load(ctx context.Context, row *tablerow.Row) (any, error) {
	if f.keys {
		return f.bare(entity.Key{Partition: row.Own.Outside.Partition, Row: row.Own.Primary}), nil
	}
	return f.engine.loadCopy(ctx, f.table, row, f.selected, f.kept)
}

// bare returns an entity of which only the keys are known.
func (f *following) bare(key entity.Key) any {
	v, s := f.engine.Codec.NewWithState()
	*s = core.State{Key: key, Row: f.key.Row, Partial: true, Owner: f.engine}
	core.SetState(f.engine.Codec.Meta(v), s)
	return v
}

// value returns the entity that has the key of the copy, nil if none has, or if it does not meet the conditions. Requests: 1 for each entity that the
// copy names and, if none of them has the key, 1 for the copy; again if concurrent writers change them, up to Schema.MaxAttempts times.
func (f *following) value(ctx context.Context, meets func(entity.Key, entity.Properties) bool) (any, error) {
	r := f.engine
	f.meets = meets
	for attempt, step := 0, marks.Ask; attempt < r.Schema.MaxAttempts; {
		switch step {
		case marks.Ask:
			now, err := r.holder(ctx, "Get", f.table, entity.Key(f.find.Entity()), f.key)
			if err != nil {
				return nil, err
			}
			if now.copied == nil {
				step = f.find.Has(false)
				continue
			}
			f.tidy(ctx, now)
			v, err := f.through(ctx, now)
			if !errors.Is(err, driver.ErrOutdated) {
				return v, err
			}
			if err := backoff.Wait(ctx, attempt); err != nil { // a writer has replaced the entity meanwhile
				return nil, err
			}
			attempt++
		case marks.AskAgain:
			row, err := readElsewhere(ctx, f.table, "Get", f.key, r.Primary.Known)
			if err != nil {
				return nil, err
			}
			attempt++
			if step = f.find.Row(marksOf(row)); step == marks.Content {
				return f.settled(ctx, row)
			}
		default:
			f.tidy(ctx, &holder{})
			return nil, nil
		}
	}
	return nil, errReplaced(f.table, f.key)
}

// settled returns the entity of a copy that was settled while it was followed.
func (f *following) settled(ctx context.Context, row *tablerow.Row) (any, error) {
	if !f.meets(f.key, row.Properties) {
		return nil, nil
	}
	if f.selected != nil {
		row = row.With(row.Properties.Only(f.selected))
	}
	return f.load(ctx, row)
}

// tidy settles the copy if its mark is of a change that can no longer commit. now was read after the copy.
func (f *following) tidy(ctx context.Context, now *holder) {
	if r := f.engine; f.find.Last.Mark != "" && f.find.Last.Expired() && !r.Schema.ReadOnly && !r.Schema.OtherBuilds {
		r.Schema.Rest.Try(ctx, func(ctx context.Context) { r.settleExpired(ctx, f.table, f.key, &f.find.Last, now) })
	}
}

// through returns an entity as it would be read through its settled copy; ErrOutdated if a writer replaces the entity meanwhile.
func (f *following) through(ctx context.Context, now *holder) (any, error) {
	r, v := f.engine, now.value
	switch {
	case !f.meets(f.key, now.row.Properties.Only(f.kept)):
		return nil, nil
	case f.keys:
		return f.bare(now.row.Key), nil
	case f.selected != nil || f.kept != nil:
		var err error
		if v, _, err = r.loadPart(ctx, now.row, f.selected, f.kept); err != nil {
			return nil, err
		}
	}
	s := r.State(v)
	s.Row, s.Current = f.key.Row, true // the state is that of the entity's own row
	return v, nil
}

// holder is an entity that may have the key of a copy, as a read of its own row has shown it.
type holder struct {
	value   any
	row     *tablerow.Row // nil if it does not exist
	pattern *driver.Implementation
	copied  *driver.OutsideCopy // nil if it has not got the key
	err     error               // why that is not known; only of a job, which goes on
}

func (h *holder) seen() marks.Seen {
	if h.row == nil {
		return marks.Seen{}
	}
	return marks.Seen{ETag: string(h.row.ETag), Has: h.copied != nil}
}

// holder reads an entity, and finds out whether it has a copy under a key of a table. Requests: 1, and those for further rows and blobs.
func (r *Engine) holder(ctx context.Context, op string, table *core.Table, owner, at entity.Key) (*holder, error) {
	row, err := r.fetchOwn(ctx, op, owner)
	if err != nil || row == nil {
		return &holder{}, err
	}
	return r.holderOf(ctx, op, table, row, at)
}

// holderOf does what holder does for an own row that was read.
func (r *Engine) holderOf(ctx context.Context, op string, table *core.Table, row *tablerow.Row, at entity.Key) (*holder, error) {
	v, now, err := r.LoadOwn(ctx, op, row.Key, row)
	switch {
	case err != nil:
		return nil, err
	case v == nil && r.Owns(row):
		return &holder{}, nil // deleted meanwhile
	case v == nil:
		return &holder{row: row}, nil // an entity of another type
	}
	p, copied, err := r.copyAt(v, table, at)
	return &holder{value: v, row: now, pattern: p, copied: copied}, err
}

// copyAt returns the copy that an entity has under a key of a table, and its pattern; nil for none.
func (r *Engine) copyAt(v any, table *core.Table, key entity.Key) (*driver.Implementation, *driver.OutsideCopy, error) {
	for _, p := range r.Outside {
		if !OutsideTable(p).Same(table) || p.Outside.Owns != nil && !p.Outside.Owns(key) {
			continue
		}
		copies, err := CopiesOf(v).Outside(p)
		if err != nil {
			return nil, nil, PatternError(p, err, entity.ErrInvalid)
		}
		for i := range copies {
			if copies[i].Key == key {
				return p, &copies[i], nil
			}
		}
	}
	return nil, nil, nil
}

// readElsewhere reads a row of an index, nil if it does not exist. Requests: 1.
func readElsewhere(ctx context.Context, table *core.Table, op string, key entity.Key, known map[string]int) (*tablerow.Row, error) {
	row, err := table.Get(ctx, op, key, known)
	if errors.Is(err, entity.ErrNotFound) {
		return nil, nil
	}
	return row, err
}

// settleExpired makes a marked row that has expired agree with the entity that has its key, as read after it; none has if now has no copy.
func (r *Engine) settleExpired(ctx context.Context, table *core.Table, key entity.Key, m *marks.Row, now *holder) {
	var has []marks.Holder
	s := &Site{Key: key}
	if now.copied != nil {
		has = append(has, marks.Holder{Entity: marks.Key(now.row.Key), ETag: string(now.row.ETag)})
		s.row = r.copyOf(now.pattern, now.row, now.copied)
	}
	s.apply(marks.Agree(m, has, false, "", marks.Waived(ctx)).Verb, azcore.ETag(m.ETag))
	if _, err := writeSites(ctx, opSettle, table, []*Site{s}); err != nil {
		marksLeft(ctx, table, 1, err)
	}
}
