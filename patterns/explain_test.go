package patterns_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
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
	a := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: counted.ClientOptions}))
	queue := assert.Must[*eventual.Queue](t)(eventual.NewQueue(a, s.QueueName(t), nil))
	table, tags := a.Table(s.TableName(t)), a.Table(s.TableName(t))
	assert.Check(t, table.Create(ctx), tags.Create(ctx), queue.Create(ctx))
	near := intrapartition.NewUnique("near", func(v *staff) compoundkey.Part { return textKey(v.Email) }, nil)
	far := interpartition.NewUnique("far", func(v *staff) compoundkey.Part { return textKey(v.Email) }, &interpartition.Options[staff]{ByPartition: true})
	schema := patterns.Schema[staff]{Prefix: "id", Key: func(v *staff) tables.Key {
		return tables.Key{Partition: v.Department, Row: compoundkey.Join("id", compoundkey.Int(v.ID, 6))}
	}}
	r := assert.Must[*patterns.Repository[staff]](t)(patterns.NewRepository(harness.In(table, queue), schema, near, far))
	explained := func(kind driver.ChangeKind, v *staff, want ...string) {
		t.Helper()
		counter.Reset()
		x := assert.Must[*patterns.Explanation](t)(r.Explain(ctx, kind, v))
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
	const mark, write, settle = "1 to mark copies, at the same time", "1 entity group transaction", "1 to settle copies, in the background"
	explained(driver.ChangeInsert, v, "id_000001 insert must not exist", "near_a@contoso.com insert must not exist",
		"far: far_Sales\ta@contoso.com", mark, write, settle)
	sends := func(want int, err error) {
		t.Helper()
		if n := counter.Count(); err != nil || n != want {
			t.Errorf("%d requests, want %d; %v", n, want, err)
		}
		counter.Reset()
	}
	sends(3, r.Insert(ctx, v))
	v.Email = "b@contoso.com"
	explained(driver.ChangeReplace, v, "id_000001 replace unchanged", "near_b@contoso.com insert must not exist", "near_a@contoso.com delete must exist",
		"far: far_Sales\ta@contoso.com", "far: far_Sales\tb@contoso.com", mark, write, settle)
	sends(3, r.Replace(ctx, v))
	explained(driver.ChangeDelete, v, "id_000001 delete unchanged", "near_b@contoso.com delete must exist",
		"far: far_Sales\tb@contoso.com", mark, write, settle)
	sends(3, r.Delete(ctx, v))
	_, err := r.Explain(ctx, driver.ChangeMerge, v)
	harness.WantKind(t, err, tables.ErrInvalid)
	_, err = r.Explain(ctx, driver.ChangeReplace, &staff{Department: "Sales", ID: 2})
	harness.WantKind(t, err, tables.ErrInvalid)

	// Copies in two partitions are marked at the same time; other effects outside have an intent, and what needs no mark is not marked.
	badge := interpartition.NewUnique("badge", func(v *staff) compoundkey.Part { return textKey(v.Badge) }, &interpartition.Options[staff]{Project: []string{"Name"}})
	far = interpartition.NewUnique("far", func(v *staff) compoundkey.Part { return textKey(v.Email) }, nil)
	r = assert.Must[*patterns.Repository[staff]](t)(patterns.NewRepository(harness.In(table, queue), schema, badge, far, &notes[staff]{name: "marks", table: tags, text: func(v *staff) string { return v.Tag }}))
	v = &staff{Department: "Sales", ID: 3, Email: "c@contoso.com", Badge: "B3", Tag: "new"}
	explained(driver.ChangeInsert, v, "id_000003 insert must not exist", "badge: badge\tB3", "far: far\tc@contoso.com", "marks: new",
		"1 intent put", "2 to mark copies, at the same time", "1 single write", "2 to settle copies, in the background", "1 outside keys reconciled", "1 read again", "1 intent deleted")
	assert.Check(t, r.Insert(ctx, v))
	v.Age++
	explained(driver.ChangeReplace, v, "id_000003 replace unchanged", "far: far\tc@contoso.com", "marks: new",
		"1 intent put", mark, "1 single write", settle, "1 outside keys reconciled", "1 read again", "1 intent deleted")
}
