package backup_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/backup"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
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
	byBadge   *interpartition.Unique[employee, string]
}

func openStaff(t testing.TB, account *tables.Account, table string) *staff {
	t.Helper()
	s := &staff{store: assert.Must[*patterns.Store](t)(patterns.Open(strings.ToLower(table), &patterns.StoreOptions{Account: account}))}
	byEmail := interpartition.NewIndex("email", func(e *employee) string { return e.Email }, nil)
	s.byBadge = interpartition.NewUnique("badge", func(e *employee) string { return e.Badge }, nil)
	s.employees = assert.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(s.store.Table(table), patterns.Schema[employee]{
		Key:    func(e *employee) tables.Key { return tables.Key{Partition: e.Department, Row: "empid_" + e.Name} },
		Prefix: "empid",
	}, byEmail, s.byBadge))
	assert.Check(t, s.store.Create(t.Context()))
	return s
}

// TestRestoredIndex: after a restore under another name, reads through index copies in other partitions are right, with one request more, until Rebuild
// settles them.
func TestRestoredIndex(t *testing.T) {
	const n = 12
	s := storagetest.Simulator(t, nil)
	requests := &storagetest.RequestCounter{}
	counted := s.ClientOptions
	counted.PerRetryPolicies = append(slices.Clip(counted.PerRetryPolicies), requests)
	account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: counted}))
	from := openStaff(t, account, s.TableName(t))
	for i := range n {
		name := string(rune('a' + i))
		assert.Check(t, from.employees.Insert(t.Context(), &employee{Department: []string{"Sales", "IT"}[i%2], Name: name, Email: name + "@contoso.com", Badge: "b" + name}))
	}
	assert.Check(t, harness.Settle(t.Context(), from.store))
	source := account.Table(from.employees.Table().Name())

	v := opened(t)
	assert.Check(t, assert.Err(v.Backup(t.Context(), "staff", []*tables.Table{source}, nil)))
	to := openStaff(t, account, s.TableName(t))
	targets := []backup.Target{{Name: source.Name(), To: to.employees.Table()}}
	result, err := v.Restore(t.Context(), "staff", targets, nil)
	if err != nil || result.Outside != 2*n {
		t.Fatal(result, err)
	}
	same := func() {
		t.Helper()
		if found, err := differences(t.Context(), source, to.employees.Table(), nil); err != nil || len(found) > 0 {
			t.Fatal(found, err)
		}
		if result, err = v.Restore(t.Context(), "staff", targets, nil); err != nil || result.Unchanged != 3*n {
			t.Fatal(result, err)
		}
		assert.Check(t, harness.Clean(t.Context(), to.store.Verify, nil))
	}
	get := func(badge string, want int) *employee {
		t.Helper()
		requests.Reset()
		e, err := to.byBadge.Get(t.Context(), badge)
		if n := requests.Count(); err != nil || "b"+e.Name != badge || n != want {
			t.Fatal(e, err, n)
		}
		return e
	}
	same()
	assert.Check(t, to.employees.Replace(t.Context(), get("ba", 2)), harness.Settle(t.Context(), to.store))
	assert.Check(t, assert.Err(v.Restore(t.Context(), "staff", targets, &backup.Options{Existing: backup.ReplaceExisting})))
	same()
	for i := range n {
		get("b"+string(rune('a'+i)), 2)
	}
	s.Wait(time.Minute) // no change of the source can be under way any more
	assert.Check(t, assert.Err(to.employees.Rebuild(t.Context(), nil)))
	same()
	var all []*employee
	for i := range n {
		all = append(all, get("b"+string(rune('a'+i)), 1))
	}
	for _, e := range all {
		assert.Check(t, to.employees.Replace(t.Context(), e))
	}
}
