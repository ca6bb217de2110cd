package patterns_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// staff are the entities of the tests of Verify, Repair and Rebuild: two indexes in the partition, two outside of it, and two
// auditors.
type staff struct {
	tables.Meta
	Department string
	ID         int
	Name       string
	Email      string
	Badge      string
	Tag        string
	Age        int
}

func staffKey(v *staff) tables.Key {
	return tables.Key{Partition: v.Department, Row: compoundkey.Join("empid", compoundkey.Int(v.ID, 6))}
}

// colleague is the n-th of the staff.
func colleague(n, departments int) *staff {
	return &staff{Department: fmt.Sprintf("D%02d", n%departments), ID: n, Name: fmt.Sprintf("Name %d", n%97), Email: fmt.Sprintf("m%06d", n),
		Badge: fmt.Sprintf("B%06d", n), Tag: fmt.Sprintf("t%d", n%199), Age: n % 70}
}

func textKey(s string) compoundkey.Part {
	if s == "" {
		return compoundkey.Part{}
	}
	return compoundkey.String(s)
}

// office is where the staff is kept.
type office struct {
	service             *storagetest.Service
	table, badge, marks string
	queue               string
	without             []string // patterns that a program does not have
	async               bool
}

// desk is one program.
type desk struct {
	service             *storagetest.Service
	repo                *patterns.Repository[staff]
	queue               *eventual.Queue
	table, badge, marks *tables.Table
}

func newOffice(t testing.TB, s *storagetest.Service) *office {
	t.Helper()
	o := &office{service: s, table: s.TableName(t), badge: s.TableName(t), marks: s.TableName(t), queue: s.QueueName(t)}
	d := o.open(t)
	for _, err := range []error{d.table.Create(t.Context()), d.badge.Create(t.Context()), d.marks.Create(t.Context()), d.queue.Create(t.Context())} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return o
}

func (o *office) open(t testing.TB, policies ...policy.Policy) *desk {
	t.Helper()
	return assert.Must[*desk](t)(o.start(o.service, policies...))
}

func (o *office) start(s *storagetest.Service, policies ...policy.Policy) (*desk, error) {
	options := s.ClientOptions
	options.PerRetryPolicies = append(slices.Clip(options.PerRetryPolicies), policies...)
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: options})
	if err != nil {
		return nil, err
	}
	d := &desk{service: s, table: account.Table(o.table), badge: account.Table(o.badge), marks: account.Table(o.marks)}
	if d.queue, err = eventual.NewQueue(account, o.queue, &eventual.QueueOptions{VisibilityTimeout: 30 * time.Second}); err != nil {
		return nil, err
	}
	var all []patterns.Pattern[staff]
	for _, p := range []struct {
		name    string
		pattern patterns.Pattern[staff]
	}{
		{"email", intrapartition.NewUnique("email", func(v *staff) compoundkey.Part { return textKey(v.Email) }, nil)},
		{"name", intrapartition.NewUnique("name", func(v *staff) compoundkey.Part {
			return compoundkey.Tuple(compoundkey.String(v.Name), compoundkey.Int(v.ID, 6))
		}, &intrapartition.Options{Project: []string{"Name"}})},
		{"mail", interpartition.NewUnique("mail", func(v *staff) compoundkey.Part { return textKey(v.Email) }, &interpartition.Options[staff]{ByPartition: true})},
		{"badge", interpartition.NewUnique("badge", func(v *staff) compoundkey.Part { return textKey(v.Badge) }, &interpartition.Options[staff]{
			Table:   d.badge,
			Project: []string{"Name"},
		})},
		{"roster", &roster{d.table}},
		{"marks", &notes[staff]{name: "marks", table: d.marks, text: func(v *staff) string { return v.Tag }}},
	} {
		if !slices.Contains(o.without, p.name) {
			all = append(all, p.pattern)
		}
	}
	schema := patterns.Schema[staff]{Key: staffKey, Prefix: "empid", MaxAttempts: 40}
	d.repo, err = patterns.NewRepository(harness.In(d.table, d.queue), schema, harness.AsyncIf(o.async, all...)...)
	return d, err
}

// fill inserts members, several at once.
func (d *desk) fill(t testing.TB, n, departments int) {
	t.Helper()
	var next atomic.Int64
	var running sync.WaitGroup
	for range min(8, departments) {
		running.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := d.repo.Insert(t.Context(), colleague(i, departments)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// fixed are options for a small lag.
func fixed() patterns.JobOptions { return patterns.JobOptions{Lag: 20 * time.Millisecond} }

// verify lists what Verify finds, as texts in order.
func (d *desk) verify(t testing.TB, o patterns.JobOptions) []string {
	t.Helper()
	found, _ := d.verified(t, o)
	return found
}

// verified is verify, with the report.
func (d *desk) verified(t testing.TB, o patterns.JobOptions) ([]string, patterns.VerifyReport) {
	t.Helper()
	found := []string{}
	o.Found = func(f patterns.Finding) error {
		found = append(found, brief(f))
		return nil
	}
	report, err := d.repo.Verify(t.Context(), &o)
	assert.NoError(assert.Fatal(t), err)
	slices.Sort(found)
	return found, report
}

// brief is a discrepancy without its reason.
func brief(x patterns.Finding) string {
	return fmt.Sprintf("%v %s %q %s/%s", x.Kind, x.Pattern, x.Location, x.Entity.Partition, x.Entity.Row)
}

// rawRow is a row as it is stored, to be changed behind the library's back.
type rawRow map[string]any

func readRaw(t testing.TB, table *tables.Table, key tables.Key) rawRow {
	t.Helper()
	answer, err := table.Client().GetEntity(context.Background(), key.Partition, key.Row, nil)
	if err != nil {
		t.Fatal(err)
	}
	row := rawRow{}
	if err := json.Unmarshal(answer.Value, &row); err != nil {
		t.Fatal(err)
	}
	delete(row, "odata.etag")
	delete(row, "odata.metadata")
	delete(row, "Timestamp")
	return row
}

func (r rawRow) write(t testing.TB, table *tables.Table) {
	t.Helper()
	body, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.Client().UpsertEntity(context.Background(), body, &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace}); err != nil {
		t.Fatal(err)
	}
}

func deleteRaw(t testing.TB, table *tables.Table, key tables.Key) {
	t.Helper()
	if _, err := table.Client().DeleteEntity(context.Background(), key.Partition, key.Row, nil); err != nil {
		t.Fatal(err)
	}
}
