package indexentities

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/errs"
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

// readAll reads lists of one partition. Requests: 1 for each list if there are less than readTogether or the table is
// on Cosmos DB; otherwise 1, and 1 for each list that this request has not found completely.
func (r rowLists) readAll(ctx context.Context, places []string) ([]*list, error) {
	lists, failures := make([]*list, len(places)), make([]error, len(places))
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
			lists[i], failures[i] = r.read(ctx, place)
			return nil
		})
	}
	_ = running.Wait() // always nil; failures has the errors
	return lists, cmp.Or(failures...)
}

// readRange reads several lists by one query over the range of their keys. It reads only one page, of twice as many
// rows as there are lists. For a list that may continue after the page, it sets that list's element of lists to nil.
func (r rowLists) readRange(ctx context.Context, places []string, lists []*list) error {
	if len(places) < readTogether || r.table.Account().IsCosmos() { // Cosmos DB returns rows in no order
		return nil
	}
	at := make(map[string]int, len(places)) // indexes of places by the row key of the list
	var from, to, partition string
	for i, place := range places {
		first, err := driver.SplitKey(place)
		if err != nil {
			return err
		}
		lists[i] = &list{first: first}
		at[first.Row], partition = i, first.Partition
		all := rows.AllNumbered(first.Row)
		if i == 0 || compoundkey.Compare(all.From(), from) < 0 {
			from = all.From()
		}
		if i == 0 || compoundkey.Compare(all.To(), to) > 0 {
			to = all.To()
		}
	}
	page, err := r.table.Entities().Query().Partition(partition).Rows(compoundkey.Range(from, to)).PageSize(min(1000, 2*len(places))).Page(ctx, "")
	if err != nil {
		return err
	}
	if len(page.Problems) > 0 {
		return page.Problems[0]
	}
	last := ""
	for _, row := range page.Items {
		first, number := rows.ParseNumbered(row.Key.Row)
		last = row.Key.Row
		i, asked := at[first]
		if !asked {
			continue
		}
		ids, err := r.decode(row)
		if err != nil {
			return err
		}
		lists[i].rows = append(lists[i].rows, listRow{number: number, ids: ids, etag: row.ETag})
	}
	for first, i := range at {
		if page.Next != "" && compoundkey.Compare(rows.AllNumbered(first).To(), last) > 0 {
			lists[i] = nil
		}
	}
	return nil
}

// counts yields a Value for each row of a query, in the order of their keys. The value's key is the list's row key without prefix.
func (r rowLists) counts(ctx context.Context, q tables.Query[tables.Entity], prefix string) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		for row, err := range r.table.InOrder(q.All(ctx)) {
			if err != nil {
				yield(Value{}, err)
				return
			}
			count, ok := row.Get(countProperty).Int()
			if !ok {
				yield(Value{}, &tables.Error{Op: "Read", Table: r.table.Name(), Key: row.Key, Kind: tables.ErrGarbled,
					Err: errors.New("a row of the list has no property " + countProperty + "; delete the rows of the list and run Repository.Rebuild")})
				return
			}
			first, _ := rows.ParseNumbered(row.Key.Row)
			if !yield(Value{Key: strings.TrimPrefix(first, prefix), Count: int(count)}, nil) {
				return
			}
		}
	}
}

// grouped adds up the counts of a value, which come one after another.
func grouped(all iter.Seq2[Value, error]) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		var current Value
		for v, err := range all {
			switch {
			case err != nil:
				yield(Value{}, err)
				return
			case v.Key == current.Key:
				current.Count += v.Count
				continue
			case current.Count > 0 && !yield(current, nil):
				return
			}
			current = v
		}
		if current.Count > 0 {
			yield(current, nil)
		}
	}
}

// rowPlace checks the key of a list's first row, and returns the list's place.
func rowPlace(partition, row string) (string, error) {
	for _, key := range []string{partition, row} {
		if err := compoundkey.Err(key); err != nil {
			return "", err
		}
	}
	if n := edm.Units(row); n > rows.MaxFirst {
		return "", errs.Invalid("", &edm.SizeError{What: "the row key of a list", Size: n, Limit: rows.MaxFirst, Unit: "UTF-16 units"})
	}
	return driver.JoinKey(tables.Key{Partition: partition, Row: row}), nil
}
