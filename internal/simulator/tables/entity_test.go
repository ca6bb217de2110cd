package tables_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/simulator"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe/accounts"
)

func TestEntitiesThroughTheSDK(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	ctx := probe.Context(t)
	client := a.Client().NewClient("Employees")
	body := []byte(`{"PartitionKey":"Sales","RowKey":"O-1","Name":"Kim","Age":30}`)
	added := assert.Must[aztables.AddEntityResponse](t)(client.AddEntity(ctx, body, nil))
	probe.WantError(t, assert.Err(client.AddEntity(ctx, body, nil)), 409, "EntityAlreadyExists")

	got := assert.Must[aztables.GetEntityResponse](t)(client.GetEntity(ctx, "Sales", "O-1", nil))
	var read map[string]any
	assert.Check(t, json.Unmarshal(got.Value, &read))
	if read["Name"] != "Kim" || read["Age"] != 30.0 || got.ETag != added.ETag {
		t.Errorf("%v, %s and %s", read, got.ETag, added.ETag)
	}

	merge := []byte(`{"PartitionKey":"Sales","RowKey":"O-1","Age":31}`)
	merged, err := client.UpdateEntity(ctx, merge, &aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeMerge, IfMatch: &added.ETag})
	assert.Check(t, err)
	_, err = client.UpdateEntity(ctx, merge, &aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeMerge, IfMatch: &added.ETag})
	probe.WantError(t, err, 412, "UpdateConditionNotSatisfied")
	if row := a.Rows("Employees")[0]; row.Get("Name") != edm.String("Kim") || row.Get("Age") != edm.Int32(31) || row.ETag != string(merged.ETag) {
		t.Errorf("after the merge %#v", row)
	}
	_, err = client.UpdateEntity(ctx, merge, &aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeReplace, IfMatch: to.Ptr(azcore.ETagAny)})
	assert.Check(t, err)
	if row := a.Rows("Employees")[0]; len(row.Properties) != 1 {
		t.Errorf("after the replace %#v", row)
	}
	assert.Check(t, assert.Err(client.UpsertEntity(ctx, []byte(`{"PartitionKey":"Sales","RowKey":"O-2"}`), nil)))
	probe.WantError(t, assert.Err(client.UpdateEntity(ctx, []byte(`{"PartitionKey":"Sales","RowKey":"O-3"}`), nil)), 404, "ResourceNotFound")

	_, err = client.DeleteEntity(ctx, "Sales", "O-1", &aztables.DeleteEntityOptions{IfMatch: &merged.ETag})
	probe.WantError(t, err, 412, "UpdateConditionNotSatisfied")
	assert.Check(t, assert.Err(client.DeleteEntity(ctx, "Sales", "O-1", nil)))
	probe.WantError(t, assert.Err(client.DeleteEntity(ctx, "Sales", "O-1", nil)), 404, "ResourceNotFound")
	if rows := a.Rows("employees"); len(rows) != 1 || rows[0].Row != "O-2" {
		t.Errorf("left %v", rows)
	}
}

func TestAnswersAreWrittenAsTheServiceWritesThem(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	const properties = `"Age@odata.type":"Edm.Int64","Age":"39","Sex":"male","Married":true,"Ratio":3.1,"EvenRatio":3.0,"Big":1e+300,` +
		`"Nan@odata.type":"Edm.Double","Nan":"NaN","Inf@odata.type":"Edm.Double","Inf":"-Infinity","Birthday@odata.type":"Edm.DateTime","Birthday":"1973-10-04T00:00:00.12Z",` +
		`"Binary@odata.type":"Edm.Binary","Binary":"YmluYXJ5","Other":20,"Clsid@odata.type":"Edm.Guid","Clsid":"c9da6455-213d-42c9-9a79-3e9149a57833"}`
	const head = `{"odata.metadata":"http://contoso.table.sim.test/$metadata#Employees/@Element",`
	const etag = `"odata.etag":"W/\"datetime'2026-11-20T12%3A00%3A00.0000001Z'\"",`
	const timestamp = `"Timestamp":"2026-11-20T12:00:00.0000001Z",`
	inserted := a.Want(http.MethodPost, "/Employees", probe.EveryType, 201, "")
	minimal := head + etag + `"PartitionKey":"p","RowKey":"r",` + timestamp + properties
	assert.Equal(t, inserted.Text, minimal, "insert")
	const address = "/Employees(PartitionKey='p',RowKey='r')"
	got := a.Want(http.MethodGet, address, "", 200, "", "Accept", "application/json;odata=minimalmetadata")
	if got.Text != minimal || got.Header.Get("ETag") != `W/"datetime'2026-11-20T12%3A00%3A00.0000001Z'"` || got.Header.Get("ETag") != inserted.Header.Get("ETag") {
		t.Errorf("get %s\n%s\nwant\n%s", got.Header.Get("ETag"), got.Text, minimal)
	}
	full := head + `"odata.type":"contoso.Employees","odata.id":"http://contoso.table.sim.test/Employees(PartitionKey='p',RowKey='r')",` + etag +
		`"odata.editLink":"Employees(PartitionKey='p',RowKey='r')","PartitionKey":"p","RowKey":"r","Timestamp@odata.type":"Edm.DateTime",` + timestamp + properties
	if got = a.Want(http.MethodGet, address+"?$format=application/json;odata=fullmetadata", "", 200, ""); got.Text != full {
		t.Errorf("full\n%s\nwant\n%s", got.Text, full)
	}
	got = a.Want(http.MethodGet, address+"?$select=Age,Nobody,Timestamp", "", 200, "", "Accept", "application/json;odata=nometadata")
	if want := `{` + timestamp + `"Age":"39","Nobody":null}`; got.Text != want {
		t.Errorf("selected %s, want %s", got.Text, want)
	}
	a.Want(http.MethodGet, address, "", 415, "MediaTypeNotSupported", "Accept", "application/atom+xml")
}

