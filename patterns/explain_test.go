package patterns_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestExplain: the rows of each kind of change, their conditions and the requests, while nothing is sent; and a Merge, which
// cannot be told from what the caller has, is refused.
func TestExplain(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	counter := &storagetest.RequestCounter{}
	counted := *s
	counted.ClientOptions.PerRetryPolicies = append(counted.ClientOptions.PerRetryPolicies, counter)
	a := harness.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: counted.ClientOptions}))
	queue := harness.Must[*eventual.Queue](t)(eventual.NewQueue(a, s.QueueName(t), nil))
	table := a.Table(s.TableName(t))
	if err := table.Create(ctx); err != nil {
		t.Fatal(err)
	}
	if err := queue.Create(ctx); err != nil {
		t.Fatal(err)
	}
	near := intrapartition.NewIndex("near", func(v *staff) compoundkey.Part { return textKey(v.Email) }, nil)
	far := interpartition.NewIndex("far", func(v *staff) compoundkey.Part { return textKey(v.Email) }, &interpartition.Options[staff]{ByPartition: true, Unique: true})
	r := harness.Must[*patterns.Repository[staff]](t)(patterns.NewRepository(harness.In(table, queue), patterns.Schema[staff]{Rows: compoundkey.Starting("id"), Key: func(v *staff) tables.Key {
		return tables.Key{Partition: v.Department, Row: compoundkey.Join("id", compoundkey.Int(v.ID, 6))}
	}}, near, far))
	explained := func(kind driver.ChangeKind, v *staff, want ...string) {
		t.Helper()
		counter.Reset()
		x := harness.Must[*patterns.Explanation](t)(r.Explain(ctx, kind, v))
		var got []string
		for _, row := range x.Rows {
			got = append(got, fmt.Sprintf("%s %s %s", row.RowKey, row.Verb, row.Condition))
		}
		got = append(append(got, x.Outside...), x.Requests...)
		if text := strings.Join(got, "\n"); text != strings.Join(want, "\n") {
			t.Errorf("%v:\n%s\nwant\n%s", kind, text, strings.Join(want, "\n"))
		}
		if counter.Count() != 0 {
			t.Errorf("%v: %d requests", kind, counter.Count())
		}
	}
	v := &staff{Department: "Sales", ID: 1, Email: "a@contoso.com"}
	explained(driver.ChangeInsert, v, "id_000001 insert must not exist", "near_a@contoso.com insert must not exist",
		"far: far_Sales\ta@contoso.com",
		"1 intent put", "1 outside keys reserved", "1 entity group transaction", "1 outside keys reconciled", "1 read again", "1 intent deleted")
	if err := r.Insert(ctx, v); err != nil {
		t.Fatal(err)
	}
	v.Email = "b@contoso.com"
	explained(driver.ChangeReplace, v, "id_000001 replace unchanged", "near_b@contoso.com insert must not exist", "near_a@contoso.com delete must exist",
		"far: far_Sales\ta@contoso.com", "far: far_Sales\tb@contoso.com",
		"1 intent put", "1 outside keys reserved", "1 entity group transaction", "2 outside keys reconciled", "1 read again", "1 intent deleted")
	explained(driver.ChangeDelete, v, "id_000001 delete unchanged", "near_a@contoso.com delete must exist",
		"far: far_Sales\ta@contoso.com",
		"1 intent put", "1 entity group transaction", "1 outside keys reconciled", "1 read again", "1 intent deleted")
	_, err := r.Explain(ctx, driver.ChangeMerge, v)
	harness.WantKind(t, err, tables.ErrInvalid)
	_, err = r.Explain(ctx, driver.ChangeReplace, &staff{Department: "Sales", ID: 2})
	harness.WantKind(t, err, tables.ErrInvalid)
}
