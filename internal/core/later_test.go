package core_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// state is what a table has under one row key: an entity and its copy in another partition.
type state struct {
	entity, copy int32 // their Age; -1 if there is none
	marked       bool
}

// found reports whether a query for an Age of at least from has the copy.
func (s state) found(from int32) bool {
	age := s.copy
	if s.marked {
		age = s.entity
	}
	return age >= from
}

// states has n rows, of which many differ from their entities and are marked for it.
func states(n int) []state {
	kinds := []state{
		{20, 20, false}, {5, 5, false},
		{5, 20, true}, {20, 5, true}, {20, 20, true}, {-1, 20, true}, // the copy's Age is wrong, wrong, right, of no entity
		{20, 20, false}, {-1, 5, true}, {5, 5, true},
	}
	all := make([]state, n)
	for i := range all {
		all[i] = kinds[(i+i/20)%len(kinds)]
	}
	return all
}

// copies reads copies of which some are marked: then a Later reads the entity.
type copies struct {
	core.Source
	requests storagetest.RequestCounter
	wait     time.Duration    // of each Later
	fails    map[string]error // what the Later of a row key returns

	calls, running, most atomic.Int64 // how many Laters were called, run, and have run at once
}

// stored makes a table with the entities in one partition, and the halves of their copies in two others.
func stored(t *testing.T, s *storagetest.Service, all []state) *copies {
	t.Helper()
	ctx := context.Background()
	c := &copies{}
	options := s.ClientOptions
	options.PerRetryPolicies = append(slices.Clip(options.PerRetryPolicies), &c.requests)
	account := assert.Must[*core.Account](t)(core.NewAccountFromConnectionString(s.ConnectionString, &core.AccountOptions{ClientOptions: options}))
	table := account.Table(s.TableName(t))
	assert.Check(t, table.Create(ctx))
	var writes []tablerow.Row
	write := func(least int) {
		if len(writes) >= least {
			if _, _, err := table.Commit(ctx, "Insert", writes...); err != nil {
				t.Fatal(err)
			}
			writes = nil
		}
	}
	row := func(partition string, i int, age int32, own tablerow.Own) {
		if age >= 0 {
			writes = append(writes, tablerow.Row{Verb: wire.VerbInsert, Key: entity.Key{Partition: partition, Row: rowKey(i)}, Own: own,
				Properties: entity.Properties{{Name: "Age", Value: entity.Int32(age)}}})
			write(100)
		}
	}
	for i := range all {
		row("entities", i, all[i].entity, tablerow.Own{})
	}
	for i, a := range all {
		if i == 0 || i == (len(all)+1)/2 {
			write(1)
		}
		own := tablerow.Own{IsCopy: true, Primary: rowKey(i), Outside: tablerow.Outside{Is: true, Partition: "entities"}}
		if a.marked {
			own.Outside.Mark = "change"
		}
		row([]string{"index_a", "index_b"}[2*i/len(all)], i, a.copy, own)
	}
	write(1)
	c.Source = core.Source{Table: table, Codec: &core.Codec{}, Marked: rows.Mark, System: []string{rows.Mark, rows.Partition, rows.Primary}, Load: c.load}
	return c
}

func rowKey(i int) string { return fmt.Sprintf("%03d", i) }

