package screen_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe/accounts"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/screen"
)

// TestConfine: what leaves a signature's range, by whatever request, is refused before it gets to a service that holds none.
func TestConfine(t *testing.T) {
	const keys = "sig=x&spk=b&srk=2&epk=c"
	change := func(pk string) string {
		return probe.Batch(probe.Part("DELETE", "(PartitionKey='"+pk+"',RowKey='3')", "", "If-Match", "*") + probe.Part("DELETE", "(PartitionKey='"+pk+"',RowKey='1')", "", "If-Match", "*"))
	}
	query := func(pk string) string {
		return "--b\r\nContent-Type: application/http\r\n\r\nGET /Employees(PartitionKey='" + pk + "',RowKey='1') HTTP/1.1\r\n\r\n\r\n--b--"
	}
	for name, c := range map[string]struct{ method, path, body, code string }{
		"an entity within":      {"GET", "/Employees(PartitionKey='b',RowKey='2')", "", ""},
		"an entity before":      {"GET", "/Employees(PartitionKey='b',RowKey='1')", "", "AuthorizationFailure"},
		"an entity behind":      {"DELETE", "/Employees(PartitionKey='d',RowKey='')", "", "AuthorizationFailure"},
		"an insert within":      {"POST", "/Employees", `{"PartitionKey":"c","RowKey":"9"}`, ""},
		"an insert before":      {"POST", "/Employees", `{"PartitionKey":"a","RowKey":"9"}`, "AuthorizationFailure"},
		"an insert of nothing":  {"POST", "/Employees", `{`, "InvalidInput"},
		"no address":            {"GET", "/Employees(", "", "InvalidInput"},
		"a transaction within":  {"POST", "/$batch", change("c"), ""},
		"a transaction leaving": {"POST", "/$batch", change("b"), "1:This request is not authorized"},
		"a transaction of none": {"POST", "/$batch", "--b--", "InvalidInput"},
		"a query in a batch":    {"POST", "/$batch", query("c"), ""},
		"one that leaves":       {"POST", "/$batch", query("b"), "AuthorizationFailure"},
		"a list of tables":      {"GET", "/Tables", "", ""},
	} {
		req := assert.Must[*http.Request](t)(http.NewRequest(c.method, "http://localhost/acct"+c.path+"?"+keys, strings.NewReader(c.body)))
		req.Header.Set("Content-Type", "multipart/mixed; boundary=b")
		if !strings.HasSuffix(c.path, "batch") {
			req.Header.Set("Content-Type", "application/json")
		}
		sent, refused := screen.Rules{Prefix: "/acct"}.Confine(req, []byte(c.body), 1, probe.Start())
		switch {
		case c.code == "" && sent != req:
			t.Errorf("%s: refused, or changed", name)
		case c.code != "" && (refused == nil || !strings.Contains(textOf(t, refused), c.code)):
			t.Errorf("%s: not refused with %s", name, c.code)
		}
	}
}

func textOf(t *testing.T, resp *http.Response) string {
	t.Helper()
	var b strings.Builder
	assert.Check(t, resp.Write(&b))
	return b.String()
}

func TestScreenRefusesWithoutState(t *testing.T) {
	a := accounts.New(t, simulator.Options{})
	rules := screen.Rules{Prefix: "/devstoreaccount1"}
	now := a.Clock().Now()
	refusal := func(method, target, body string, headers ...string) string {
		req := a.Request(method, "/devstoreaccount1"+target, body, headers...)
		resp := rules.Refuse(req, []byte(body), 7, now)
		if resp == nil {
			return ""
		}
		return (accounts.Reply{Response: resp}).Code(t)
	}
	batchType := "multipart/mixed; boundary=b"
	inBatch := func(body string) string {
		return probe.Batch(strings.ReplaceAll(body, "/Employees", "/devstoreaccount1/Employees"))
	}
	for _, c := range []struct {
		method, target, body, want string
		headers                    []string
	}{
		{"POST", "/Tables", `{"TableName":"Employees"}`, "", nil},
		{"POST", "/Tables", `{"TableName":"E"}`, "400 OutOfRangeInput", nil},
		{"DELETE", "/Tables('Employees')", "", "", nil},
		{"GET", "/Employees?comp=acl", "", "", nil},
		{"GET", "/?restype=service&comp=properties", "", "", nil},
		{"GET", "/Employees()?$top=1000&NextPartitionKey=other", "", "", nil},
		{"GET", "/Employees()?$top=1001", "", "400 InvalidInput", nil},
		{"GET", "/Employees()?$filter=A%20eq", "", "400 InvalidInput", nil},
		{"POST", "/Employees", `{"PartitionKey":"p","RowKey":"r"}`, "", nil},
		{"POST", "/Employees", `{"PartitionKey":"p","RowKey":"r","a-b":1}`, "400 PropertyNameInvalid", nil},
		{"PUT", "/Employees(PartitionKey='p',RowKey='r')", `{"A":5,"A@odata.type":"Edm.Guid"}`, "400 InvalidInput", nil},
		{"DELETE", "/Employees(PartitionKey='O'B',RowKey='r')", "", "400 InvalidInput", nil},
		{"POST", "/Employees", strings.Repeat(" ", 4<<20+1), "413 RequestBodyTooLarge", nil},
		{"POST", "/$batch", inBatch(probe.Part("PUT", "(PartitionKey='p',RowKey='r')", `{}`)), "", []string{"Content-Type", batchType}},
		{"POST", "/$batch", inBatch(probe.Part("PUT", "(PartitionKey='p',RowKey='r')", `{}`) + probe.Part("PUT", "(PartitionKey='p',RowKey='r')", `{}`)), "202 InvalidDuplicateRow", []string{"Content-Type", batchType}},
		{"POST", "/$batch", "nonsense", "400 InvalidInput", []string{"Content-Type", batchType}},
	} {
		if got := refusal(c.method, c.target, c.body, c.headers...); got != c.want {
			t.Errorf("%s %s %s: %q, want %q", c.method, c.target, accounts.Clip(c.body), got, c.want)
		}
	}
}

// A semicolon in a query is a character like any other: a signature's range that has one is held, and a filter is not lost.
func TestConfineTakesSemicolons(t *testing.T) {
	req, err := http.NewRequest(http.MethodGet, "http://localhost/acct/Staff()?sig=x&spk=a;&epk=b&$filter=Name%20eq%20'x;y'", nil)
	assert.Check(t, err)
	sent, refused := screen.Rules{Prefix: "/acct"}.Confine(req, nil, 1, probe.Start())
	if refused != nil {
		t.Fatal(refused.Status)
	}
	assert.Equal(t, sent.URL.Query().Get("$filter"), "(Name eq 'x;y') and (PartitionKey ge 'a;') and (PartitionKey le 'b')", "filter")
}
