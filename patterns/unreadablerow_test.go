package patterns_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// ticket has two unique keys.
type ticket struct {
	tables.Meta
	PartitionKey, RowKey string
	Email, Seat          string
	Price                int64
	Due                  *time.Time
}

func ticketKey(row string) tables.Key { return tables.Key{Partition: "p", Row: row} }

func tickets(t *testing.T, table *tables.Table) *patterns.Repository[ticket] {
	t.Helper()
	return assert.Must[*patterns.Repository[ticket]](t)(patterns.NewRepository(table, patterns.Schema[ticket]{Prefix: "ticket"},
		intrapartition.NewUnique("email", func(v *ticket) string { return v.Email }, nil),
		intrapartition.NewUnique("seat", func(v *ticket) string { return v.Seat }, nil)))
}

// TestUnconditionalVerbsReplaceUnreadableRows: each verb that does not check a version replaces or deletes a row that cannot be read,
// with the copies whose keys its other properties give. It removes no copy of another entity, although the unreadable property could
// stand for that entity's key, and Repair removes the copy whose key is lost.
func TestUnconditionalVerbsReplaceUnreadableRows(t *testing.T) {
	ctx := t.Context()
	replacement := func() *ticket {
		return &ticket{PartitionKey: "p", RowKey: "ticket_1", Email: "new@contoso.com", Seat: "5"}
	}
	bulk := func(r *patterns.Repository[ticket], values ...*ticket) error {
		_, err := r.BulkNonAtomic(ctx, func(yield func(*ticket, error) bool) {
			for _, v := range values {
				if !yield(v, nil) {
					return
				}
			}
		}, &tables.BulkOptions{Verb: tables.BulkUpsert})
		return err
	}
	verbs := map[string]func(*patterns.Repository[ticket]) error{
		"Upsert":               func(r *patterns.Repository[ticket]) error { return r.Upsert(ctx, replacement()) },
		"ReplaceUnconditional": func(r *patterns.Repository[ticket]) error { return r.ReplaceUnconditional(ctx, replacement()) },
		"DeleteUnconditional":  func(r *patterns.Repository[ticket]) error { return r.DeleteUnconditional(ctx, ticketKey("ticket_1")) },
		"BulkUpsert":           func(r *patterns.Repository[ticket]) error { return bulk(r, replacement()) },
		"BulkUpsert of two": func(r *patterns.Repository[ticket]) error {
			return bulk(r, replacement(), &ticket{PartitionKey: "p", RowKey: "ticket_3", Email: "3", Seat: "3"})
		},
	}
	damages := map[string]struct {
		property tables.Property
		orphans  int
	}{
		"a key of another type":   {tables.Property{Name: "Seat", Value: tables.Int32(4)}, 1},
		"a value of another type": {tables.Property{Name: "Price", Value: tables.String("four")}, 0},
		"no value":                {tables.Property{Name: "Price", Value: tables.Int64(5555)}, 0},
	}
	for damage, d := range damages {
		for verb, write := range verbs {
			t.Run(damage+", "+verb, func(t *testing.T) {
				table := harness.NewTable(t, harness.AccountWith(t, harness.Damaged(`"5555"`, `{"total":5}`)))
				r := tickets(t, table)
				assert.Check(t, r.Insert(ctx, &ticket{PartitionKey: "p", RowKey: "ticket_1", Email: "1", Seat: "4"}), r.Insert(ctx, &ticket{PartitionKey: "p", RowKey: "ticket_2", Email: "2"}))
				assert.Check(t, table.Entities().MergeUnconditional(ctx, &tables.Entity{Key: ticketKey("ticket_1"), Properties: tables.Properties{d.property}}))
				_, err := r.Get(ctx, ticketKey("ticket_1"))
				harness.WantKind(t, err, tables.ErrGarbled)

				assert.Check(t, write(r))
				got, err := r.Get(ctx, ticketKey("ticket_1"))
				if deleted := strings.HasPrefix(verb, "Delete"); deleted != errors.Is(err, tables.ErrNotFound) || !deleted && got.Seat != "5" {
					t.Errorf("stored is %+v, %v", got, err)
				}
				found, err := harness.Findings(ctx, r.Verify, nil)
				if err != nil || len(found) != d.orphans || d.orphans > 0 && (found[0].Kind != patterns.Spurious || found[0].Pattern != "seat" || found[0].Entity.Row != "ticket_1") {
					t.Errorf("Verify finds %v, %v", found, err)
				}
				assert.Must[patterns.RepairReport](t)(r.Repair(ctx, nil))
				assert.Check(t, harness.Clean(ctx, r.Verify, nil))
			})
		}
	}
}

