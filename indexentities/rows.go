package indexentities

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// rowLists reads the lists in rows of a table.
type rowLists struct{ table *tables.Table }

// read reads a list with all its rows. Requests: 1 if the service returns the rows in one page.
func (r rowLists) read(ctx context.Context, place string) (*list, error) {
	first, err := driver.SplitKey(place)
	if err != nil {
		return nil, err
	}
	l := &list{first: first}
	for row, err := range r.table.Entities().Query().Partition(first.Partition).Rows(rows.AllNumbered(first.Row)).All(ctx) {
		if err != nil {
			return nil, err
		}
		ids, err := r.decode(row)
		if err != nil {
			return nil, err
		}
		_, number := rows.ParseNumbered(row.Key.Row)
		l.rows = append(l.rows, listRow{number: number, ids: ids, etag: row.ETag})
	}
	slices.SortFunc(l.rows, func(a, b listRow) int { return cmp.Compare(a.number, b.number) }) // Cosmos DB returns rows in no order
	return l, nil
}

func (r rowLists) decode(row *tables.Entity) ([]string, error) {
	ids, err := decodeIDs(row.Properties)
	if err != nil {
		return nil, &tables.Error{Op: "Read", Table: r.table.Name(), Key: row.Key, Kind: tables.ErrGarbled, Err: err}
	}
	return ids, nil
}

// readAtOnce limits how many lists are read concurrently if one query cannot read them together.
const readAtOnce = 8

// readTogether is the minimum number of lists for which readAll tries one query instead of one request for each list.
const readTogether = 3

// readAll reads lists of one partition. Requests: 1 if their keys lie close together.
func (r rowLists) readAll(ctx context.Context, places []string) ([]*list, error) {
	lists, errs := make([]*list, len(places)), make([]error, len(places))
	if err := r.readRange(ctx, places, lists); err != nil {
		return nil, err
	}
	var running errgroup.Group
	running.SetLimit(readAtOnce)
	for i, place := range places {
		if lists[i] != nil {
			continue
		}
		running.Go(func() error {
			lists[i], errs[i] = r.read(ctx, place)
			return nil
		})
	}
	_ = running.Wait() // ignore the result: errs has the errors
	return lists, cmp.Or(errs...)
}

// readRange reads several lists by one query over the range of their keys. It reads one page, whose size
// allows for as many other rows as the lists have. The caller reads the lists that are not completely on the
// page.
func (r rowLists) readRange(ctx context.Context, places []string, lists []*list) error {
	if len(places) < readTogether || r.table.Account().IsCosmos() { // Cosmos DB returns rows in no order
		return nil
	}
	at := make(map[string]int, len(places))
	span, partition := compoundkey.Span{}, ""
	for i, place := range places {
		first, err := driver.SplitKey(place)
		if err != nil {
			return err
		}
		all := rows.AllNumbered(first.Row)
		at[first.Row], partition = i, first.Partition
		if i == 0 {
			span = all
		}
		from, to := span.From(), span.To()
		if compoundkey.Compare(all.From(), from) < 0 {
			from = all.From()
		}
		if compoundkey.Compare(all.To(), to) > 0 {
			to = all.To()
		}
		span = compoundkey.Range(from, to)
	}
	page, err := r.table.Entities().Query().Partition(partition).Rows(span).PageSize(min(1000, 2*len(places))).Page(ctx, "")
	if err != nil {
		return err
	}
	if len(page.Problems) > 0 {
		return page.Problems[0]
	}
	found, seen := map[string]*list{}, ""
	for _, row := range page.Items {
		first, number := rows.ParseNumbered(row.Key.Row)
		seen = row.Key.Row
		if _, is := at[first]; !is {
			continue
		}
		ids, err := r.decode(row)
		if err != nil {
			return err
		}
		if found[first] == nil {
			found[first] = &list{first: tables.Key{Partition: partition, Row: first}}
		}
		found[first].rows = append(found[first].rows, listRow{number: number, ids: ids, etag: row.ETag})
	}
	for first, i := range at {
		switch whole := page.Next == "" || compoundkey.Compare(rows.AllNumbered(first).To(), seen) <= 0; {
		case whole && found[first] != nil:
			lists[i] = found[first]
		case whole:
			lists[i] = &list{first: tables.Key{Partition: partition, Row: first}}
		}
	}
	return nil
}

// counted holds the number of ids in a list.
type counted struct {
	first string
	ids   int
}

// counts yields the lists of a query's rows in the order of their keys. It reads only the property with the count.
func (r rowLists) counts(ctx context.Context, q tables.Query[tables.Entity]) iter.Seq2[counted, error] {
	return func(yield func(counted, error) bool) {
		var current counted
		begun := false
		for row, err := range r.table.InOrder(q.Select(countProperty).All(ctx)) {
			if err != nil {
				yield(counted{}, err)
				return
			}
			ids, ok := row.Get(countProperty).Int()
			if !ok {
				yield(counted{}, &tables.Error{Op: "Read", Table: r.table.Name(), Key: row.Key, Kind: tables.ErrGarbled,
					Err: errors.New("a row of the list has no property " + countProperty + "; delete the rows of the list and run Repository.Rebuild")})
				return
			}
			first, _ := rows.ParseNumbered(row.Key.Row)
			if begun && current.first != first {
				if !yield(current, nil) {
					return
				}
				current.ids = 0
			}
			begun, current.first, current.ids = true, first, current.ids+int(ids)
		}
		if begun {
			yield(current, nil)
		}
	}
}

// loadRows returns the ids of a list in rows; open returns the table: an index knows its table only after it
// was attached.
func loadRows(ctx context.Context, open func() (rowLists, error), place string) ([]string, error) {
	lists, err := open()
	if err != nil {
		return nil, err
	}
	l, err := lists.read(ctx, place)
	if err != nil {
		return nil, err
	}
	return l.ids(), nil
}

// heldByRows yields a fact for each key in the lists that the queries of partitions find.
func (x *index[T]) heldByRows(ctx context.Context, open func() (rowLists, error),
	partitions func(*tables.Table, driver.Scope) []tables.Query[tables.Entity], scope driver.Scope) iter.Seq2[driver.Fact, error] {
	return func(yield func(driver.Fact, error) bool) {
		rows, err := open()
		if err != nil {
			yield(driver.Fact{}, err)
			return
		}
		for _, q := range partitions(rows.table, scope) {
			for fact, err := range x.held(ctx, rows, q, scope) {
				if !yield(fact, err) || err != nil {
					return
				}
			}
		}
	}
}

// held yields a fact for each key in the rows of a query, row by row, in no order.
func (x *index[T]) held(ctx context.Context, r rowLists, q tables.Query[tables.Entity], scope driver.Scope) iter.Seq2[driver.Fact, error] {
	return func(yield func(driver.Fact, error) bool) {
		for row, err := range q.AllParallel(ctx, &tables.ParallelOptions[tables.Entity]{Unordered: true}) {
			if err != nil {
				yield(driver.Fact{}, x.failed("List", err))
				return
			}
			first, _ := rows.ParseNumbered(row.Key.Row)
			place := driver.JoinKey(tables.Key{Partition: row.Key.Partition, Row: first})
			ids, err := r.decode(row)
			if err != nil && !yield(x.unreadable(place, err), nil) {
				return
			}
			for fact := range x.facts(place, ids, scope) {
				if !yield(fact, nil) {
					return
				}
			}
		}
	}
}