func (c *copies) load(_ context.Context, row *tablerow.Row, _ []string) (any, error) {
	if row.Answered.IsZero() {
		return nil, errors.New("the row does not say when it was read")
	}
	if row.Own.Outside.Mark == "" {
		return row.Clone(), nil
	}
	key, own := row.Key, entity.Key{Partition: row.Own.Outside.Partition, Row: row.Own.Primary}
	return core.Later(func(ctx context.Context, meets func(entity.Key, entity.Properties) bool) (any, error) {
		c.calls.Add(1)
		now := c.running.Add(1)
		defer c.running.Add(-1)
		for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
		}
		select {
		case <-time.After(c.wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if err := c.fails[key.Row]; err != nil {
			return nil, err
		}
		read, err := c.Table.Get(ctx, "Get", own, nil)
		switch {
		case errors.Is(err, entity.ErrNotFound):
			return nil, nil
		case err != nil:
			return nil, err
		case !meets(key, read.Properties):
			return nil, nil
		}
		return read, nil
	}), nil
}

// query returns a query of all copies.
func (c *copies) query() core.Query {
	return core.NewQuery(&c.Source).AllowTableScan().Where(entity.Ge("PartitionKey", "index_a"), entity.Le("PartitionKey", "index_b"))
}

// told lists what a loop yields: row keys, and "!" with the key of a problem.
func told(t *testing.T, all iter.Seq2[any, error]) (list []string) {
	t.Helper()
	for v, err := range all {
		list = append(list, tell(t, v, err))
	}
	return list
}

func tell(t *testing.T, v any, err error) string {
	t.Helper()
	var e *entity.Error
	switch {
	case err == nil:
		return v.(*tablerow.Row).Key.Row
	case !errors.As(err, &e) || !e.OfRow:
		t.Error(err)
	}
	return "!" + e.Key.Row
}

// pages reads the pages of a query one by one, each with a token alone.
func pages(t *testing.T, query core.Query) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for token := ""; ; {
			page, next, err := query.Page(context.Background(), token)
			if err != nil {
				t.Error(err)
				return
			}
			if !page.Each(yield) || next == "" {
				return
			}
			token = next
		}
	}
}

// TestLater: every read has the rows that it would have if no row were marked, in their order, whatever its pages and its Top are.
func TestLater(t *testing.T) {
	ctx := context.Background()
	all := states(40)
	c := stored(t, storagetest.Open(t), all)
	plain := entity.Ge("Age", int32(10))
	for name, q := range map[string]struct {
		of   core.Query
		from int32
	}{
		"without conditions": {c.query(), 0},
		"Where":              {c.query().Where(plain), 10},
		"Filter":             {c.query().Filter("Age ge 15 and not (RowKey lt '000' or Age lt 10)"), 15},
		"Select":             {c.query().Where(plain).Select("Age"), 10},
		"nothing":            {c.query().Where(entity.Ge("Age", int32(21))), 21},
	} {
		var want []string
		for i, a := range all {
			if a.found(q.from) {
				want = append(want, rowKey(i))
			}
		}
		for _, top := range []int{0, 1, 5} {
			for _, size := range []int{0, 1, 7} {
				query, want := q.of.Top(top).PageSize(size), want
				if top > 0 {
					want = want[:min(top, len(want))]
				}
				for how, got := range map[string]iter.Seq2[any, error]{
					"All": query.All(ctx), "Page": pages(t, query), "AllParallel": query.AllParallel(ctx, core.Parallel{}),
					"AllPartitions": query.PageSize(max(size, 15)).AllPartitions(ctx, []string{"index_a", "index_b"}, core.Parallel{}),
					"AllPartitions with Order": query.AllPartitions(ctx, []string{"index_a", "index_b"}, core.Parallel{Order: func(a, b any) int {
						return strings.Compare(a.(*tablerow.Row).Key.Row, b.(*tablerow.Row).Key.Row)
					}}),
				} {
					assert.Slices(t, told(t, got), want, "%s, %s, top %d, page size %d", name, how, top, size)
				}
			}
		}
		v, err := q.of.First(ctx)
		if len(want) == 0 {
			assert.ErrorIs(t, err, entity.ErrNotFound, "%s: First: %v", name, v)
		} else if got := tell(t, v, err); got != want[0] {
			t.Errorf("%s: First: %s, want %s", name, got, want[0])
		}
	}
}

