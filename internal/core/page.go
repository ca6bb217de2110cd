package core

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/continuation"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/filter"
	"github.com/tablepatterns/tablepatterns/internal/odata"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/rowreader"
	"github.com/tablepatterns/tablepatterns/internal/streams"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// page reads one page, with the problems of rows between its values.
func (q *query) page(ctx context.Context, token string) (page streams.Mixed[any], next string, err error) {
	p, err := q.plan()
	if err != nil {
		return page, "", err
	}
	if err := q.refuseScan(p); err != nil {
		return page, "", err
	}
	c := continuation.Position{Query: continuation.Fingerprint(q.src.Table.account.endpoints.Table, q.src.Table.name, p.Filter, p.asked, q.top), Left: q.top}
	if token != "" {
		if c, err = continuation.Parse(token, c.Query, q.top); err != nil {
			return page, "", relabel("Page", q.src.Table, errs.Invalid("Page", err))
		}
	}
	if p.empty {
		return page, "", nil
	}
	if p.point != nil && len(p.Select) == 0 && token == "" && (q.src.Accept == nil || q.src.Accept(*p.point)) {
		v, err := q.src.Get(ctx, "Query", *p.point)
		switch {
		case errors.Is(err, entity.ErrNotFound):
			return page, "", nil
		case err == nil, ofRow(err):
			page.Add(v, err)
			return page, "", nil
		}
		return page, "", err
	}
	return q.fetch(ctx, p, c)
}

// fetch requests one page.
func (q *query) fetch(ctx context.Context, p Plan, c continuation.Position) (page streams.Mixed[any], token string, err error) {
	if err := pace.Rows(ctx, 1); err != nil {
		return page, "", failure("Query", q.src.Table.name, entity.Key{}, err)
	}
	ex, err := q.src.Table.list(ctx, p, q.size(c.Left, c.More()), c)
	if err != nil {
		return page, "", err
	}
	got, err := q.receive(ctx, ex, c.Left)
	if err == nil {
		pace.Took(ctx, got.rows-1)
		page, err = q.follow(ctx, got, c.Left)
	}
	if err != nil {
		if errs.Of(err) == nil {
			err = failure("Query", q.src.Table.name, entity.Key{}, err)
		}
		return streams.Mixed[any]{}, "", err
	}
	q.src.Table.account.telemetry.Rows(ctx, q.src.Table.name, got.rows, len(page.Values))
	next, err := q.src.Table.next(ex.Header, got.last, got.rows)
	if err != nil {
		return streams.Mixed[any]{}, "", err
	}
	next.Query, next.Left = c.Query, max(0, c.Left-len(page.Values))
	if !next.More() || q.top > 0 && next.Left == 0 {
		return page, "", nil
	}
	return page, next.Token(), nil
}

// size returns how many rows a page asks for if the query, with a Top, still wants left values; again tells that this may not be its first page.
func (q *query) size(left int, again bool) int {
	size := cmp.Or(q.pageSize, entity.MaxPageSize)
	if q.top == 0 || q.src.Skips { // a source that skips rows could need very many small pages
		return size
	}
	if again && q.src.Marked != "" { // so could one whose marked rows are not in the result
		left = max(left, atOnce)
	}
	return min(size, left)
}

// received is a page as it was read.
type received struct {
	page   streams.Mixed[any] // with Laters in the places of their values
	laters []located          // the Laters of page
	rows   int
	last   entity.Key // of the last row
}

