package tables_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// The benchmarks compare this library with the bare SDK in one run, over one transport within the process. See
// docs/reference/performance.md for what they show and what they do not.

func BenchmarkPage(b *testing.B)        { benchEach(b, newSides(b).pageContenders()) }
func BenchmarkGet(b *testing.B)         { benchEach(b, newSides(b).getContenders()) }
func BenchmarkTransaction(b *testing.B) { benchEach(b, newSides(b).transactionContenders()) }
func BenchmarkUpsert(b *testing.B)      { benchEach(b, newSides(b).upsertContenders()) }

// The ratio benchmarks run all sides in turns, so that a change of the machine's speed meets all of them, and report
// how many times the processor time of this library each other side takes.

func BenchmarkRatioPage(b *testing.B) {
	s := newSides(b)
	harness.Ratios(b, s.pageContenders())
	b.ReportMetric(testing.AllocsPerRun(5, mustRun(b, s.pageOurs))/benchPageSize, "allocs/entity")
}

func BenchmarkRatioGet(b *testing.B)         { harness.Ratios(b, newSides(b).getContenders()) }
func BenchmarkRatioTransaction(b *testing.B) { harness.Ratios(b, newSides(b).transactionContenders()) }
func BenchmarkRatioUpsert(b *testing.B)      { harness.Ratios(b, newSides(b).upsertContenders()) }

// TestPageAllocations holds the price of an entity read: its own memory and one for each text and binary.
func TestPageAllocations(t *testing.T) {
	s := newSides(t)
	got := testing.AllocsPerRun(5, mustRun(t, s.pageOurs)) / benchPageSize
	if t.Logf("%.2f allocations an entity", got); got > 8 {
		t.Errorf("%.2f allocations for each entity of a page, want at most 8", got)
	}
}

func mustRun(t testing.TB, f func() error) func() {
	return func() {
		if err := f(); err != nil {
			t.Fatal(err)
		}
	}
}

func benchEach(b *testing.B, contenders []harness.Contender) {
	for _, c := range contenders {
		b.Run(c.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func (s *sides) pageContenders() []harness.Contender {
	return []harness.Contender{
		{Name: "ours", Run: s.pageOurs},
		{Name: "EDMEntity", Run: s.pageEDMEntity},
		{Name: "struct", Run: s.pageStruct},
		{Name: "json.Valid", Run: s.pageValid},
	}
}

func (s *sides) pageOurs() error {
	page, err := s.ours.Query().Partition("Sales").Page(context.Background(), "")
	return enough(len(page.Items), err)
}

func (s *sides) pageEDMEntity() error {
	_, err := readSDK[aztables.EDMEntity](s)
	return err
}

func (s *sides) pageStruct() error {
	_, err := readSDK[plainEmployee](s)
	return err
}

// pageValid is what looking at the page's bytes costs, the least that any reader can cost.
func (s *sides) pageValid() error {
	if !json.Valid(s.canned.page) {
		return tables.ErrGarbled
	}
	return nil
}

// readSDK reads a page with the SDK's pager, and every entity of it with encoding/json, as the SDK's examples do.
func readSDK[T any](s *sides) ([]T, error) {
	filter, top := "PartitionKey eq 'Sales'", int32(benchPageSize)
	answer, err := s.sdk.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &filter, Top: &top}).NextPage(context.Background())
	if err != nil {
		return nil, err
	}
	items := make([]T, len(answer.Entities))
	for i, text := range answer.Entities {
		if err := json.Unmarshal(text, &items[i]); err != nil {
			return nil, err
		}
	}
	return items, enough(len(items), nil)
}

// getContenders read one employee by its key.
func (s *sides) getContenders() []harness.Contender {
	ctx := context.Background()
	ours := func() error {
		_, err := s.ours.Get(ctx, tables.Key{Partition: "Sales", Row: "empid_000000"})
		return err
	}
	return []harness.Contender{{Name: "ours", Run: ours}, {Name: "EDMEntity", Run: getSDK[aztables.EDMEntity](s)}, {Name: "struct", Run: getSDK[plainEmployee](s)}}
}

func getSDK[T any](s *sides) func() error {
	return func() error {
		answer, err := s.sdk.GetEntity(context.Background(), "Sales", "empid_000000", nil)
		if err != nil {
			return err
		}
		return json.Unmarshal(answer.Value, new(T))
	}
}

func enough(n int, err error) error {
	if err == nil && n != benchPageSize {
		return tables.ErrGarbled
	}
	return err
}
