package tables_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/odata"
	"github.com/tablepatterns/tablepatterns/internal/simulator"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe/accounts"
)

func TestPages(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	accounts.Fill(a, 3, 700)
	for target, want := range map[string][]int{
		"/Employees()?x=": {1000, 1000, 100}, "/Employees()?$top=700": {700, 700, 700}, "/Employees?$top=900": {900, 900, 300},
		"/Employees()?$filter=" + url.QueryEscape("PartitionKey eq 'p001'"):                                                           {700},
		"/Employees()?$filter=" + url.QueryEscape("PartitionKey eq 'p001' and RowKey gt 'r000001' and RowKey le 'r000003'"):           {2},
		"/Employees()?$filter=" + url.QueryEscape("PartitionKey gt 'p000' and PartitionKey lt 'p002'"):                                {700},
		"/Employees()?$filter=" + url.QueryEscape("PartitionKey eq 'p001' and RowKey eq 'r000001'"):                                   {1},
		"/Employees()?$filter=" + url.QueryEscape("PartitionKey eq 'p001' and PartitionKey eq 'p002'"):                                {0},
		"/Employees()?$filter=" + url.QueryEscape("RowKey eq 'r000699'"):                                                              {3},
		"/Employees()?$top=2&$filter=" + url.QueryEscape("PartitionKey eq 'p001' and (RowKey eq 'r000001' or RowKey eq 'r000002')"):   {2, 0},
		"/Employees()?$top=2&$filter=" + url.QueryEscape("not (PartitionKey ge 'p001') and (RowKey le 'r000000' or RowKey eq 'r01')"): {1},
	} {
		assert.Slices(t, accounts.Sizes(a.Walk(target)), want, "%s: sizes of the pages", target)
	}
	all := slices.Concat(a.Walk("/Employees()?$top=999")...)
	if !slices.IsSorted(all) || len(slices.Compact(all)) != 2100 {
		t.Errorf("%d keys, sorted %v", len(all), slices.IsSorted(all))
	}
}

func TestKeysAreOrderedByUTF16(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	keys := []string{"", "A", "B", "a", "aa", "b", "\u00e9", "\ud7ff", "😀", "\U0010FFFF", "\uE000", "\uFFFD"}
	for _, k := range slices.Backward(keys) {
		accounts.Insert(a, k, "r", "")
		accounts.Insert(a, "zz", k, "")
	}
	var pks, rks []string
	for _, row := range a.Rows("Employees") {
		if row.Partition == "zz" {
			rks = append(rks, row.Row)
		} else {
			pks = append(pks, row.Partition)
		}
	}
	if !slices.Equal(pks, keys) || !slices.Equal(rks, keys) {
		t.Errorf("%q\n%q\nwant %q", pks, rks, keys)
	}
	for _, page := range [][]string{slices.Concat(a.Walk("/Employees()?$top=1")...)} {
		assert.Equal(t, len(page), 2*len(keys), "rows by pages of one")
	}
}

func TestQueriesThroughTheSDK(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	accounts.Insert(a, "p", "1", `,"Age":30,"Name":"Kim"`)
	accounts.Insert(a, "p", "2", `,"Age":40`)
	accounts.Insert(a, "q", "3", `,"Age":50`)
	pager := a.Client().NewClient("Employees").NewListEntitiesPager(&aztables.ListEntitiesOptions{
		Filter: to.Ptr("Age gt 30"), Select: to.Ptr("RowKey,Name"), Top: to.Ptr(int32(1))})
	var rows []string
	for pager.More() {
		page := assert.Must[aztables.ListEntitiesResponse](t)(pager.NextPage(probe.Context(t)))
		for _, e := range page.Entities {
			rows = append(rows, string(e))
		}
	}
	if len(rows) != 2 || !strings.Contains(rows[0], `"RowKey":"2"`) || strings.Contains(rows[0], "Age") {
		t.Errorf("rows %q", rows)
	}
}