// receive reads the rows of a response, and releases it. If the query has a Top, it still wants left values.
func (q *query) receive(ctx context.Context, ex *wire.Exchange, left int) (got received, err error) {
	defer ex.Release() // the reader copies what it returns
	reader := rowreader.New(ex.Answer, q.src.Known)
	if q.src.Plain {
		reader = rowreader.NewPlain(ex.Answer)
	}
	answered, _ := http.ParseTime(ex.Header.Get("Date")) // as in Table.Get
	err = reader.Page(func(row *tablerow.Row) error {
		got.last, row.Answered = row.Key, answered
		got.rows++
		// A Later may turn out to be no value, so it does not count.
		if q.top > 0 && len(got.page.Values)-len(got.laters) == left || q.src.Accept != nil && !q.src.Accept(row.Key) {
			return nil
		}
		v, err := q.load(ctx, row)
		if err != nil {
			if err = q.src.DecodeError("Query", row.Key, err); !ofRow(err) {
				return err
			}
		}
		if later, is := v.(Later); is && err == nil {
			got.laters = append(got.laters, located{row.Key, later})
		}
		if v != nil || err != nil {
			got.page.Add(v, err)
		}
		return nil
	})
	return got, err
}

// load makes the value of a row, unless a value of the row could not be read.
func (q *query) load(ctx context.Context, row *tablerow.Row) (any, error) {
	if row.Problem != nil && !q.src.Problems {
		return nil, &entity.Error{Kind: entity.ErrGarbled, Err: row.Problem}
	}
	return q.src.Load(ctx, row, q.selected)
}

// next returns where a query continues after a page whose last row has the key last. If the next row's partition key is
// "", Azurite omits that key from the continuation, and refuses the continuation when it is sent back. So next then
// continues after the last row.
func (t *Table) next(header http.Header, last entity.Key, rows int) (continuation.Position, error) {
	c := continuation.Position{Partition: header.Get("X-Ms-Continuation-Nextpartitionkey"), Row: header.Get("X-Ms-Continuation-Nextrowkey")}
	if c.Partition != "" || c.Row == "" {
		return c, nil
	}
	if rows == 0 || t.account.cosmos { // on Cosmos DB rows have no order, so no row follows another
		return c, failure("Query", t.name, entity.Key{}, rowreader.Garbled(errors.New("the response names a next row without its partition")))
	}
	return continuation.Position{After: []string{last.Partition, last.Row}}, nil
}

// list sends one query. The caller releases the exchange that it returns.
func (t *Table) list(ctx context.Context, p Plan, size int, c continuation.Position) (*wire.Exchange, error) {
	top := int32(size)
	options := &aztables.ListEntitiesOptions{Top: &top}
	sent := p.Filter
	if c.After != nil {
		var err error
		if sent, err = filter.After(p.Filter, p.Class == odata.TableScan, c.After[0], c.After[1]); err != nil {
			return nil, failure("Query", t.name, entity.Key{}, err)
		}
	}
	if sent != "" {
		options.Filter = &sent
	}
	if len(p.Select) > 0 {
		selected := strings.Join(p.Select, ",")
		options.Select = &selected
	}
	if c.Partition != "" {
		options.NextPartitionKey = &c.Partition
	}
	if c.Row != "" {
		options.NextRowKey = &c.Row
	}
	ex := &wire.Exchange{Lent: true}
	if _, err := t.client.NewListEntitiesPager(options).NextPage(wire.With(ctx, ex)); err != nil {
		err = failure("Query", t.name, entity.Key{}, err)
		t.failed(ctx, err)
		return nil, err
	}
	return ex, nil
}

// InOrder yields rows of one partition in the order of their row keys, for callers that rely on this order. From Azure
// Tables it yields them as they are received. From Azure Cosmos DB for Table, which returns rows in no order, it first
// reads all of them into memory.
func (t *Table) InOrder(rows iter.Seq2[*entity.Entity, error]) iter.Seq2[*entity.Entity, error] {
	if !t.account.IsCosmos() {
		return rows
	}
	return func(yield func(*entity.Entity, error) bool) {
		var all []*entity.Entity
		for row, err := range rows {
			if err != nil {
				yield(nil, err)
				return
			}
			all = append(all, row)
		}
		slices.SortFunc(all, func(a, b *entity.Entity) int { return compoundkey.Compare(a.Key.Row, b.Key.Row) })
		for _, row := range all {
			if !yield(row, nil) {
				return
			}
		}
	}
}
