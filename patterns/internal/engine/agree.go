package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/marks"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Site is a row of an index that a job makes agree with the entities that may have its key.
type Site struct {
	Key    entity.Key // of the row
	Entity entity.Key // for which the job has come; once the job has marked the row, the entity that the mark names
	Free   bool       // the entity has the key, and the row is most likely missing, so that it is inserted without a read

	Finding marks.Finding
	Written bool        // the job has marked or settled the row
	Mark    azcore.ETag // of the mark that the job has written, "" for none
	Err     error       // why the row could not be made to agree, such as ErrDuplicate if another entity has the key as well

	row tablerow.Row // to write
}

// Expired reports whether a row of an index is marked for longer than any change can take.
func Expired(row *tablerow.Row) bool {
	m := marksOf(row)
	return m.Mark != "" && m.Expired()
}

// Leads reports whether a row of an index, nil for none, is marked and leads its readers to an entity that has the key, or may do so: the change that takes the
// key for the entity may just have replaced the row.
func Leads(row *tablerow.Row, holder entity.Key) bool {
	m := marksOf(row)
	return m.Mark != "" && (!m.Expired() || slices.Contains(m.Names, marks.Key(holder)))
}

// Agree compares rows of one table with their entities: the rows first, then the entities. It settles rows whose mark has expired, and marks
// those that are damaged, so that their readers are right from then on. id names the job. An error concerns all sites. Requests: those of two
// FetchMany, and 1 for each 100 rows of a partition; for a site that is Free, only the latter.
func (r *Engine) Agree(ctx context.Context, op string, table *core.Table, id string, sites []*Site) error {
	var free []*Site
	for _, s := range sites {
		if s.row, s.Mark, s.Err = (tablerow.Row{}), "", nil; s.Free {
			marked := marks.Marked(marks.Key(s.Entity), id)
			s.row = tablerow.Row{Own: outsideOf(&marked)}
			s.write(wire.VerbInsert, "")
			free = append(free, s)
		}
	}
	if _, err := writeSites(ctx, op, table, free); err != nil {
		return err
	}
	for len(sites) > 0 {
		var err error
		sites = slices.DeleteFunc(slices.Clone(sites), func(s *Site) bool { return s.Mark != "" })
		if sites, err = r.agree(ctx, op, table, id, sites); err != nil {
			return err
		}
	}
	return nil
}

// agree does what Agree does, with reads. It returns the sites whose row it has written for another one of the sites.
func (r *Engine) agree(ctx context.Context, op string, table *core.Table, id string, sites []*Site) (again []*Site, err error) {
	keys := make([]entity.Key, len(sites))
	for i, s := range sites {
		keys[i] = s.Key
	}
	rows, err := FetchMany(ctx, table, op, keys)
	if err != nil {
		return nil, err
	}
	var owners []marks.Key
	for _, s := range sites {
		m := marksOf(rows[s.Key])
		owners = append(owners, m.Owners(marks.Key(s.Entity))...)
	}
	entities, err := r.owners(ctx, op, owners, nil)
	if err != nil {
		return nil, err
	}
	for _, s := range sites {
		s.row, s.Free = tablerow.Row{}, false
		s.Err = r.agreeOne(ctx, table, rows[s.Key], s, id, entities)
	}
	return writeSites(ctx, op, table, sites)
}

// agreeOne decides what to write at a site.
func (r *Engine) agreeOne(ctx context.Context, table *core.Table, row *tablerow.Row, s *Site, id string, entities map[marks.Key]*holder) error {
	m, has, first := marksOf(row), []marks.Holder(nil), (*holder)(nil)
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
	a := marks.Agree(&m, has, same, id, marks.Waived(ctx))
	s.Finding = a.Finding
	if by := s.contested(&m, has); by != nil {
		return &entity.Error{Op: opMark, Table: table.Name(), Key: s.Key, Kind: entity.ErrDuplicate, Err: by}
	}
	switch {
	case m.Mark == id && m.Names[0] == marks.Key(s.Entity):
		s.Mark, s.Written = row.ETag, true // the job has written it before, and perhaps the answer was lost
		return nil
	case a.Finding == marks.Old && r.Schema.OtherBuilds:
		return nil
	case a.Row.Mark != "":
		s.row, s.Entity = tablerow.Row{Own: outsideOf(&a.Row)}, entity.Key(a.Row.Names[0])
	case a.Verb == marks.Replace:
		s.row = r.copyOf(first.pattern, first.row, first.copied)
	}
	s.apply(a.Verb, azcore.ETag(m.ETag))
	return nil
}

// apply makes writeSites do to the row what package marks has decided, under the ETag that the row was read with.
func (s *Site) apply(verb marks.Verb, read azcore.ETag) {
	switch verb {
	case marks.Insert:
		s.write(wire.VerbInsert, "")
	case marks.Replace:
		s.write(wire.VerbReplace, read)
	case marks.Delete:
		s.write(wire.VerbDelete, read)
	default:
		s.row = tablerow.Row{}
	}
}

// write makes writeSites write the row of the site.
func (s *Site) write(verb wire.Verb, ifMatch azcore.ETag) {
	s.row.Key, s.row.Verb, s.row.IfMatch = s.Key, verb, ifMatch
}

