package tables_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestPagesOfEmptyPartition: the emulator goes on inside of the partition "" with half a token, which it does not take
// back. No row may be left out for that, and none be there twice.
func TestPagesOfEmptyPartition(t *testing.T) {
	ctx := context.Background()
	table := harness.NewTable(t, harness.Account(t))
	bags := table.Entities()
	var want []string
	for _, partition := range []string{"", "x"} {
		for i, row := range []string{"", "O'Brien", "r1", "r2", "\U0001F600"} {
			assert.Check(t, bags.Insert(ctx, harness.Row(partition, row, tables.Property{Name: "N", Value: tables.Int32(int32(i))})))
			want = append(want, partition+"/"+row)
		}
	}
	read := func(q tables.Query[tables.Entity]) (got []string) {
		t.Helper()
		for e, err := range q.All(ctx) {
			assert.Check(t, err)
			got = append(got, e.Key.Partition+"/"+e.Key.Row)
		}
		return got
	}
	whole := bags.Query().AllowTableScan()
	for size := 1; size <= 4; size++ {
		for name, c := range map[string]struct {
			query tables.Query[tables.Entity]
			want  []string
		}{
			"partition":          {bags.Query().Partition(""), want[:5]},
			"filter":             {bags.Query().Filter("PartitionKey eq '' and (N eq 1 or N ge 3)"), []string{want[1], want[3], want[4]}},
			"rows":               {bags.Query().Partition("").Filter("RowKey ge 'P'"), want[2:5]},
			"top":                {bags.Query().Partition("").Top(3), want[:3]},
			"projection":         {bags.Query().Partition("").Select("N"), want[:5]},
			"table scan":         {whole, want},
			"table scan, filter": {whole.Filter("N eq 0 or N eq 4"), []string{want[0], want[4], want[5], want[9]}},
		} {
			assert.Slices(t, read(c.query.PageSize(size)), c.want, "%s by pages of %d", name, size)
		}
	}
}

// TestHalfTokens: what is asked behind a row, the token that says so, and half a token that leads nowhere.
func TestHalfTokens(t *testing.T) {
	ctx := context.Background()
	var filters []string
	empty := false
	table := harness.InProcess(t, func(req *http.Request) (*http.Response, error) {
		filters = append(filters, req.URL.Query().Get("$filter")+"|"+req.URL.Query().Get("NextRowKey"))
		row := `{"odata.etag":"W/\"1\"","PartitionKey":"O'Brien","RowKey":"r"}`
		if empty {
			row = ""
		}
		return harness.Reply(req, http.StatusOK, `{"value":[`+row+`]}`, "X-Ms-Continuation-Nextrowkey", "cjE="), nil
	}).Table("Employees")
	q := table.Entities().Query().Partition("O'Brien").Top(3)
	page := assert.Must[tables.Page[tables.Entity]](t)(q.Page(ctx, ""))
	text := string(assert.Must[[]byte](t)(base64.RawURLEncoding.DecodeString(page.Next)))
	if !strings.HasSuffix(text, `,"k":["O'Brien","r"],"n":2}`) {
		t.Errorf("the token is %s", text)
	}
	page = assert.Must[tables.Page[tables.Entity]](t)(q.Page(ctx, page.Next))
	scan := table.Entities().Query().AllowTableScan()
	next := assert.Must[tables.Page[tables.Entity]](t)(scan.Page(ctx, "")).Next
	_ = assert.Must[tables.Page[tables.Entity]](t)(scan.Page(ctx, next))
	want := []string{
		"PartitionKey eq 'O''Brien'|", "(PartitionKey eq 'O''Brien') and (RowKey gt 'r')|",
		"|", "(PartitionKey gt 'O''Brien' or PartitionKey eq 'O''Brien' and RowKey gt 'r')|",
	}
	for i, filter := range filters {
		if plan := assert.Must[tables.Plan](t)(tables.ClassifyFilter(strings.TrimSuffix(filter, "|"))); i < 2 && plan.Class == tables.TableScan {
			t.Errorf("%s is a %v", filter, plan.Class)
		}
	}
	assert.Slices(t, filters, want, "asked")
	empty = true
	_, err := q.Page(ctx, page.Next)
	harness.WantKind(t, err, tables.ErrGarbled)
	filters = nil
	for _, forged := range []string{`"k":["O'Brien"]`, `"k":["a","b","c"]`, `"k":[]`, `"k":["a","b"],"p":"x"`, `"k":7`} {
		token := base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(text, `"k":["O'Brien","r"]`, forged, 1)))
		if _, err := q.Page(ctx, token); err == nil {
			t.Errorf("a token with %s is taken", forged)
		} else {
			harness.WantKind(t, err, tables.ErrInvalid)
		}
	}
	if len(filters) > 0 {
		t.Errorf("asked %q", filters)
	}
}

// TestHalfTokensOnCosmos: rows come in no order there, so that nothing is behind the last one.
func TestHalfTokensOnCosmos(t *testing.T) {
	answer := harness.Transport(func(req *http.Request) (*http.Response, error) {
		return harness.Reply(req, http.StatusOK, `{"value":[{"odata.etag":"W/\"1\"","PartitionKey":"","RowKey":"r"}]}`, "X-Ms-Continuation-Nextrowkey", "cjE="), nil
	})
	a := assert.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(tables.Endpoints{Table: "https://contoso.table.cosmos.azure.com"}, "contoso", "a2V5",
		&tables.AccountOptions{ClientOptions: azcore.ClientOptions{Transport: answer}}))
	harness.WantKind(t, assert.Err(a.Table("Employees").Entities().Query().Partition("").Page(context.Background(), "")), tables.ErrGarbled)
}