// TestUnreadableRowChangesMeanwhile: a writer that repairs the row between the read and the write of an unconditional verb makes the
// verb read again, and so remove the copies of the repaired entity.
func TestUnreadableRowChangesMeanwhile(t *testing.T) {
	ctx := t.Context()
	table := harness.NewTable(t, harness.Account(t))
	repaired := false
	r := tickets(t, table)
	assert.Check(t, r.Insert(ctx, &ticket{PartitionKey: "p", RowKey: "ticket_1", Email: "1", Seat: "4"}))
	assert.Check(t, table.Entities().MergeUnconditional(ctx, &tables.Entity{Key: ticketKey("ticket_1"), Properties: tables.Properties{{Name: "Seat", Value: tables.Int32(4)}}}))
	slow := assert.Must[*patterns.Repository[ticket]](t)(patterns.NewRepository(table, patterns.Schema[ticket]{Prefix: "ticket"},
		intrapartition.NewUnique("email", func(v *ticket) string { return v.Email }, nil),
		intrapartition.NewUnique("seat", func(v *ticket) string {
			if !repaired && v.Email == "1" { // the verb has read the row
				repaired = true
				assert.Check(t, table.Entities().MergeUnconditional(ctx, &tables.Entity{Key: ticketKey("ticket_1"), Properties: tables.Properties{{Name: "Seat", Value: tables.String("4")}}}))
			}
			return v.Seat
		}, nil)))
	assert.Check(t, slow.DeleteUnconditional(ctx, ticketKey("ticket_1")))
	if n := harness.CountRows(t, table); n != 0 || !repaired {
		t.Errorf("%d rows are left", n)
	}
}

// TestInvalidUpsertMakesNoRequest: the unconditional verbs, which read the stored entity, refuse a value that cannot be stored before
// that, and so do the merges of a repository.
func TestInvalidUpsertMakesNoRequest(t *testing.T) {
	type level struct {
		tables.Meta
		PartitionKey, RowKey string
		At                   time.Time
		Due                  *time.Time
	}
	ctx := t.Context()
	a, requests := harness.Counted(t)
	for _, attached := range [][]patterns.Pattern[level]{nil, {intrapartition.NewUnique("due", func(v *level) string { return v.RowKey }, nil)}} {
		r := assert.Must[*patterns.Repository[level]](t)(patterns.NewRepository(harness.NewTable(t, a), patterns.Schema[level]{}, attached...))
		v := &level{PartitionKey: "p", RowKey: "r", At: time.Unix(1, 0)}
		assert.Check(t, r.Insert(ctx, v))
		bulk := func(v *level, verb tables.BulkVerb, names ...string) error {
			_, err := r.BulkNonAtomic(ctx, func(yield func(*level, error) bool) { yield(v, nil) }, &tables.BulkOptions{Verb: verb, Properties: names})
			return err
		}
		staged := func(names ...string) error {
			x := r.Table().NewTransaction()
			r.StageMerge(x, v, names...)
			_, err := x.Commit(ctx)
			return err
		}
		before := requests.Load()
		bad := &level{PartitionKey: "p", RowKey: "r"}
		for _, err := range []error{r.Insert(ctx, bad), r.Upsert(ctx, bad), r.ReplaceUnconditional(ctx, bad), bulk(bad, tables.BulkUpsert), bulk(bad, tables.BulkInsert)} {
			harness.WantKind(t, err, tables.ErrInvalid)
		}
		etag := v.ETag
		for _, names := range [][]string{nil, {"Due"}, {"At", "Due"}} {
			for _, err := range []error{r.Merge(ctx, v, names...), staged(names...), bulk(v, tables.BulkMerge, names...)} {
				if e := harness.WantKind(t, err, tables.ErrInvalid); !strings.Contains(e.Error(), "property Due has no value") || !strings.Contains(e.Error(), "Replace") {
					t.Errorf("a merge of %q: %v", names, e)
				}
			}
		}
		if requests.Load() != before || v.ETag != etag {
			t.Errorf("%d requests", requests.Load()-before)
		}
		for part, err := range r.Query().Partition("p").Select("Due").All(ctx) { // its At is unset, and is not merged
			part.Due = new(time.Unix(2, 0))
			assert.Check(t, err, r.Merge(ctx, part, "Due"))
		}
	}
}
