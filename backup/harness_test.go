package backup_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/backup"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

var small = &backup.Options{ChunkBytes: 1 << 10}

// fill writes n rows of all types into partitions of different sizes.
func fill(t testing.TB, table *tables.Table, n int) {
	t.Helper()
	report, err := table.Entities().BulkNonAtomic(context.Background(), func(yield func(*tables.Entity, error) bool) {
		for i := range n {
			if !yield(rowOf(i), nil) {
				return
			}
		}
	}, nil)
	if err != nil || report.Written != int64(n) {
		t.Fatal(report, err)
	}
}

// keyOf spreads rows over partitions of which one has half of them.
func keyOf(i int) tables.Key {
	partition := "big"
	if i%2 == 1 {
		partition = []string{"", "a", "it's", "Ω", "z"}[i/2%5]
	}
	return tables.Key{Partition: partition, Row: fmt.Sprintf("%06d", i)}
}

func rowOf(i int) *tables.Entity {
	when, err := tables.DateTime(time.Date(2014, 8, 22, 0, 50, i%60, i*100, time.UTC))
	if err != nil {
		panic(err)
	}
	return &tables.Entity{Key: keyOf(i), Properties: tables.Properties{
		{Name: "Zulu", Value: tables.String(strings.Repeat("ä\"\n\u2028", i%7))},
		{Name: "Alpha", Value: tables.Int32(int32(i))},
		{Name: "Large", Value: tables.Int64(math.MaxInt64 - int64(i))},
		{Name: "Ratio", Value: tables.Double(float64(i) / 3)},
		{Name: "Whole", Value: tables.Double(float64(i))},
		{Name: "Odd", Value: tables.Boolean(i%2 == 1)},
		{Name: "When", Value: when},
		{Name: "ID", Value: tables.GUID(uuid.NewSHA1(uuid.Nil, []byte{byte(i)}))},
		{Name: "Raw", Value: tables.Binary([]byte{0, byte(i), 255})},
	}}
}

// newTable makes a table in the account of a service.
func newTable(t testing.TB, a *tables.Account) *tables.Table {
	t.Helper()
	return harness.NewTable(t, a)
}

// opened opens the vault of a new folder.
func opened(t testing.TB) *backup.Vault {
	t.Helper()
	v := assert.Must[*backup.Vault](t)(backup.OpenFolder(t.TempDir()))
	t.Cleanup(func() { assert.Check(t, v.Close()) })
	return v
}

// differences compares two tables.
func differences(ctx context.Context, first, second *tables.Table, options *backup.Options) (found []backup.Difference, err error) {
	if options == nil {
		options = &backup.Options{}
	}
	with := *options
	with.Found = func(d backup.Difference) error {
		found = append(found, d)
		return nil
	}
	report, err := backup.Compare(ctx, first, second, &with)
	if err == nil && report.Findings != int64(len(found)) {
		err = fmt.Errorf("%d findings, and %d were given to Found", report.Findings, len(found))
	}
	slices.SortFunc(found, func(a, b backup.Difference) int { return strings.Compare(a.String(), b.String()) })
	return found, err
}

// wantSame fails unless two tables have the same n rows.
func wantSame(t testing.TB, first, second *tables.Table, n int) {
	t.Helper()
	report, err := backup.Compare(context.Background(), first, second, nil)
	if err != nil || report.Findings != 0 || report.Read != int64(n) || report.Rows != 2*int64(n) {
		found, err2 := differences(context.Background(), first, second, nil)
		t.Fatalf("%v, %v: %v %v", report, err, found[:min(5, len(found))], err2)
	}
}

func sortDifferences(found []backup.Difference) {
	slices.SortFunc(found, func(a, b backup.Difference) int { return strings.Compare(a.String(), b.String()) })
}
