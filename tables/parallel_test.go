package tables_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// meter counts requests, and the most that were under way at once.
type meter struct{ now, most, total atomic.Int64 }

func (m *meter) Do(req *policy.Request) (*http.Response, error) {
	m.total.Add(1)
	now := m.now.Add(1)
	defer m.now.Add(-1)
	for most := m.most.Load(); now > most && !m.most.CompareAndSwap(most, now); most = m.most.Load() {
	}
	time.Sleep(2 * time.Millisecond) // so that what may overlap does
	return req.Next()
}

// metered makes a table of n partitions p00, p01, ... of m rows each, watched by a meter.
func metered(t *testing.T, n, m int) (*tables.Rows[tables.Entity], []string, *meter) {
	t.Helper()
	watch := &meter{}
	a, table := harness.AccountWith(t, harness.Watching(watch)), harness.NewTable(t, harness.Account(t))
	partitions := make([]string, n)
	for i := range partitions {
		partitions[i] = fmt.Sprintf("p%02d", i)
		fill(t, table, numbered(partitions[i], m))
	}
	return a.Table(table.Name()).Entities(), partitions, watch
}

// keysOf lists what a sequence yields, and its error.
func keysOf(all iter.Seq2[*tables.Entity, error]) (keys []string, err error) {
	for e, err := range all {
		if err != nil {
			return keys, err
		}
		keys = append(keys, e.Key.Partition+"/"+e.Key.Row)
	}
	return keys, nil
}

func byRow(a, b *tables.Entity) int { return strings.Compare(a.Key.Row, b.Key.Row) }

func TestAllPartitions(t *testing.T) {
	noLeaks(t)
	ctx := context.Background()
	table, partitions, watch := metered(t, 20, 5)
	backwards := slices.Clone(partitions)
	slices.Reverse(backwards)
	backwards = append(backwards, "p03", "none", "p00")
	var inOrder, merged []string
	for _, p := range partitions {
		for row := range 5 {
			inOrder = append(inOrder, fmt.Sprintf("%s/%04d", p, row))
		}
	}
	for row := range 5 {
		for _, p := range partitions {
			merged = append(merged, fmt.Sprintf("%s/%04d", p, row))
		}
	}
	for _, order := range []func(a, b *tables.Entity) int{nil, byRow} {
		want := inOrder
		if order != nil {
			want = merged
		}
		options := &tables.ParallelOptions[tables.Entity]{Concurrency: 3, Order: order}
		for _, size := range []int{0, 2} {
			for _, top := range []int{0, 1, 7, 99, 100, 1000} {
				watch.most.Store(0)
				got, err := keysOf(table.Query().Top(top).PageSize(size).AllPartitions(ctx, backwards, options))
				n := len(want)
				if top > 0 {
					n = min(n, top)
				}
				if err != nil || !slices.Equal(got, want[:n]) {
					t.Errorf("ordered %v, page size %d, top %d: %d rows %q, error %v", order != nil, size, top, len(got), got, err)
				}
				if most := watch.most.Load(); most > 3 || top == 0 && most < 2 {
					t.Errorf("ordered %v, page size %d, top %d: %d requests at once", order != nil, size, top, most)
				}
			}
		}
	}
	if got, err := keysOf(table.Query().Where(tables.Eq("Text", "p07")).AllPartitions(ctx, partitions, nil)); len(got) != 5 || err != nil || got[0] != "p07/0000" {
		t.Errorf("with a condition: %q, %v", got, err)
	}
	if got, err := keysOf(table.Query().AllPartitions(ctx, nil, nil)); len(got) != 0 || err != nil {
		t.Errorf("of no partition: %q, %v", got, err)
	}
}

