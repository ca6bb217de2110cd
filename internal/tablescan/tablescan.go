// Package tablescan reads rows of a table page by page with several readers, for the long jobs of the packages patterns and backup.
package tablescan

import (
	"context"
	"iter"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
)

// Scan says what to read. Its functions collect the rows of one response in a page of type P. Several readers call them concurrently, but
// the functions of one page are called one after the other.
type Scan[P any] struct {
	Table   *core.Table
	Ranges  []rangescan.Range  // in the order of their keys; on Azure Cosmos DB whole partitions, or the whole table
	Span    compoundkey.Span   // limits the row keys that are passed to Row
	Where   []entity.Condition // at most 10 comparisons
	Size    int                // rows of a page; 0 means the service's maximum
	Plain   bool               // return the library's own properties like any others
	Readers int                // the maximum number of requests in flight; on Azure Cosmos DB there is one reader

	New func() P
	Row func(ctx context.Context, page P, row *tablerow.Row) error // row is valid during the call only, and can have a Problem
	// Work is called after the last row of a page, before the page is yielded; the page has all rows of the range that
	// Work gets as its second argument. Work may be nil. On Azure Cosmos DB rows come in no order of keys, so that
	// range is the whole range that is being read.
	Work func(ctx context.Context, at rangescan.Range, page P) error
}

// State is the position of a scan. The zero value is the beginning.
type State struct {
	rangescan.State
	Page string `json:"t,omitempty"` // on Azure Cosmos DB, the continuation token of the range that has begun
}

// Over reports whether a scan of the given number of ranges has read everything.
func (s State) Over(ranges int) bool { return s.Next == ranges && len(s.Ranges) == 0 }

// Done returns how many ranges were read completely. Each range of the scan must be a partition.
func (s State) Done() int {
	done := s.Next
	for i, r := range s.Ranges {
		if i == 0 || s.Ranges[i-1].From.Partition != r.From.Partition {
			done--
		}
	}
	return done
}

// Page holds what one request has returned.
type Page[P any] struct {
	Content P
	At      rangescan.Range // the page has all rows of this range
	Rest    State           // what remains after the page
}

// Partitions returns the ranges of the partitions with these keys, which must be sorted; for nil it returns one range,
// the whole table.
func Partitions(keys []string) []rangescan.Range {
	if keys == nil {
		return []rangescan.Range{{}}
	}
	all := make([]rangescan.Range, len(keys))
	for i, key := range keys {
		all[i] = rangescan.Partition(key)
	}
	return all
}

// Pages yields the pages as they arrive, including those without rows. An error is yielded once, as the last element.
//
// Requests: those of tables.Query.AllParallel. At most 1 page for each reader is in memory.
func (s Scan[P]) Pages(ctx context.Context, from State) iter.Seq2[Page[P], error] {
	if s.Table.Account().IsCosmos() {
		return s.oneByOne(ctx, from)
	}
	return func(yield func(Page[P], error) bool) {
		scan := rangescan.New(s.Ranges, from.State, rangescan.Options{Readers: s.Readers, Buffer: s.Readers}, s.fetch)
		scan.Work = s.Work
		for content, err := range scan.Pages(ctx) {
			if err != nil {
				yield(Page[P]{}, err)
				return
			}
			if !yield(Page[P]{content, scan.Yielded(), State{State: scan.Rest()}}, nil) {
				return
			}
		}
	}
}

// oneByOne does what Pages does with one reader, for Azure Cosmos DB: it does not need rows in the order of
// keys.
func (s Scan[P]) oneByOne(ctx context.Context, from State) iter.Seq2[Page[P], error] {
	return func(yield func(Page[P], error) bool) {
		for !from.Over(len(s.Ranges)) {
			if len(from.Ranges) == 0 {
				from.Ranges = s.Ranges[from.Next : from.Next+1]
				from.Next++
			}
			all := from.Ranges[0]
			content, next, err := s.fetch(ctx, rangescan.Leg{Range: all}, from.Page, nil)
			if err == nil && s.Work != nil {
				err = s.Work(ctx, all, content)
			}
			if err != nil {
				yield(Page[P]{}, err)
				return
			}
			at := all
			if from.Page = next; next == "" {
				from.Ranges = from.Ranges[1:]
			} else {
				at.To = &all.From
			}
			if !yield(Page[P]{content, at, from}, nil) {
				return
			}
		}
	}
}

// fetch reads one page of a leg.
func (s Scan[P]) fetch(ctx context.Context, leg rangescan.Leg, token string, accept func(rangescan.Key) bool) (content P, next string, err error) {
	filter, err := leg.Filter()
	if err != nil {
		return content, "", errs.Invalid("Query", err)
	}
	content = s.New()
	src := s.Table.Source(s.Span)
	src.Plain = s.Plain
	src.Problems = true
	src.Load = func(ctx context.Context, row *tablerow.Row, _ []string) (any, error) {
		return nil, s.Row(ctx, content, row)
	}
	if accept != nil {
		src.Accept = func(k entity.Key) bool { return accept(rangescan.Key(k)) }
	}
	q := core.NewQuery(src).Where(s.Where...).PageSize(s.Size).AllowTableScan()
	if filter != "" {
		q = q.Filter(filter)
	}
	page, next, err := q.Page(ctx, token)
	if err == nil && len(page.Problems) > 0 {
		err = page.Problems[0] // Row did not get the row of such a problem
	}
	return content, next, err
}