// TestLaterByKey: a point read has the value at once, whatever the entity holds; a query of a key with conditions checks them.
func TestLaterByKey(t *testing.T) {
	ctx := context.Background()
	all := states(20)
	c := stored(t, storagetest.Open(t), all)
	for i, a := range all {
		key := entity.Key{Partition: []string{"index_a", "index_b"}[2*i/len(all)], Row: rowKey(i)}
		query := core.NewQuery(&c.Source).Partition(key.Partition).Row(key.Row)
		for name, read := range map[string]struct {
			of   func() (any, error)
			want bool
		}{
			"Get":                    {func() (any, error) { return c.Get(ctx, "Get", key) }, a.found(0)},
			"First":                  {func() (any, error) { return query.First(ctx) }, a.found(0)},
			"First with a condition": {func() (any, error) { return query.Where(entity.Ge("Age", int32(10))).First(ctx) }, a.found(10)},
		} {
			v, err := read.of()
			switch {
			case read.want && tell(t, v, err) == key.Row:
			case !read.want && errors.Is(err, entity.ErrNotFound):
			default:
				t.Errorf("%s of %+v: %v, %v", name, a, v, err)
			}
		}
	}
}

// TestLaterFails: a problem of a row stands in its place with the row's key; any other error ends the read.
func TestLaterFails(t *testing.T) {
	ctx := context.Background()
	all := slices.Repeat([]state{{20, 20, false}, {20, 20, true}}, 10)
	c := stored(t, storagetest.Open(t), all)
	var want []string
	for i := range all {
		want = append(want, rowKey(i))
	}
	c.fails = map[string]error{"001": &entity.Error{Kind: entity.ErrGarbled}, "007": &entity.Error{Kind: entity.ErrGarbled}}
	want[1], want[7] = "!001", "!007"
	query := c.query().Where(entity.Ge("Age", int32(10)))
	for how, got := range map[string]iter.Seq2[any, error]{
		"All": query.All(ctx), "All with small pages": query.PageSize(3).All(ctx), "Page": pages(t, query), "AllParallel": query.AllParallel(ctx, core.Parallel{}),
	} {
		assert.Slices(t, told(t, got), want, how)
	}
	assert.Slices(t, told(t, query.Top(5).All(ctx)), want[:6], "Top")
	for kind, fails := range map[error]error{
		entity.ErrUnavailable: &entity.Error{Op: "Get", Table: c.Table.Name(), Kind: entity.ErrUnavailable},
		errSome:               errSome,
	} {
		c.fails["011"] = fails
		page, next, err := query.Page(ctx, "")
		if !errors.Is(err, kind) || len(page.Values)+len(page.Problems) > 0 || next != "" {
			t.Errorf("%v: %+v, %q, %v", kind, page, next, err)
		}
		n := 0
		for v, err := range query.PageSize(10).All(ctx) {
			if n++; n > 10 && (v != nil || !errors.Is(err, kind)) {
				t.Errorf("%v: %v, %v", kind, v, err)
			}
		}
		assert.Equal(t, n, 11, "%v: values, problems and errors", kind)
	}
}

var errSome = errors.New("some error")

// TestLatersAtOnce: 16 of a page run at once, and a query with Top calls few whose values it does not want.
func TestLatersAtOnce(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		c := stored(t, s, slices.Repeat([]state{{20, 20, true}, {20, 20, false}, {5, 20, true}}, 20))
		c.wait = time.Second
		query := c.query().Where(entity.Ge("Age", int32(10)))
		began := time.Now()
		if got := told(t, query.All(t.Context())); len(got) != 40 || c.calls.Load() != 40 || c.most.Load() != 16 || time.Since(began) != 3*time.Second {
			t.Errorf("%d values of %d calls, %d at once, in %v", len(got), c.calls.Load(), c.most.Load(), time.Since(began))
		}
		for top, calls := range map[int]int64{1: 1, 3: 3} {
			c.calls.Store(0)
			if got := told(t, query.Top(top).All(t.Context())); len(got) != top || c.calls.Load() < calls || c.calls.Load() > calls+16 {
				t.Errorf("top %d: %d values of %d calls", top, len(got), c.calls.Load())
			}
		}
	})
}