func TestQueryAnswersAsRecorded(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	accounts.Insert(a, "p", "r", `,"Age":30`)
	etag := `{"odata.etag":"W/\"datetime'2026-11-20T12%3A00%3A00.0000001Z'\"",`
	r := a.Want(http.MethodGet, "/Employees()?$select=Age", "", 200, "")
	if want := `{"odata.metadata":"http://contoso.table.sim.test/$metadata#Employees&$select=Age","value":[` + etag + `"Age":30}]}`; r.Text != want {
		t.Errorf("%s\nwant %s", r.Text, want)
	}
	r = a.Want(http.MethodGet, "/employees()?$select=", "", 200, "")
	if want := `{"odata.metadata":"http://contoso.table.sim.test/$metadata#Employees&$select=","value":[` + etag + `"PartitionKey":"p","RowKey":"r",` +
		`"Timestamp":"2026-11-20T12:00:00.0000001Z","Age":30}]}`; r.Text != want {
		t.Errorf("%s\nwant %s", r.Text, want)
	}
	r = a.Want(http.MethodGet, "/Employees()?$filter=Age%20lt%200", "", 200, "", "Accept", "application/json;odata=nometadata")
	assert.Equal(t, r.Text, `{"value":[]}`)
}

func TestQueryOptions(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	accounts.Insert(a, "p", "r", "")
	comparisons := func(n int) string {
		return url.QueryEscape(strings.Join(slices.Repeat([]string{"A eq 1"}, n), " and "))
	}
	for target, code := range map[string]string{
		"?$top=1": "", "?$top=1000": "", "?$top=0": "", "?$top=1001": "InvalidInput", "?$top=-1": "InvalidInput", "?$top=x": "InvalidInput", "?$top=": "InvalidInput",
		"?$filter=" + comparisons(15): "", "?$filter=" + comparisons(16): "InvalidInput",
		"?$filter=": "", "?$filter=A%20eq": "InvalidInput", "?$filter=" + url.QueryEscape("Name eq 'O'Brien'"): "InvalidInput",
		"?$filter=" + url.QueryEscape("A eq 3000000000"): "InvalidInput", "?$filter=" + url.QueryEscape("A eq 3000000000L"): "", "?$filter=" + url.QueryEscape("A eq B"): "InvalidInput",
		"?$select=*": "", "?$select=A,B": "", "?$select=A,": "InvalidInput", "?$select=a-b": "InvalidInput",
		"?NextPartitionKey=x": "InvalidInput", "?NextRowKey=1!4!cA--": "InvalidInput", "?NextPartitionKey=1!5!cA--": "InvalidInput", "?NextPartitionKey=1!4!cA--&NextRowKey=1!4!c@--": "InvalidInput",
		"?NextPartitionKey=1!4!cA--": "", "?NextPartitionKey=1!4!cA--&NextRowKey=1!4!cg--": "", "?NextPartitionKey=1!0!": "",
	} {
		status := 200
		if code != "" {
			status = 400
		}
		a.Want(http.MethodGet, "/Employees()"+target, "", status, code)
	}
	a.Want(http.MethodGet, "/Nobody()", "", 404, "TableNotFound")
	a.Want(http.MethodGet, "/No-body()", "", 400, "InvalidResourceName")
	a.Want(http.MethodGet, "/Employees()", "", 415, "MediaTypeNotSupported", "Accept", "application/atom+xml")
}

// TestPlansLoseNothing compares what bounded reading finds with what the filter alone says.
func TestPlansLoseNothing(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	accounts.Fill(a, 5, 5)
	var terms []string
	for _, op := range []string{"eq", "ne", "gt", "ge", "lt", "le"} {
		terms = append(terms, "PartitionKey "+op+" 'p002'", "RowKey "+op+" 'r000003'", "'p003' "+op+" PartitionKey")
	}
	for _, x := range terms {
		for _, y := range terms {
			for _, format := range []string{"%s and %s", "%s or %s", "%s and not (%s)", "PartitionKey eq 'p001' and (%s or %s)"} {
				filter := fmt.Sprintf(format, x, y)
				e := assert.Must[odata.Expr](t)(odata.Parse(filter))
				want := 0
				for _, row := range a.Rows("Employees") {
					if odata.Match(e, row.Get) {
						want++
					}
				}
				assert.Equal(t, len(slices.Concat(a.Walk("/Employees()?$top=3&$filter="+url.QueryEscape(filter))...)), want, "%s: rows", filter)
			}
		}
	}
}