// TestAllPartitionsServiceOrder: partitions come in the service's order, which is not that of Go's strings.
func TestAllPartitionsServiceOrder(t *testing.T) {
	table := harness.NewTable(t, harness.Account(t))
	partitions := []string{"\uFF21", "\U0001F600", "a"}
	for _, p := range partitions {
		fill(t, table, numbered(p, 1))
	}
	got, err := keysOf(table.Entities().Query().AllPartitions(context.Background(), partitions, nil))
	if want := []string{"a/0000", "\U0001F600/0000", "\uFF21/0000"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAllPartitionsRefuses(t *testing.T) {
	ctx := context.Background()
	table := harness.InProcess(t, nil).Table("Contoso").Entities()
	nobody := (*tables.Account)(nil).Table("Contoso").Entities()
	for name, all := range map[string]iter.Seq2[*tables.Entity, error]{
		"a partition of its own": table.Query().Partition("p").AllPartitions(ctx, []string{"a"}, nil),
		"an illegal partition":   table.Query().AllPartitions(ctx, []string{"a/b"}, nil),
		"a wrong query":          table.Query().Top(-1).AllPartitions(ctx, []string{"a"}, nil),
		"no account":             nobody.Query().AllPartitions(ctx, []string{"a"}, nil),
		"no account, in order":   nobody.Query().AllPartitions(ctx, []string{"a"}, &tables.ParallelOptions[tables.Entity]{Order: byRow}),
	} {
		_, err := keysOf(all)
		if err == nil {
			t.Errorf("%s is accepted", name)
			continue
		}
		harness.WantKind(t, err, map[bool]error{false: tables.ErrWiring, true: tables.ErrInvalid}[name == "an illegal partition" || name == "a wrong query"])
	}
	if one := (*tables.Account)(nil).Table("Contoso"); !one.Same((*tables.Account)(nil).Table("contoso")) || one.Same(harness.InProcess(t, nil).Table("Contoso")) {
		t.Error("the tables of no account are not compared by their names")
	}
}

func TestAllPartitionsStopsEarly(t *testing.T) {
	noLeaks(t)
	table, partitions, watch := metered(t, 20, 4)
	for _, order := range []func(a, b *tables.Entity) int{nil, byRow} {
		watch.total.Store(0)
		n := 0
		for _, err := range table.Query().PageSize(1).AllPartitions(context.Background(), partitions, &tables.ParallelOptions[tables.Entity]{Concurrency: 3, Order: order}) {
			assert.Check(t, err)
			if n++; n == 2 {
				break
			}
		}
		bound := int64(3*3 + 2) // in order: three streams under way, two pages ahead each
		if order != nil {
			bound = 20*3 + 2
		}
		if now, total := watch.now.Load(), watch.total.Load(); n != 2 || now != 0 || total > bound {
			t.Errorf("ordered %v: %d rows, %d requests under way, %d made", order != nil, n, now, total)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancelled := func(yield func(*tables.Entity, error) bool) {
			for e, err := range table.Query().PageSize(1).AllPartitions(ctx, partitions, &tables.ParallelOptions[tables.Entity]{Order: order}) {
				cancel()
				if !yield(e, err) {
					return
				}
			}
		}
		if got, err := keysOf(cancelled); !errors.Is(err, context.Canceled) || len(got) > 20 {
			t.Errorf("ordered %v, cancelled: %d rows, error %v", order != nil, len(got), err)
		}
	}
}

// TestAllPartitionsError: a partition that fails ends the sequence with its error, and leaves nothing running.
func TestAllPartitionsError(t *testing.T) {
	noLeaks(t)
	broken := errors.New("broken")
	a := harness.InProcess(t, func(req *http.Request) (*http.Response, error) {
		filter := req.URL.Query().Get("$filter")
		if strings.Contains(filter, "'p02'") {
			return nil, broken
		}
		key := strings.Split(filter, "'")[1]
		row := `{"odata.etag":"W/\"1\"","PartitionKey":"` + key + `","RowKey":`
		return harness.Reply(req, 200, `{"value":[`+row+`"a"},`+row+`"b"}]}`), nil
	})
	for _, order := range []func(a, b *tables.Entity) int{nil, byRow} {
		options := &tables.ParallelOptions[tables.Entity]{Concurrency: 2, Order: order}
		got, err := keysOf(a.Table("Contoso").Entities().Query().AllPartitions(context.Background(), []string{"p00", "p01", "p02", "p03", "p04"}, options))
		if !errors.Is(err, broken) || order == nil && !slices.Equal(got, []string{"p00/a", "p00/b", "p01/a", "p01/b"}) {
			t.Errorf("ordered %v: %q, %v", order != nil, got, err)
		}
		// A reader that has enough before the broken partition never hears of it.
		if got, err := keysOf(a.Table("Contoso").Entities().Query().Top(3).AllPartitions(context.Background(), []string{"p00", "p01", "p02"}, &tables.ParallelOptions[tables.Entity]{Concurrency: 2})); err != nil || len(got) != 3 {
			t.Errorf("%q, %v", got, err)
		}
	}
}

func TestGetMany(t *testing.T) {
	noLeaks(t)
	ctx := context.Background()
	table, _, watch := metered(t, 3, 10)
	var keys []tables.Key
	var want []string
	for row := 9; row >= 0; row-- {
		for _, p := range []string{"p02", "none", "p00", "p01"} {
			keys = append(keys, tables.Key{Partition: p, Row: fmt.Sprintf("%04d", row)})
			if p != "none" {
				want = append(want, fmt.Sprintf("%s/%04d", p, row))
			}
		}
	}
	keys, want = append(keys, keys[0]), append(want, want[0]) // asked for twice, given twice
	got, err := keysOf(table.GetMany(ctx, keys, &tables.ParallelOptions[tables.Entity]{Concurrency: 3}))
	if err != nil || !slices.Equal(got, want) || watch.most.Load() != 3 || int(watch.total.Load()) != len(keys) {
		t.Errorf("%q, error %v, %d requests, %d at once", got, err, watch.total.Load(), watch.most.Load())
	}
	watch.total.Store(0)
	for _, err := range table.GetMany(ctx, keys, &tables.ParallelOptions[tables.Entity]{Concurrency: 3}) {
		assert.Check(t, err)
		time.Sleep(50 * time.Millisecond) // a slow reader is not left behind
		break
	}
	if now, total := watch.now.Load(), watch.total.Load(); now != 0 || total > 4 {
		t.Errorf("%d requests under way, %d made for the first row", now, total)
	}
	if got, err := keysOf(table.GetMany(ctx, nil, nil)); len(got) != 0 || err != nil {
		t.Errorf("of no key: %q, %v", got, err)
	}
	got, err = keysOf(table.GetMany(ctx, append(slices.Clone(keys[:5]), tables.Key{Partition: "a/b"}, keys[6]), nil))
	if harness.WantKind(t, err, tables.ErrInvalid); !slices.Equal(got, want[:4]) {
		t.Errorf("up to an illegal key: %q", got)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if got, err := keysOf(table.GetMany(cancelled, keys, nil)); !errors.Is(err, context.Canceled) || len(got) != 0 {
		t.Errorf("cancelled: %q, %v", got, err)
	}
}

// TestPlanKeysAnswerAQuery: row keys joined by or are a partition scan; as keys they are so many point reads.
func TestPlanKeysAnswerAQuery(t *testing.T) {
	table, _, _ := metered(t, 1, 5)
	q := table.Query().Partition("p00").Filter("RowKey eq '0003' or RowKey eq '0001' or RowKey eq '9999'")
	plan := assert.Must[tables.Plan](t)(q.Plan())
	byKeys, err := keysOf(table.GetMany(context.Background(), plan.Keys, nil))
	if plan.Class != tables.PartitionScan || err != nil || !slices.Equal(byKeys, []string{"p00/0003", "p00/0001"}) {
		t.Errorf("%v: %q, %v", plan.Class, byKeys, err)
	}
	slices.Sort(byKeys)
	if byQuery, err := keysOf(q.All(context.Background())); err != nil || !slices.Equal(byQuery, byKeys) {
		t.Errorf("the query says %q, %v", byQuery, err)
	}
}
