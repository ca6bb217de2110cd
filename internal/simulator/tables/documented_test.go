package tables_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe/accounts"
)

// fact is a request, and what the service is known to answer by a source other than recordings. A table named Employees has one
// row, Sales, 000123.
type fact struct {
	source             string
	method, path, body string
	headers            []string
	status             int
	code               string
	says               string // what the body must hold beside
}

// The sources.
const (
	restDocumentation = "the REST documentation"
	sdkTests          = "tests of the Azure SDK for Go that ran on an account"
	azuriteIssues     = "an issue of Azurite that compares it with an account"
)

const (
	rowPath  = "/Employees(PartitionKey='Sales',RowKey='000123')"
	wantFull = "application/json;odata=fullmetadata"
	wantNone = "application/json;odata=nometadata"
)

// filtered is the path of a query with a filter.
func filtered(filter string) string { return "/Employees()?$filter=" + url.QueryEscape(filter) }

func checkFacts(t *testing.T, facts []fact) {
	t.Helper()
	for _, f := range facts {
		a := accounts.WithTable(t, simulator.Options{})
		accounts.Insert(a, "Sales", "000123", `,"Name":"Jun Cao","Age":34`)
		r := a.Want(f.method, f.path, f.body, f.status, f.code, f.headers...)
		if !strings.Contains(r.Text, f.says) {
			t.Errorf("%s %s: %s\nmust hold %s, by %s", f.method, f.path, r.Text, f.says, f.source)
		}
	}
}

// TestDocumentedQueries holds what the service does not implement, and what it answers for no rows at all.
func TestDocumentedQueries(t *testing.T) {
	facts := []fact{
		{azuriteIssues, "GET", "/Employees()?$top=0", "", []string{"Accept", wantNone}, 200, "", `{"value":[]}`},
		{azuriteIssues, "GET", "/Tables?$top=0", "", []string{"Accept", wantNone}, 200, "", `{"value":[]}`},
		{restDocumentation, "GET", "/Employees()?$top=-1", "", nil, 400, "InvalidInput", ""},
		{restDocumentation, "GET", "/Tables?$orderby=TableName", "", nil, 501, "NotImplemented", ""},
		{restDocumentation, "GET", "/Tables?$filter=" + url.QueryEscape("startswith(TableName,'E')"), "", nil, 501, "NotImplemented", ""},
	}
	for _, option := range []string{"$orderby=Name", "$skip=1", "$inlinecount=allpages"} {
		facts = append(facts, fact{restDocumentation, "GET", "/Employees()?" + option, "", nil, 501, "NotImplemented", "is not implemented"})
	}
	for _, filter := range []string{"startswith(Name,'J')", "not endswith(Name,'o')", "Age gt 1 and substringof('Cao',Name)", "Age add 1 eq 35", "(Age) mod 2 eq 0"} {
		facts = append(facts, fact{restDocumentation, "GET", filtered(filter), "", nil, 501, "NotImplemented", ""})
	}
	for _, filter := range []string{"Age", "Age eq", "Age EQ 34", "Name eq 'startswith(x", "Name eq Jun"} {
		f := fact{restDocumentation, "GET", filtered(filter), "", nil, 400, "InvalidInput", ""}
		if filter == "Age" { // a boolean property may stand alone, and this one is none
			f.status, f.code, f.says = 200, "", `"value":[]`
		}
		facts = append(facts, f)
	}
	checkFacts(t, facts)
	a := accounts.WithTable(t, simulator.Options{})
	accounts.Insert(a, "p", "r", "")
	for _, target := range []string{"/Employees()?$top=0", "/Tables?$top=0"} {
		if r := a.Want("GET", target, "", 200, ""); len(r.Header.Values("x-ms-continuation-NextPartitionKey"))+len(r.Header.Values("x-ms-continuation-NextTableName")) > 0 {
			t.Errorf("%s: a page of no rows goes on: %v", target, r.Header)
		}
	}
}

