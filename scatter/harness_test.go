package scatter_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/scatter"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// event is named by a number and a tag.
type event struct {
	tables.Meta
	Number int64
	Tag    string
	Text   string
}

const numberDigits = 6

func rowOf(number int64, tag string) string {
	return compoundkey.Join("event", compoundkey.Int(number, numberDigits), compoundkey.String(tag))
}

func (e *event) row() string { return rowOf(e.Number, e.Tag) }

// numbered is the schema of events whose horizon moves by some numbers at once.
func numbered(step int64, partitions int) scatter.Schema[event] {
	return scatter.Schema[event]{Order: scatter.ByNumber("event", numberDigits, step), Row: (*event).row, Partitions: partitions}
}

func account(s *storagetest.Service) (*tables.Account, error) {
	return tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
}

// open opens the events of a table as a process of its own does.
func open(s *storagetest.Service, table string, schema scatter.Schema[event], options *scatter.Options, attached ...patterns.Pattern[event]) (*scatter.Spread[event], error) {
	a, err := account(s)
	if err != nil {
		return nil, err
	}
	return scatter.New(a.Table(table), schema, options, attached...)
}

// newTable makes a table.
func newTable(t testing.TB, s *storagetest.Service) string {
	t.Helper()
	name := s.TableName(t)
	assert.Check(t, assert.Must[*tables.Account](t)(account(s)).Table(name).Create(t.Context()))
	return name
}

// stored reads every row of the table as it is, by partition and row key, and the record's columns apart.
func stored(ctx context.Context, s *storagetest.Service, table string) (rows []tables.Key, record *tables.Entity, err error) {
	a, err := account(s)
	if err != nil {
		return nil, nil, err
	}
	for e, err := range a.Table(table).Entities().Query().AllowTableScan().All(ctx) {
		switch {
		case err != nil:
			return nil, nil, err
		case strings.HasPrefix(e.Key.Partition, "scatter_"):
			record = e
		default:
			rows = append(rows, e.Key)
		}
	}
	return rows, record, nil
}

// placed checks that no row key is there twice, that each is where the record has it, and that a fresh process reads all of
// them in order and one by one. It returns the row keys in order.
func placed(ctx context.Context, s *storagetest.Service, table string, schema scatter.Schema[event]) ([]string, error) {
	rows, _, err := stored(ctx, s, table)
	if err != nil {
		return nil, err
	}
	fresh, err := open(s, table, schema, nil)
	if err != nil {
		return nil, err
	}
	epochs, err := fresh.Epochs(ctx)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, key := range rows {
		var number int64
		var tag string
		if err := compoundkey.Parse(key.Row, "event", compoundkey.ToInt(&number, numberDigits), compoundkey.ToString(&tag)); err != nil {
			return nil, err
		}
		n := 0
		for _, e := range epochs {
			if e.Number <= number {
				n = e.Partitions
			}
		}
		if n == 0 || key.Partition != fmt.Sprintf("event_%03d", scatter.Bucket(key.Row, n)) {
			return nil, fmt.Errorf("row %s is in %s, by epochs %v", key.Row, key.Partition, epochs)
		}
		if e, err := fresh.Get(ctx, key.Row); err != nil || e.Number != number {
			return nil, fmt.Errorf("row %s cannot be read: %w", key.Row, err)
		}
		all = append(all, key.Row)
	}
	slices.Sort(all)
	if twice := len(all) - len(slices.Compact(slices.Clone(all))); twice > 0 {
		return nil, fmt.Errorf("%d rows are there twice: %v", twice, rows)
	}
	read, err := rowsOf(fresh.Range(ctx, compoundkey.All(), nil))
	if err != nil || !slices.Equal(read, all) {
		return nil, fmt.Errorf("Range gives %v (%w), stored are %v", read, err, all)
	}
	return all, nil
}

// rowsOf collects the row keys that a read yields, and checks that they rise.
func rowsOf(events iter.Seq2[*event, error]) ([]string, error) {
	var rows []string
	for e, err := range events {
		if err != nil {
			return rows, err
		}
		if row := e.Key().Row; len(rows) > 0 && compoundkey.Compare(rows[len(rows)-1], row) >= 0 {
			return rows, fmt.Errorf("%s comes after %s", row, rows[len(rows)-1])
		}
		rows = append(rows, e.Key().Row)
	}
	return rows, nil
}
