package relationships

import (
	"context"
	"errors"
	"fmt"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// countProperty holds a number of entities.
const countProperty = "Count"

// attempts limits how often a row is read and written again on conflict.
const attempts = 10

// Count stores the number of entities of each partition in a row of the partition, which is written in the entities'
// own transactions. It is a pattern: give it to NewRepository of the entities to count.
type Count[C any] struct {
	name   string
	counts func(*C) bool

	repository driver.Binding[C]
}

// NewCount returns a count. name is the row key of the row with the number: letters, digits, '-' and '.'. counts
// reports which entities are counted, nil for all; it must be pure, and use stored properties only.
func NewCount[C any](name string, counts func(*C) bool) *Count[C] {
	return &Count[C]{name: name, counts: counts}
}

// Attach implements patterns.Pattern; NewRepository calls it.
func (x *Count[C]) Attach(host driver.Host[C]) (driver.Implementation[C], error) {
	k := &counter[C]{x, host}
	return driver.Implementation[C]{Name: x.name, Binding: &x.repository, Prior: k.prior, Rows: k.rows}, checkRowKeys("the count", x.name, host.RowPrefix())
}

// checkRowKeys refuses a name whose row keys would be among the entities' own.
func checkRowKeys(what, name, rowPrefix string) error {
	if name == rowPrefix {
		return fmt.Errorf("%s has the same row key prefix as the entities; give it another name", what)
	}
	_, err := compoundkey.Encode(name)
	return err
}

// counter is a Count in its repository.
type counter[C any] struct {
	*Count[C]
	host driver.Host[C]
}

// in returns the count in its repository.
func (x *Count[C]) in(op string) (*counter[C], error) {
	host, err := x.repository.Host(op, x.name)
	return &counter[C]{x, host}, err
}

func (x *Count[C]) isCounted(v *C) bool { return x.counts == nil || x.counts(v) }

// counted is the prior state of an entity that counts.
const counted = "1"

// prior records whether an entity is counted.
func (x *counter[C]) prior(v *C, _ tables.Properties) ([]string, error) {
	if x.isCounted(v) {
		return []string{counted}, nil
	}
	return nil, nil
}

// rows writes the number. Every change of the number writes the row, so its ETag detects any concurrent change. The
// row is never removed; if it does not exist yet, the insert detects a concurrent one.
func (x *counter[C]) rows(ctx context.Context, changes []*driver.Change[C]) ([]driver.RowOperation, error) {
	delta := int64(0)
	for _, c := range changes {
		delta -= int64(len(c.Prior))
		if c.Kind != driver.ChangeDelete && x.isCounted(c.Entity) {
			delta++
		}
	}
	if delta == 0 {
		return nil, nil
	}
	partition := changes[0].Key.Partition
	row, err := x.read(ctx, partition)
	if err != nil {
		return nil, err
	}
	n, ok := numberIn(row)
	if !ok || n+delta < 0 {
		// The first one of a partition, or of a program that counts; or what other programs have left.
		if n, err = x.scan(ctx, partition); err != nil {
			return nil, err
		}
	}
	return []driver.RowOperation{put(row, max(n+delta, 0))}, nil
}

// read returns the row, without an ETag if it does not exist.
func (x *counter[C]) read(ctx context.Context, partition string) (*tables.Entity, error) {
	return readRow(ctx, x.host.Table(), tables.Key{Partition: partition, Row: compoundkey.Join(x.name)})
}

// readRow reads a row of this package, without an ETag if it does not exist. Requests: 1.
func readRow(ctx context.Context, table *tables.Table, key tables.Key) (*tables.Entity, error) {
	row, err := table.Entities().Get(ctx, key)
	if errors.Is(err, tables.ErrNotFound) {
		return &tables.Entity{Key: key}, nil
	}
	return row, err
}

// numberIn returns the number in a row; false if it is missing or invalid.
func numberIn(row *tables.Entity) (int64, bool) {
	n, ok := row.Get(countProperty).Int()
	return n, ok && n >= 0 && row.ETag != ""
}

// put is the write of a number under the ETag of the row that was read.
func put(row *tables.Entity, n int64) driver.RowOperation {
	next := &tables.Entity{Key: row.Key, ETag: row.ETag}
	next.Set(countProperty, tables.Int64(n))
	if row.ETag == "" {
		return driver.RowOperation{Verb: driver.InsertRow, Row: next}
	}
	return driver.RowOperation{Verb: driver.ReplaceRow, Row: next}
}

// scan counts the entities themselves. Requests: 1 for each page of at most 1,000.
func (x *counter[C]) scan(ctx context.Context, partition string) (n int64, err error) {
	for v, err := range x.host.Query().Partition(partition).All(ctx) {
		if err != nil {
			return 0, err
		}
		if x.isCounted(v) {
			n++
		}
	}
	return n, nil
}

// Get returns the number of entities in a partition. Requests: 1, and 1 for each page of entities if the partition has
// no stored number yet.
func (x *Count[C]) Get(ctx context.Context, partition string) (int64, error) {
	k, err := x.in("Get")
	if err != nil {
		return 0, err
	}
	row, err := k.read(ctx, partition)
	if err != nil {
		return 0, err
	}
	if n, ok := numberIn(row); ok {
		return n, nil
	}
	return k.scan(ctx, partition)
}

// Recount counts the entities of a partition again, and returns the number and the previously stored one (-1 for
// none). Use it for partitions that programs without the count have written. The number is exact: if an entity is
// inserted or deleted meanwhile, it counts again, and is tables.ErrConflict after ten attempts. Requests: 2, and 1 for
// each page of entities.
func (x *Count[C]) Recount(ctx context.Context, partition string) (n, was int64, err error) {
	k, err := x.in("Recount")
	if err != nil {
		return 0, 0, err
	}
	key := tables.Key{Partition: partition, Row: compoundkey.Join(x.name)}
	return recount[C](ctx, x.name, k.host.Table(), key, func(ctx context.Context) (int64, error) { return k.scan(ctx, partition) })
}

// recount counts again, and writes the number into its row where it is another, under the ETag that the row was read with before.
func recount[C any](ctx context.Context, pattern string, table *tables.Table, key tables.Key, scan func(context.Context) (int64, error)) (n, was int64, err error) {
	err = backoff.Retry(ctx, attempts, func() (again bool, err error) {
		row, err := readRow(ctx, table, key)
		if err != nil {
			return false, err
		}
		var ok bool
		if was, ok = numberIn(row); !ok {
			was = -1
		}
		if n, err = scan(ctx); err != nil || n == was {
			return false, err
		}
		err = driver.NewReconciliation(pattern, driver.Reconciliation[C]{Key: key, Keys: []string{key.Row}}).Write(ctx, key.Row, table, put(row, n))
		return driver.RowsChanged(err), err
	})
	return n, was, err
}
