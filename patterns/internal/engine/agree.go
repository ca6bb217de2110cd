package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/marks"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Site is a row of an index that a job makes agree with the entities that may have its key.
type Site struct {
	Key    entity.Key // of the row
	Entity entity.Key // for which the job has come
	Free   bool       // the job has just seen that the row does not exist, so that it is not read

	Finding marks.Finding
	Mark    azcore.ETag // of the mark that the job has written, "" for none
	Err     error       // why the row could not be made to agree

	row tablerow.Row // to write
}

// Agree compares rows of one table with their entities: the rows first, then the entities. It settles rows whose mark has expired, and marks
// those that are damaged, so that their readers are right from then on. id names the job. An error concerns all sites. Requests: those of two
// FetchMany, and 1 for each 100 rows of a partition.
func (r *Engine) Agree(ctx context.Context, op string, table *core.Table, id string, sites []*Site) error {
	var keys []entity.Key
	for _, s := range sites {
		if !s.Free {
			keys = append(keys, s.Key)
		}
	}
	rows, err := FetchMany(ctx, table, op, keys)
	if err != nil {
		return err
	}
	there := make([]marks.Row, len(sites))
	var owners []marks.Key
	for i, s := range sites {
		there[i] = marksOf(rows[s.Key])
		owners = append(owners, there[i].Owners(marks.Key(s.Entity))...)
	}
	entities, err := r.owners(ctx, op, owners)
	if err != nil {
		return err
	}
	for i, s := range sites {
		s.Err = r.agreeOne(table, rows[s.Key], &there[i], s, id, entities, withoutRules(ctx))
	}
	return writeSites(ctx, op, table, sites)
}

func (r *Engine) agreeOne(table *core.Table, row *tablerow.Row, m *marks.Row, s *Site, id string, entities map[marks.Key]*holder, rules marks.Rules) error {
	var has []marks.Holder
	var first *holder
	for _, key := range m.Owners(marks.Key(s.Entity)) {
		now := entities[key].at(r, table, s.Key)
		if now.err != nil {
			return now.err
		}
		if now.copied != nil {
			first = cmp.Or(first, now)
			has = append(has, marks.Holder{Entity: key, ETag: string(now.row.ETag)})
		}
	}
	same := false
	if first != nil && row != nil && row.Problem == nil {
		wanted := r.copyOf(first.pattern, first.row, first.copied)
		same = sameCopy(row, &wanted)
	}
	a := marks.Agree(m, has, same, id, rules)
	s.Finding = a.Finding
	switch a.Finding {
	case marks.Twice:
		return &entity.Error{Op: opMark, Table: table.Name(), Key: s.Key, Kind: entity.ErrDuplicate, Err: OwnerOf(row)}
	case marks.InTheWay:
		return &entity.Error{Op: opMark, Table: table.Name(), Key: s.Key, Kind: entity.ErrDuplicate,
			Err: OwnerOf(row)}
	}
	if a.Verb == marks.None || r.Schema.OtherBuilds && a.Row.Mark == "" {
		return nil
	}
	s.row = tablerow.Row{Key: s.Key, Own: outsideOf(&a.Row)}
	if a.Verb == marks.Replace && a.Row.Mark == "" {
		s.row = r.copyOf(first.pattern, first.row, first.copied)
	}
	switch a.Verb {
	case marks.Insert:
		s.row.Verb = wire.VerbInsert
	case marks.Replace:
		s.row.Verb, s.row.IfMatch = wire.VerbReplace, azcore.ETag(m.ETag)
	case marks.Delete:
		s.row.Verb, s.row.IfMatch = wire.VerbDelete, azcore.ETag(m.ETag)
	}
	return nil
}

// sameCopy reports whether a stored copy is the wanted one.
func sameCopy(row, wanted *tablerow.Row) bool {
	return row.Own.Incarnation == wanted.Own.Incarnation && row.Own.Outside.Version == wanted.Own.Outside.Version && row.Own.Primary == wanted.Own.Primary &&
		row.Own.Outside.Partition == wanted.Own.Outside.Partition && len(row.Properties) == len(wanted.Properties) &&
		!slices.ContainsFunc(wanted.Properties, func(p entity.Property) bool { return row.Properties.Get(p.Name) != p.Value })
}