// TestDocumentedWrites holds how values, conditions and forms of answers are read.
func TestDocumentedWrites(t *testing.T) {
	dated := func(text string) string { return `{"Since@odata.type":"Edm.DateTime","Since":"` + text + `"}` }
	const inserted = `{"PartitionKey":"Sales","RowKey":"000124","Name":"Ken"}`
	changed := "UpdateConditionNotSatisfied"
	checkFacts(t, []fact{
		{restDocumentation, "PUT", rowPath, dated("2008-07-10T00:00:00"), nil, 204, "", ""},
		{restDocumentation, "PUT", rowPath, dated("2008-07-10T00:00:00.1234567"), nil, 204, "", ""},
		{restDocumentation, "PUT", rowPath, dated("2008-07-10T00:00:00.12345678"), nil, 400, "InvalidInput", ""},
		{restDocumentation, "PUT", rowPath, dated("1600-12-31T23:59:59"), nil, 400, "OutOfRangeInput", ""},
		{azuriteIssues, "PUT", rowPath, `{"A":1}`, []string{"If-Match", `W/"wrong"`}, 412, changed, ""},
		{azuriteIssues, "MERGE", rowPath, `{"A":1}`, []string{"If-Match", `W/"wrong"`}, 412, changed, ""},
		{azuriteIssues, "DELETE", rowPath, "", []string{"If-Match", `W/"wrong"`}, 412, changed, ""},
		{restDocumentation, "DELETE", "/Employees(PartitionKey='p',RowKey='none')", "", []string{"If-Match", `W/"wrong"`}, 404, "ResourceNotFound", ""},
		{sdkTests, "POST", "/Employees?$format=" + wantNone, inserted, nil, 201, "", `{"PartitionKey":"Sales","RowKey":"000124",`},
		{sdkTests, "POST", "/Employees?$format=" + wantFull, inserted, nil, 201, "", `"odata.type":"contoso.Employees"`},
		{sdkTests, "POST", "/Employees?$format=" + wantFull, inserted, []string{"Accept", wantNone}, 201, "", `"odata.type":"contoso.Employees"`},
		{sdkTests, "POST", "/Employees?$format=application/atom%2Bxml", inserted, nil, 415, "MediaTypeNotSupported", ""},
		{sdkTests, "POST", "/Tables?$format=" + wantNone, `{"TableName":"Orders"}`, nil, 201, "", `{"TableName":"Orders"}`},
		{sdkTests, "POST", "/Tables", `{"TableName":"Orders"}`, []string{"Accept", wantFull}, 201, "", `"odata.type":"contoso.Tables","odata.id":"` + atContoso + `/Tables('Orders')"`},
	})
	a := accounts.WithTable(t, simulator.Options{})
	for sent, want := range map[string]string{"2008-07-10T00:00:00": "2008-07-10T00:00:00Z", "2008-07-10T01:02:03.5": "2008-07-10T01:02:03.5Z", "2008-07-10T02:00:00+02:00": "2008-07-10T00:00:00Z"} {
		a.Want("PUT", rowPath, dated(sent), 204, "")
		if r := a.Want("GET", rowPath, "", 200, ""); !strings.HasSuffix(r.Text, `"Since":"`+want+`"}`) {
			t.Errorf("%s comes back as %s", sent, r.Text)
		}
	}
	assert.Contains(t, a.Transact(probe.Part("POST", "?$format="+wantNone, inserted)).Text, "\r\n\r\n{\"PartitionKey\"", "$format in a part")
	r := a.Transact(probe.Part("POST", "", inserted, "Prefer", quiet), probe.Part("PUT", "(PartitionKey='Sales',RowKey='2')", "{}"))
	if !strings.Contains(r.Text, "HTTP/1.1 409 Conflict") || !strings.Contains(r.Text, "\r\nPreference-Applied: "+quiet+"\r\n") {
		t.Errorf("an insert that fails names the preference that it had: %s", r.Text)
	}
}

// TestTablesWithFullMetadata holds the listing that the SDK reads all fields of.
func TestTablesWithFullMetadata(t *testing.T) {
	a := accounts.New(t, simulator.Options{})
	client := a.Client()
	for _, name := range []string{"Employees", "Orders"} {
		assert.Check(t, assert.Err(client.CreateTable(probe.Context(t), name, nil)))
	}
	const one = `"odata.type":"contoso.Tables","odata.id":"` + atContoso + `/Tables('Orders')","odata.editLink":"Tables('Orders')","TableName":"Orders"}`
	for target, want := range map[string]string{
		"/Tables":           `{"odata.metadata":"` + atContoso + `/$metadata#Tables","value":[{` + strings.ReplaceAll(one, "Orders", "Employees") + `,{` + one + `]}`,
		"/Tables('Orders')": `{"odata.metadata":"` + atContoso + `/$metadata#Tables/@Element",` + one,
	} {
		assert.Equal(t, a.Want("GET", target, "", 200, "", "Accept", wantFull).Text, want, target)
	}
	page, err := client.NewListTablesPager(&aztables.ListTablesOptions{Format: to.Ptr(aztables.MetadataFormatFull)}).NextPage(probe.Context(t))
	assert.Check(t, err)
	if len(page.Tables) != 2 {
		t.Errorf("the SDK reads %d tables", len(page.Tables))
	}
}

// TestDocumentedServiceProperties holds the limits of a service's properties, and where its statistics are.
func TestDocumentedServiceProperties(t *testing.T) {
	properties := func(inside string) string {
		return `<?xml version="1.0" encoding="utf-8"?><StorageServiceProperties>` + inside + `</StorageServiceProperties>`
	}
	cors := func(n int) string {
		return properties("<Cors>" + strings.Repeat("<CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule>", n) + "</Cors>")
	}
	retention := func(of string, enabled bool, days int) string {
		return properties(fmt.Sprintf("<%s><Version>1.0</Version><RetentionPolicy><Enabled>%v</Enabled><Days>%d</Days></RetentionPolicy></%s>", of, enabled, days, of))
	}
	const path = "/?restype=service&comp=properties"
	var facts []fact
	for _, c := range []struct {
		body   string
		status int
		code   string
	}{
		{cors(5), 202, ""}, {cors(6), 400, "InvalidXmlDocument"}, {properties(""), 202, ""}, {"<Other />", 400, "InvalidXmlDocument"},
		{retention("Logging", true, 365), 202, ""}, {retention("Logging", true, 366), 400, "InvalidXmlNodeValue"}, {retention("HourMetrics", true, 0), 400, "InvalidXmlNodeValue"},
		{retention("MinuteMetrics", true, 366), 400, "InvalidXmlNodeValue"}, {retention("MinuteMetrics", false, 0), 202, ""},
	} {
		facts = append(facts, fact{restDocumentation, "PUT", path, c.body, nil, c.status, c.code, ""})
	}
	checkFacts(t, append(facts, fact{restDocumentation, "GET", "/?restype=service&comp=stats", "", nil, 400, "InvalidQueryParameterValue", ""}))
}
