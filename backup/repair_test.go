package backup_test

import (
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/backup"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

type employee struct {
	tables.Meta
	Department, Name, Email, Badge string
}

// staff is a repository with an index in other partitions, and a unique one.
type staff struct {
	store     *patterns.Store
	employees *patterns.Repository[employee]
	byBadge   *interpartition.Index[employee]
}

func openStaff(t testing.TB, account *tables.Account, table string) *staff {
	t.Helper()
	s := &staff{store: harness.Must[*patterns.Store](t)(patterns.NewStore(account, strings.ToLower(table), nil))}
	byEmail := interpartition.NewIndex("email", func(e *employee) compoundkey.Part { return compoundkey.String(e.Email) }, nil)
	s.byBadge = interpartition.NewIndex("badge", func(e *employee) compoundkey.Part { return compoundkey.String(e.Badge) }, &interpartition.Options[employee]{Unique: true})
	s.employees = harness.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(s.store.Table(table), patterns.Schema[employee]{
		Key:  func(e *employee) tables.Key { return tables.Key{Partition: e.Department, Row: "empid_" + e.Name} },
		Rows: compoundkey.Starting("empid"),
	}, byEmail, s.byBadge))
	harness.Check(t, s.store.Create(t.Context()))
	return s
}

// TestRepair: after a restore under another name the index copies in other partitions hold ETags of the source. Result.Outside tells of
// them, Verify finds each, and Repair mends them.
func TestRepair(t *testing.T) {
	const n = 12
	account := harness.Account(t)
	from := openStaff(t, account, newTable(t, account).Name())
	for i := range n {
		name := string(rune('a' + i))
		harness.Check(t, from.employees.Insert(t.Context(), &employee{Department: []string{"Sales", "IT"}[i%2], Name: name, Email: name + "@contoso.com", Badge: "b" + name}))
	}
	source := account.Table(from.employees.Table().Name())
	harness.Check(t, harness.Clean(t.Context(), from.store.Verify, nil))

	v := opened(t)
	if _, err := v.Backup(t.Context(), "staff", []*tables.Table{source}, nil); err != nil {
		t.Fatal(err)
	}
	to := openStaff(t, account, newTable(t, account).Name())
	result, err := v.Restore(t.Context(), "staff", []backup.Target{{Name: source.Name(), To: to.employees.Table()}}, nil)
	if err != nil || result.Outside != 2*n {
		t.Fatal(result, err)
	}
	found, err := differences(t.Context(), source, to.employees.Table(), nil)
	if err != nil || len(found) > 0 {
		t.Fatal(found, err)
	}
	findings, err := harness.Findings(t.Context(), to.store.Verify, &patterns.JobOptions{Lag: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Kind != patterns.Different || f.Pattern != "email" && f.Pattern != "badge" {
			t.Error(f)
		}
	}
	if len(findings) != 2*n {
		t.Errorf("%d findings", len(findings))
	}
	report, err := to.store.Repair(t.Context(), &patterns.JobOptions{Lag: 1})
	if err != nil || report.Repaired != 2*n {
		t.Fatal(report, err)
	}
	harness.Check(t, harness.Clean(t.Context(), to.store.Verify, &patterns.JobOptions{Lag: 1}))
	e, err := to.byBadge.Get(t.Context(), compoundkey.String("bc"))
	if err != nil || e.Name != "c" {
		t.Fatal(e, err)
	}
}