// Settle settles the sites that a job has marked, under the ETags of the marks: those of entities that still have the key. The others are deleted if the
// job has waited until no change under way can have relied on the rows before (tidy), and stay marked otherwise.
func (r *Engine) Settle(ctx context.Context, op string, table *core.Table, tidy bool, sites []*Site) error {
	sites = slices.DeleteFunc(slices.Clone(sites), func(s *Site) bool { return s.Mark == "" || r.Schema.OtherBuilds })
	var owners []marks.Key
	for _, s := range sites {
		owners = append(owners, marks.Key(s.Entity))
	}
	entities, err := r.owners(ctx, op, owners)
	if err != nil {
		return err
	}
	for _, s := range sites {
		now := entities[marks.Key(s.Entity)].at(r, table, s.Key)
		s.row = tablerow.Row{}
		switch {
		case now.err != nil:
			s.Err = now.err
			continue
		case now.copied != nil:
			s.row = r.copyOf(now.pattern, now.row, now.copied)
			s.row.Verb = wire.VerbReplace
		case tidy:
			s.row = tablerow.Row{Verb: wire.VerbDelete, Key: s.Key}
		default:
			continue
		}
		s.row.IfMatch = s.Mark
	}
	return writeSites(ctx, op, table, sites)
}

// writeSites writes the rows of sites in transactions of one partition each. A row that has changed since it was read is left out: whoever changed it
// has made it right.
func writeSites(ctx context.Context, op string, table *core.Table, sites []*Site) error {
	open := slices.DeleteFunc(slices.Clone(sites), func(s *Site) bool { return s.row.Key == (entity.Key{}) || s.Err != nil })
	slices.SortStableFunc(open, func(a, b *Site) int {
		return cmp.Or(cmp.Compare(a.Key.Partition, b.Key.Partition), cmp.Compare(a.Key.Row, b.Key.Row))
	})
	for open = firstOfEach(table, open); len(open) > 0; {
		n := 0
		for n < len(open) && n < entity.MaxTransactionOperations && open[n].Key.Partition == open[0].Key.Partition {
			n++
		}
		if err := writeTogether(ctx, op, table, open[:n]); err != nil {
			return err
		}
		open = open[n:]
	}
	return nil
}

// firstOfEach returns the first site of each row, given sites in the order of their rows. If other entities need a missing row, too, they are told.
func firstOfEach(table *core.Table, sites []*Site) (first []*Site) {
	for _, s := range sites {
		n := len(first)
		if n == 0 || first[n-1].Key != s.Key {
			first = append(first, s)
			continue
		}
		if s.Finding == marks.Missing && s.Entity != first[n-1].Entity {
			s.Err = &entity.Error{Op: opMark, Table: table.Name(), Key: s.Key, Kind: entity.ErrDuplicate, Err: OwnerOf(&first[n-1].row)}
		}
	}
	return first
}

func writeTogether(ctx context.Context, op string, table *core.Table, sites []*Site) error {
	sites = slices.Clone(sites)
	for len(sites) > 0 {
		writes := make([]tablerow.Row, len(sites))
		for i, s := range sites {
			writes[i] = s.row
		}
		etags, _, err := table.Commit(ctx, op, writes...)
		if err == nil {
			for i, s := range sites {
				if s.row.Own.Outside.Mark != "" {
					s.Mark = etags[i]
				}
			}
			return nil
		}
		refused := refusedRow(err, len(sites))
		if refused < 0 {
			return onlyMarked(err)
		}
		sites[refused].row = tablerow.Row{}
		sites = slices.Delete(sites, refused, refused+1)
	}
	return nil
}

// owners reads entities by their own rows.
func (r *Engine) owners(ctx context.Context, op string, keys []marks.Key) (map[marks.Key]*holder, error) {
	all := map[marks.Key]*holder{}
	var wanted []entity.Key
	for _, key := range keys {
		if all[key] == nil {
			all[key], wanted = &holder{}, append(wanted, entity.Key(key))
		}
	}
	own, err := r.FetchOwnAll(ctx, op, wanted)
	if err != nil {
		return nil, err
	}
	for i, row := range own {
		if row == nil {
			continue
		}
		h := all[marks.Key(wanted[i])]
		h.value, h.row, h.err = r.LoadOwn(ctx, op, row.Key, row)
		if e := AsError(h.err); h.err != nil && (e == nil || !e.OfRow) {
			return nil, h.err
		}
		if h.value == nil && r.Owns(row) {
			h.row = nil // deleted meanwhile
		}
	}
	return all, nil
}

// at returns the entity as the holder of a key of a table.
func (h *holder) at(r *Engine, table *core.Table, key entity.Key) *holder {
	if h.value == nil || h.err != nil {
		return h
	}
	now := *h
	now.pattern, now.copied, now.err = r.copyAt(h.value, table, key)
	return &now
}
