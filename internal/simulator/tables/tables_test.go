package tables_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe/accounts"
)

func TestTablesThroughTheSDK(t *testing.T) {
	a := accounts.New(t, simulator.Options{})
	ctx := probe.Context(t)
	client := a.Client()
	for _, name := range []string{"Employees", "beta2", "Alpha"} {
		assert.Check(t, assert.Err(client.CreateTable(ctx, name, nil)))
	}
	probe.WantError(t, assert.Err(client.CreateTable(ctx, "EMPLOYEES", nil)), 409, "TableAlreadyExists")

	if got, want := listTables(t, client, nil), []string{"Alpha", "beta2", "Employees"}; !slices.Equal(got, want) {
		t.Errorf("tables %q, want %q", got, want)
	}
	one := &aztables.ListTablesOptions{Top: to.Ptr(int32(1))}
	if got, want := listTables(t, client, one), []string{"Alpha", "beta2", "Employees"}; !slices.Equal(got, want) {
		t.Errorf("tables by one %q, want %q", got, want)
	}
	filter := &aztables.ListTablesOptions{Filter: to.Ptr("TableName ge 'E'")}
	if got, want := listTables(t, client, filter), []string{"Employees", "beta2"}; !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("tables by filter %q, want %q", got, want)
	}

	assert.Check(t, assert.Err(client.DeleteTable(ctx, "employees", nil)))
	probe.WantError(t, assert.Err(client.DeleteTable(ctx, "Employees", nil)), 404, "ResourceNotFound")
	probe.WantError(t, assert.Err(client.NewClient("Employees").GetEntity(ctx, "p", "r", nil)), 404, "TableNotFound")
}

func listTables(t *testing.T, client *aztables.ServiceClient, o *aztables.ListTablesOptions) []string {
	t.Helper()
	var names []string
	for pager := client.NewListTablesPager(o); pager.More(); {
		page := assert.Must[aztables.ListTablesResponse](t)(pager.NextPage(probe.Context(t)))
		for _, table := range page.Tables {
			names = append(names, *table.Name)
		}
	}
	return names
}

func TestADroppedTablesNameStaysTaken(t *testing.T) {
	for _, c := range []struct {
		deletion, taken time.Duration
	}{{0, 40 * time.Second}, {5 * time.Minute, 5 * time.Minute}, {-1, 0}} {
		a := accounts.New(t, simulator.Options{TableDeletion: c.deletion})
		body := `{"TableName":"Employees"}`
		a.Want(http.MethodPost, "/Tables", body, 201, "")
		a.Want(http.MethodPost, "/Employees", `{"PartitionKey":"p","RowKey":"r"}`, 201, "")
		a.Want(http.MethodDelete, "/Tables('Employees')", "", 204, "")
		if c.taken > 0 {
			a.Want(http.MethodPost, "/Tables", `{"TableName":"employees"}`, 409, "TableBeingDeleted")
			a.Clock().Advance(c.taken - 100*time.Nanosecond)
			a.Want(http.MethodPost, "/Tables", body, 409, "TableBeingDeleted")
			a.Clock().Advance(100 * time.Nanosecond)
		}
		a.Want(http.MethodPost, "/Tables", body, 201, "")
		assert.Equal(t, len(a.Rows("Employees")), 0, "the new table: rows")
	}
}

func TestCreateTableAnswers(t *testing.T) {
	a := accounts.New(t, simulator.Options{})
	r := a.Want(http.MethodPost, "/Tables", `{"TableName":"One"}`, 201, "", "Prefer", "return-content")
	const want = `{"odata.metadata":"http://contoso.table.sim.test/$metadata#Tables/@Element","TableName":"One"}`
	if r.Text != want || r.Header.Get("Preference-Applied") != "return-content" || r.Header.Get("Location") != "http://contoso.table.sim.test/Tables('One')" {
		t.Errorf("%v\n%s\nwant %s", r.Header, r.Text, want)
	}
	r = a.Want(http.MethodPost, "/Tables", `{"TableName":"Two"}`, 204, "", "Prefer", "return-no-content")
	if r.Text != "" || r.Header.Get("Preference-Applied") != "return-no-content" || r.Header.Get("DataServiceId") != "http://contoso.table.sim.test/Tables('Two')" {
		t.Errorf("%v %s", r.Header, r.Text)
	}
	r = a.Want(http.MethodGet, "/Tables('two')", "", 200, "")
	assert.Contains(t, r.Text, `"TableName":"Two"}`)
	a.Want(http.MethodGet, "/Tables('three')", "", 404, "ResourceNotFound")
	r = a.Want(http.MethodGet, "/Tables?$top=1", "", 200, "", "Accept", "application/json;odata=nometadata")
	if r.Text != `{"value":[{"TableName":"One"}]}` || r.Header.Get("x-ms-continuation-NextTableName") == "" {
		t.Errorf("%v %s", r.Header, r.Text)
	}
}

