package highvolumedelete_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablepatterns/tablepatterns/highvolumedelete"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// fill loads each of the days before noon, today included, with so many logins of so many users, in bulk.
func fill(t testing.TB, logins *highvolumedelete.Tables[login], days, users, each int) {
	t.Helper()
	for day := range days {
		at := noon.AddDate(0, 0, -day)
		assert.Check(t, logins.Prepare(t.Context(), at, at))
		all := iter.Seq2[*login, error](func(yield func(*login, error) bool) {
			for user := range users {
				for i := range each {
					if !yield(&login{User: fmt.Sprintf("user%04d", user), At: at.Add(time.Duration(i) * time.Second)}, nil) {
						return
					}
				}
			}
		})
		assert.Check(t, assert.Err(assert.Must[*patterns.Repository[login]](t)(logins.Repository(at)).BulkNonAtomic(t.Context(), all, nil)))
	}
}

// TestDropSaves: 60 of 90 days go with 60 requests, and 3 to mark and list. Deleting the rows is done as well, and counted.
func TestDropSaves(t *testing.T) {
	ctx := t.Context()
	users := 10
	if testing.Short() {
		users = 2
	}
	s, requests := harness.CountedService(storagetest.Simulator(t, nil))
	logins := mustStart(t, s, schemaOf("Logins", func() time.Time { return noon }))
	fill(t, logins, 90, users, 3)
	if _, err := logins.Drop(ctx, noon.AddDate(0, 0, -89), noGrace()); err != nil { // the mark is there already
		t.Fatal(err)
	}
	before := noon.AddDate(0, 0, -29)
	planned := assert.Must[highvolumedelete.DropReport](t)(logins.Drop(ctx, before, &highvolumedelete.DropOptions{DryRun: true, Count: true}))
	if len(planned.Tables) != 60 || planned.Rows != int64(60*users*3) || planned.Instead != int64(60*(users+1)) || planned.Requests != 2 {
		t.Errorf("the dry run plans %d tables, %d rows, %d requests instead, with %d of its own", len(planned.Tables), planned.Rows, planned.Instead, planned.Requests)
	}
	requests.Reset()
	instead := deleteRows(t, mustStart(t, s, schemaOf("Logins", func() time.Time { return noon })), 3)
	if got := requests.Count(); got != instead || int64(20*instead) != planned.Instead {
		t.Errorf("deleting the rows of 3 days took %d requests, and of 60 it was said to be %d", got, planned.Instead)
	}
	requests.Reset()
	report := assert.Must[highvolumedelete.DropReport](t)(logins.Drop(ctx, before, noGrace()))
	if len(report.Tables) != 60 || requests.CountOf(storagetest.DeleteTable) != 60 || requests.Count() != 63 || report.Requests != 63 {
		t.Errorf("%d tables, with %v; it reports %d", len(report.Tables), requests.Kinds(), report.Requests)
	}
	if want := noon.AddDate(0, 0, -29).Truncate(24 * time.Hour); !report.Mark.Equal(want) {
		t.Errorf("the mark is %v, want %v", report.Mark, want)
	}
	assert.Equal(t, len(assert.Must[[]string](t)(logins.List(ctx))), 30, "days left")
	t.Logf("%d rows: %d requests; by transactions %d", planned.Rows, report.Requests, planned.Instead)
}

// deleteRows is how to do without the pattern: the rows of the oldest days are found by a scan, and deleted by transactions.
func deleteRows(t testing.TB, logins *highvolumedelete.Tables[login], days int) (requests int) {
	t.Helper()
	for day := range days {
		repo := assert.Must[*patterns.Repository[login]](t)(logins.Repository(noon.AddDate(0, 0, day-89)))
		rows := map[string][]tables.Key{}
		token, first := "", true
		for first || token != "" {
			page, err := repo.Table().Entities().Query().Select("PartitionKey").AllowTableScan().Page(t.Context(), token)
			assert.Check(t, err)
			for _, row := range page.Items {
				rows[row.Key.Partition] = append(rows[row.Key.Partition], row.Key)
			}
			requests++
			token, first = page.Next, false
		}
		for _, keys := range rows {
			for len(keys) > 0 {
				n := min(len(keys), tables.MaxTransactionOperations)
				x := repo.Table().NewTransaction()
				for _, key := range keys[:n] {
					x.DeleteUnconditional(key)
				}
				assert.Check(t, assert.Err(x.Commit(t.Context())))
				requests++
				keys = keys[n:]
			}
		}
	}
	return requests
}