// contested returns why the row of a site cannot be that of the entity for which the job has come, although the entity has the key; nil if it can.
func (s *Site) contested(m *marks.Row, has []marks.Holder) error {
	mine := func(h marks.Holder) bool { return h.Entity == marks.Key(s.Entity) }
	switch {
	case s.Finding == marks.InTheWay:
		return errNoCopy
	case !slices.ContainsFunc(has, mine):
		return nil
	case !mine(has[0]):
		return ownedBy(has[0].Entity)
	case s.Finding == marks.Right && m.Mark != "" && !slices.Contains(m.Names, has[0].Entity):
		return fmt.Errorf("the row is marked for entity (%q, %q), which has not got the key; repeat this in %v", m.Names[0].Partition, m.Names[0].Row, marks.Term+marks.Grace)
	}
	return nil
}

// sameCopy reports whether a stored copy is the wanted one.
func sameCopy(row, wanted *tablerow.Row) bool {
	return row.Own.Incarnation == wanted.Own.Incarnation && row.Own.Outside.Version == wanted.Own.Outside.Version && row.Own.Primary == wanted.Own.Primary &&
		row.Own.Outside.Partition == wanted.Own.Outside.Partition && len(row.Properties) == len(wanted.Properties) && holdAll(row.Properties, wanted.Properties)
}

// Settle settles the sites that a job has marked, under the ETags of the marks: those of entities that still have the key. The others are deleted if the
// job has waited until no change under way can have relied on the rows before (tidy), and stay marked otherwise, as all do while other builds write.
// read reads the own rows of entities; nil means FetchOwnAll.
func (r *Engine) Settle(ctx context.Context, op string, table *core.Table, tidy bool, sites []*Site, read ReadOwnAll) error {
	sites = slices.DeleteFunc(slices.Clone(sites), func(s *Site) bool { return s.Mark == "" })
	if len(sites) == 0 || r.Schema.OtherBuilds {
		return nil
	}
	var owners []marks.Key
	for _, s := range sites {
		owners = append(owners, marks.Key(s.Entity))
	}
	entities, err := r.owners(ctx, op, owners, read)
	if err != nil {
		return err
	}
	for _, s := range sites {
		now := entities[marks.Key(s.Entity)].at(r, table, s.Key)
		s.row = tablerow.Row{}
		switch {
		case now.err != nil:
			s.Err = now.err
		case now.copied != nil:
			s.row = r.copyOf(now.pattern, now.row, now.copied)
			s.write(wire.VerbReplace, s.Mark)
		case tidy:
			s.write(wire.VerbDelete, s.Mark)
		}
	}
	_, err = writeSites(ctx, op, table, sites)
	return err
}

// writeSites writes the rows of sites, in transactions of one partition each, several at once. A row that has changed since it was read is left out: whoever
// changed it has made it right. It returns the sites to be compared once more: those whose row it has written for another site, and those that
// were Free, and whose row is there.
func writeSites(ctx context.Context, op string, table *core.Table, sites []*Site) (again []*Site, err error) {
	open := slices.DeleteFunc(slices.Clone(sites), func(s *Site) bool { return s.row.Key == (entity.Key{}) })
	slices.SortStableFunc(open, func(a, b *Site) int {
		return cmp.Or(cmp.Compare(a.Key.Partition, b.Key.Partition), cmp.Compare(a.Key.Row, b.Key.Row))
	})
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(groupsAtOnce)
	for from, to := 0, 0; from < len(open); from = to {
		var together []*Site
		for to = from; to < len(open) && len(together) < entity.MaxTransactionOperations && open[to].Key.Partition == open[from].Key.Partition; to++ {
			if to > from && open[to].Key == open[to-1].Key {
				again = append(again, open[to])
				continue
			}
			together = append(together, open[to])
		}
		group.Go(func() error { return writeTogether(ctx, op, table, together) })
	}
	return again, group.Wait()
}

// mostTaken is the number of rows in the way of a transaction after which the rest of its rows is not inserted without a read, either.
const mostTaken = 8

// writeTogether writes the rows of sites of one partition.
func writeTogether(ctx context.Context, op string, table *core.Table, sites []*Site) error {
	for taken := 0; len(sites) > 0 && (taken < mostTaken || !sites[0].Free); taken++ {
		writes := make([]tablerow.Row, len(sites))
		for i, s := range sites {
			writes[i] = s.row
		}
		etags, _, err := table.Commit(ctx, op, writes...)
		if err == nil {
			for i, s := range sites {
				s.Written = true
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
		sites = slices.Delete(sites, refused, refused+1)
	}
	return nil
}

// ReadOwnAll reads the own rows of entities as FetchOwnAll does.
type ReadOwnAll func(ctx context.Context, op string, keys []entity.Key) ([]*tablerow.Row, error)

// owners reads entities by their own rows; nil for read means FetchOwnAll.
func (r *Engine) owners(ctx context.Context, op string, keys []marks.Key, read ReadOwnAll) (map[marks.Key]*holder, error) {
	if read == nil {
		read = r.FetchOwnAll
	}
	all := map[marks.Key]*holder{}
	var wanted []entity.Key
	for _, key := range keys {
		if all[key] == nil {
			all[key], wanted = &holder{}, append(wanted, entity.Key(key))
		}
	}
	own, err := read(ctx, op, wanted)
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