func TestUpdatedEntitiesAreSortedByName(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	accounts.Insert(a, "p", "r", `,"b":1,"a":2,"C":3`)
	const address = "/Employees(PartitionKey='p',RowKey='r')"
	if r := a.Send(http.MethodGet, address, ""); !strings.HasSuffix(r.Text, `"b":1,"a":2,"C":3}`) {
		t.Error(r.Text)
	}
	a.Want(http.MethodPost, address, `{"B":4,"a":5}`, 204, "", "X-HTTP-Method", "MERGE")
	if r := a.Send(http.MethodGet, address, ""); !strings.HasSuffix(r.Text, `"B":4,"C":3,"a":5,"b":1}`) {
		t.Error(r.Text)
	}
}

func TestVerbs(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	const address = "/Employees(PartitionKey='p',RowKey='r')"
	for _, verb := range []string{"PATCH", "MERGE", "PUT"} {
		a.Want(verb, address, `{"A":1}`, 404, "ResourceNotFound", "If-Match", "*")
		r := a.Want(verb, address, `{"A":1}`, 204, "")
		assert.Equal(t, r.Header.Get("ETag"), a.Rows("Employees")[0].ETag, "%s: ETag", verb)
		a.Want(verb, address, `{"A":2}`, 204, "", "If-Match", r.Header.Get("ETag"))
		a.Want(verb, address, `{"A":3}`, 412, "UpdateConditionNotSatisfied", "If-Match", r.Header.Get("ETag"))
		a.Want(verb, address, `{"A":3}`, 400, "InvalidInput", "If-Match", "nonsense")
		a.Want(verb, address, `{"A":3}`, 412, "UpdateConditionNotSatisfied", "If-Match", `W/"datetime'yesterday'"`)
		a.Want(verb, address, `{"A":3}`, 400, "InvalidInput", "If-None-Match", "*")
		a.Want(verb, address, `{"A":3,"PartitionKey":"q"}`, 400, "InvalidInput")
		a.Want(verb, address, `{"A":3,"RowKey":"q"}`, 400, "InvalidInput")
		a.Want(verb, "/Employees", `{"A":3}`, 405, "MethodNotAllowed")
		a.Want(http.MethodPost, address, `{"A":4}`, 204, "", "X-HTTP-Method", verb, "If-Match", "*")
		a.Want(http.MethodDelete, address, "", 400, "MissingRequiredHeader")
		a.Want(http.MethodPost, address, "", 204, "", "If-Match", "*", "X-HTTP-Method", "DELETE")
	}
	a.Want(http.MethodPost, address, `{"A":1}`, 405, "MethodNotAllowed")
	a.Want(http.MethodOptions, address, "", 405, "MethodNotAllowed")
	a.Want(http.MethodPut, address, `{"A":1}`, 400, "XMethodNotUsingPost", "X-HTTP-Method", "MERGE")
	a.Want(http.MethodPost, address, `{"A":1}`, 400, "XMethodIncorrectValue", "X-HTTP-Method", "GET")
	a.Want(http.MethodPost, address, `{"A":1}`, 400, "XMethodIncorrectCount", "X-HTTP-Method", "MERGE", "X-HTTP-Method", "PUT")
	a.Want(http.MethodPost, "/Employees", `{"PartitionKey":"p","RowKey":"r"}`, 415, "MediaTypeNotSupported", "Content-Type", "application/atom+xml")
	a.Want(http.MethodPost, "/Nobody", `{"PartitionKey":"p","RowKey":"r"}`, 404, "TableNotFound")
	a.Want(http.MethodGet, "/Employees(PartitionKey='p',RowKey='r')", "", 404, "ResourceNotFound")
}

func TestQuotesInAddressesStandTwice(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	accounts.Insert(a, "O'Brien", "''", "")
	r := a.Want(http.MethodGet, "/Employees(PartitionKey='O%27%27Brien',RowKey='''''')?$format=application/json;odata=fullmetadata", "", 200, "")
	assert.Contains(t, r.Text, `"odata.editLink":"Employees(PartitionKey='O''Brien',RowKey='''''')"`)
	for _, target := range []string{
		"/Employees(PartitionKey='O'Brien',RowKey='''''')", "/Employees(PartitionKey='O%27Brien',RowKey='')", "/Employees(PartitionKey='p',RowKey=''')",
		"/Employees(PartitionKey='p')", "/Employees(RowKey='p')", "/Employees(PartitionKey='p',PartitionKey='p')", "/Employees(PartitionKey='p',RowKey='r'",
		"/Employees(PartitionKey='p',RowKey='r',Other='s')", "/Employees(PartitionKey=p,RowKey='r')", "/Employees('p','r')", "/Employees(PartitionKey='p',RowKey='r'))",
		"/Employees(PartitionKey='p'RowKey='r')", "/Employees(PartitionKey='p',RowKey='r',)", "/Tables('Employees')x", "/Tables(Employees)", "/Tables('a''b')",
	} {
		r := a.Send(http.MethodGet, target, "")
		assert.Equal(t, r.StatusCode, 400, "%s: %s", target, r.Text)
	}
	client := a.Client().NewClient("Employees")
	assert.Check(t, assert.Err(client.GetEntity(probe.Context(t), "O'Brien", "''", nil)))
}