// TestLatersCancelled: with the context, the Laters end and the read.
func TestLatersCancelled(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		c := stored(t, s, slices.Repeat([]state{{20, 20, true}}, 40))
		c.wait = time.Minute
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		page, next, err := c.query().Page(ctx, "")
		if !errors.Is(err, context.DeadlineExceeded) || len(page.Values) > 0 || next != "" || c.running.Load() != 0 || c.calls.Load() > 32 {
			t.Errorf("%d values, %q, %v; %d calls, of which %d run", len(page.Values), next, err, c.calls.Load(), c.running.Load())
		}
	})
}

// TestLatersInFewPages: after marked rows that are not in the result, a query with Top asks for more rows than it wants.
func TestLatersInFewPages(t *testing.T) {
	c := stored(t, storagetest.Open(t), append(slices.Repeat([]state{{5, 5, true}}, 48), state{20, 20, false}))
	query := c.query().Where(entity.Ge("Age", int32(10)))
	for size, pages := range map[int]int{0: 1 + 48/16, 8: 1 + 48/8, 1: 49} {
		c.requests.Reset()
		v, err := query.PageSize(size).First(context.Background())
		if got := tell(t, v, err); got != rowKey(48) || c.requests.CountOf(storagetest.QueryEntities) != pages || c.requests.CountOf(storagetest.GetEntity) != 48 {
			t.Errorf("page size %d: %s after %v", size, got, &c.requests)
		}
	}
}

// TestPlanOfMarked: a query with conditions asks for marked rows, too, and stays of its class.
func TestPlanOfMarked(t *testing.T) {
	account := assert.Must[*core.Account](t)(core.NewAccountFromConnectionString(storagetest.Open(t).ConnectionString, nil))
	src := &core.Source{Table: account.Table("Index"), Codec: &core.Codec{}, Span: compoundkey.Prefix("a").Span, Where: []entity.Condition{entity.Eq("Type", "x")},
		Kept: []string{"Age", "Type"}, Marked: rows.Mark, System: []string{rows.Mark}}
	q := core.NewQuery(src).Partition("p").Where(entity.Or(entity.Gt("Age", int32(5)), entity.Lt("Age", int32(2))))
	p, err := q.Plan()
	const want = "PartitionKey eq 'p' and RowKey ge 'a' and RowKey lt 'b' and (Type eq 'x' and (Age gt 5 or Age lt 2) or _tpMark gt '')"
	if err != nil || p.Filter != want || p.Class.String() != "range query" {
		t.Errorf("%+v, %v", p, err)
	}
	assert.ErrorContains(t, assert.Err(q.Where(entity.Eq(rows.Mark, "x")).Plan()), "does not store", "a condition of the program on the mark")
	many := slices.Repeat([]entity.Condition{entity.Gt("Age", int32(5))}, 9)
	assert.NoError(t, assert.Err(q.Where(many[1:]...).Plan()), "15 comparisons")
	if _, err := q.Where(many...).Plan(); !errors.Is(err, entity.ErrTooLarge) || !strings.Contains(err.Error(), "a filter of 16 comparisons (15 of yours and 1 of the library's) is over the limit of 15") {
		t.Errorf("16 comparisons: %v", err)
	}
	src.Where = nil
	for name, c := range map[string]struct {
		of          core.Query
		filter      string
		keys, point bool
	}{
		"no conditions":     {core.NewQuery(src).Partition("p"), "PartitionKey eq 'p' and RowKey ge 'a' and RowKey lt 'b'", false, false},
		"a key":             {core.NewQuery(src).Partition("p").Row("a1"), "PartitionKey eq 'p' and RowKey eq 'a1'", false, true},
		"a key, conditions": {core.NewQuery(src).Partition("p").Row("a1").Filter("Age gt 5"), "PartitionKey eq 'p' and RowKey eq 'a1' and (Age gt 5 or _tpMark gt '')", false, true},
	} {
		p, err := c.of.Plan()
		if err != nil || p.Filter != c.filter || len(p.Keys) > 0 || (p.Class.String() == "point query") != c.point {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}