func TestTableNames(t *testing.T) {
	a := accounts.New(t, simulator.Options{})
	for name, code := range map[string]string{
		"abc": "", strings.Repeat("a", 63): "", "A1b": "",
		"ab": "OutOfRangeInput", strings.Repeat("a", 64): "OutOfRangeInput", "": "OutOfRangeInput",
		"1ab": "InvalidResourceName", "a-b": "InvalidResourceName", "a_b": "InvalidResourceName", "täble": "InvalidResourceName", "a'b": "InvalidResourceName",
		"tables": "InvalidInput", "TaBleS": "InvalidInput",
	} {
		status := 201
		if code != "" {
			status = 400
		}
		a.Want(http.MethodPost, "/Tables", fmt.Sprintf(`{"TableName":%q}`, name), status, code)
	}
	for body, code := range map[string]string{`{}`: "PropertiesNeedValue", `{"TableName":5}`: "PropertiesNeedValue", `{`: "InvalidInput", ``: "InvalidInput"} {
		a.Want(http.MethodPost, "/Tables", body, 400, code)
	}
	a.Want(http.MethodPut, "/Tables", "", 405, "MethodNotAllowed")
	a.Want(http.MethodGet, "/Tables?$top=1001", "", 400, "InvalidInput")
	a.Want(http.MethodGet, "/Tables?$filter=TableName%20eq", "", 400, "InvalidInput")
	a.Want(http.MethodGet, "/Tables?NextTableName=x", "", 400, "InvalidInput")
}

func TestAccessPoliciesThroughTheSDK(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	ctx := probe.Context(t)
	client := a.Client().NewClient("Employees")
	start, expiry := probe.Start(), probe.Start().Add(time.Hour)
	_, err := client.SetAccessPolicy(ctx, &aztables.SetAccessPolicyOptions{TableACL: []*aztables.SignedIdentifier{
		{ID: to.Ptr("readers"), AccessPolicy: &aztables.AccessPolicy{Start: &start, Expiry: &expiry, Permission: to.Ptr("r")}}}})
	assert.Check(t, err)
	got := assert.Must[aztables.GetAccessPolicyResponse](t)(client.GetAccessPolicy(ctx, nil))
	if len(got.SignedIdentifiers) != 1 || *got.SignedIdentifiers[0].ID != "readers" || !got.SignedIdentifiers[0].AccessPolicy.Expiry.Equal(expiry) ||
		*got.SignedIdentifiers[0].AccessPolicy.Permission != "r" {
		t.Errorf("policies %+v", got.SignedIdentifiers)
	}
	policies := func(n int) string {
		text := `<SignedIdentifiers>`
		for i := range n {
			text += fmt.Sprintf("<SignedIdentifier><Id>%d</Id><AccessPolicy><Start>2011-10-11</Start></AccessPolicy></SignedIdentifier>", i)
		}
		return text + `</SignedIdentifiers>`
	}
	a.Want(http.MethodPut, "/Employees?comp=acl", policies(5), 204, "")
	r := a.Want(http.MethodGet, "/Employees?comp=acl", "", 200, "")
	if !strings.HasPrefix(r.Text, "\uFEFF<?xml") || !strings.Contains(r.Text, "<Start>2011-10-11T00:00:00.0000000Z</Start>") {
		t.Error(r.Text)
	}
	a.Want(http.MethodPut, "/Employees?comp=acl", policies(6), 400, "InvalidXmlDocument")
	a.Want(http.MethodPut, "/Employees?comp=acl", "<SignedIdentifiers>", 400, "InvalidXmlDocument")
	a.Want(http.MethodGet, "/Nobody?comp=acl", "", 404, "TableNotFound")
	a.Want(http.MethodGet, "/Employees?comp=other", "", 400, "InvalidQueryParameterValue")
	a.Want(http.MethodDelete, "/Employees?comp=acl", "", 405, "MethodNotAllowed")
}

func TestServicePropertiesThroughTheSDK(t *testing.T) {
	a := accounts.New(t, simulator.Options{})
	ctx := probe.Context(t)
	client := a.Client()
	got := assert.Must[aztables.GetPropertiesResponse](t)(client.GetProperties(ctx, nil))
	if got.Logging == nil || *got.Logging.Read || got.HourMetrics == nil {
		t.Errorf("properties %+v", got)
	}
	_, err := client.SetProperties(ctx, aztables.ServiceProperties{Logging: &aztables.Logging{Read: to.Ptr(true), Write: to.Ptr(false), Delete: to.Ptr(false),
		Version: to.Ptr("1.0"), RetentionPolicy: &aztables.RetentionPolicy{Enabled: to.Ptr(false)}}}, nil)
	assert.Check(t, err)
	got = assert.Must[aztables.GetPropertiesResponse](t)(client.GetProperties(ctx, nil))
	if got.Logging == nil || !*got.Logging.Read {
		t.Errorf("properties %+v", got)
	}
	probe.WantError(t, assert.Err(client.GetStatistics(ctx, nil)), 400, "InvalidQueryParameterValue")
	a.Want(http.MethodGet, "/", "", 400, "InvalidQueryParameterValue")
	a.Want(http.MethodPut, "/?restype=service&comp=properties", "<x", 400, "InvalidXmlDocument")
	a.Want(http.MethodPost, "/?restype=service&comp=properties", "", 405, "MethodNotAllowed")
}

// Unicode folds ſ to s and the Kelvin sign to k; names of tables are ASCII.
func TestAddressesAreNotFoldedByUnicode(t *testing.T) {
	a := accounts.New(t, simulator.Options{})
	a.Want(http.MethodGet, "/Table%C5%BF", "", 400, "InvalidResourceName")
	a.Want(http.MethodGet, "/Table%C5%BF()", "", 400, "InvalidResourceName")
}