// TestDropRefuses: the present period is never dropped, whatever it is asked for, and a dry run changes nothing.
func TestDropRefuses(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	name := nameOf(t, s)
	logins := mustStart(t, s, schemaOf(name, func() time.Time { return noon }))
	insert(t, logins, "june", noon, noon.AddDate(0, 0, -1), noon.AddDate(0, 0, 1))
	assert.ErrorIs(t, assert.Err(logins.Drop(ctx, noon.AddDate(0, 0, 1), noGrace())), tables.ErrInvalid, "Drop with the present day")
	if at := assert.Must[time.Time](t)(logins.Mark(ctx)); !at.IsZero() {
		t.Errorf("a mark of %v", at)
	}
	planned := assert.Must[highvolumedelete.DropReport](t)(logins.Drop(ctx, noon, &highvolumedelete.DropOptions{DryRun: true}))
	if labels(planned.Tables, name) != "[D20140821]" || len(assert.Must[[]string](t)(logins.List(ctx))) != 3 {
		t.Errorf("the dry run plans %v", planned.Tables)
	}
	if at := assert.Must[time.Time](t)(logins.Mark(ctx)); !at.IsZero() {
		t.Errorf("a dry run leaves a mark of %v", at)
	}
	assert.Equal(t, labels(assert.Must[highvolumedelete.DropReport](t)(logins.Drop(ctx, noon, noGrace())).Tables, name), "[D20140821]", "dropped")
	// The mark never goes back, and an earlier Drop says which one holds.
	report := assert.Must[highvolumedelete.DropReport](t)(logins.Drop(ctx, noon.AddDate(-1, 0, 0), noGrace()))
	if want := noon.Truncate(24 * time.Hour); !report.Mark.Equal(want) || len(report.Tables) != 0 {
		t.Errorf("an earlier Drop reports a mark of %v and %v", report.Mark, report.Tables)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	assert.ErrorIs(t, assert.Err(logins.Drop(cancelled, noon, nil)), context.Canceled, "Drop with a context that is over")
}

// TestMarkIsRead: a mark that makes no sense is no mark, and closes nothing silently.
func TestMarkIsRead(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	logins := mustStart(t, s, schemaOf(nameOf(t, s), func() time.Time { return noon }))
	assert.Check(t, logins.Control().Create(ctx))
	row := &tables.Entity{Key: tables.Key{Partition: "mark", Row: "D"}, Properties: tables.Properties{{Name: "Before", Value: tables.String("M201408")}}}
	assert.Check(t, logins.Control().Entities().Upsert(ctx, row))
	assert.ErrorIs(t, logins.Insert(ctx, &login{User: "june", At: noon}), tables.ErrGarbled, "Insert")
	assert.ErrorIs(t, assert.Err(logins.Drop(ctx, noon, noGrace())), tables.ErrGarbled, "Drop")
	// What an earlier build stored is read.
	row.Set("Before", tables.String("D20140820"))
	assert.Check(t, logins.Control().Entities().Upsert(ctx, row))
	if at := assert.Must[time.Time](t)(logins.Mark(ctx)); !at.Equal(time.Date(2014, 8, 20, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("the mark is %v", at)
	}
	assert.Check(t, assert.Err(logins.Drop(ctx, noon, noGrace())))
	stored := assert.Must[*tables.Entity](t)(logins.Control().Entities().Get(ctx, row.Key))
	if got, want := stored.Get("Before"), tables.String("D20140822"); got != want {
		t.Errorf("the stored mark is %v, want %v", got, want)
	}
}

// TestConcurrentDrops: all report without an error, and each table goes once.
func TestConcurrentDrops(t *testing.T) {
	s := storagetest.Open(t)
	schema := schemaOf(nameOf(t, s), func() time.Time { return noon })
	logins := mustStart(t, s, schema)
	for day := range 6 {
		insert(t, logins, "june", noon.AddDate(0, 0, -day))
	}
	reports, errs := make([]highvolumedelete.DropReport, 4), make([]error, 4)
	var wg sync.WaitGroup
	for i := range reports {
		other := mustStart(t, s, schema)
		wg.Go(func() { reports[i], errs[i] = other.Drop(context.Background(), noon.AddDate(0, 0, -i), noGrace()) })
	}
	wg.Wait()
	assert.Check(t, errors.Join(errs...))
	dropped := map[string]int{}
	for _, r := range reports {
		for _, name := range r.Tables {
			dropped[name]++
		}
	}
	if len(dropped) != 5 || len(assert.Must[[]string](t)(logins.List(t.Context()))) != 1 {
		t.Errorf("dropped are %v", dropped)
	}
}

// TestGraceIsWaited: between the mark and the first table lies DefaultGrace, and the context ends the wait.
func TestGraceIsWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storagetest.Simulator(t, nil)
		logins := mustStart(t, s, schemaOf("Logins", func() time.Time { return noon }))
		insert(t, logins, "june", noon.AddDate(0, 0, -1))
		ctx, cancel := context.WithTimeout(t.Context(), highvolumedelete.DefaultGrace-time.Second)
		defer cancel()
		if _, err := logins.Drop(ctx, noon, nil); !errors.Is(err, context.DeadlineExceeded) || len(assert.Must[[]string](t)(logins.List(t.Context()))) != 1 {
			t.Errorf("a second short of the grace: %v", err)
		}
		start := time.Now()
		if report, err := logins.Drop(t.Context(), noon, nil); err != nil || len(report.Tables) != 1 || time.Since(start) != highvolumedelete.DefaultGrace {
			t.Errorf("after %v: %v, %v", time.Since(start), report.Tables, err)
		}
	})
}

// TestFirstDropIsQuiet: the first Drop finds no control table, which is expected, so it logs and counts nothing about a missing table.
func TestFirstDropIsQuiet(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	var lines bytes.Buffer
	account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{
		ClientOptions: s.ClientOptions, Logger: slog.New(slog.NewTextHandler(&lines, nil))}))
	logins := assert.Must[*highvolumedelete.Tables[login]](t)(highvolumedelete.New(account, schemaOf("Logins", func() time.Time { return noon })))
	report := assert.Must[highvolumedelete.DropReport](t)(logins.Drop(t.Context(), noon.AddDate(0, 0, -1), noGrace()))
	if strings.Contains(lines.String(), "resource_missing") || report.Requests == 0 {
		t.Errorf("a first Drop of %d requests logs %q", report.Requests, &lines)
	}
}
