package simulator

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestNeeds: what each request asks of a signature, as the documents have it. The resource's letter is large where a service's
// signature is enough, and permissions that a bar parts are enough alone; nothing is the account's key alone.
func TestNeeds(t *testing.T) {
	for request, want := range map[string]Need{
		"queue GET /?comp=list":                       "s l",
		"queue PUT /?comp=properties":                 "s w",
		"queue GET /work?comp=acl":                    "",
		"queue PUT /work?comp=acl":                    "",
		"queue GET /work?comp=metadata":               "C r",
		"queue HEAD /work?comp=metadata":              "C r",
		"queue DELETE /work":                          "c d",
		"queue PUT /work":                             "c c|w",
		"queue PUT /work?comp=metadata":               "c w",
		"queue POST /work/messages":                   "O a",
		"queue PUT /work/messages/1":                  "O u",
		"queue DELETE /work/messages/1":               "O p",
		"queue DELETE /work/messages":                 "o d",
		"queue GET /work/messages":                    "O p",
		"queue GET /work/messages?peekonly=true":      "O r",
		"blob GET /?comp=list":                        "s l",
		"blob GET /c?restype=container&comp=acl":      "",
		"blob GET /c?restype=container&comp=list":     "C l",
		"blob GET /c?restype=container":               "c r",
		"blob DELETE /c?restype=container":            "c d",
		"blob PUT /c?restype=container":               "c c|w",
		"blob PUT /c?restype=container&comp=metadata": "c w",
		"blob GET /c/b":                               "O r",
		"blob HEAD /c/b":                              "O r",
		"blob DELETE /c/b":                            "O d",
		"blob PUT /c/b?comp=appendblock":              "O a|w",
		"blob PUT /c/b":                               "O c|w",
		"blob PUT /c/b?comp=block":                    "O c|w",
		"blob PUT /c/b?comp=metadata":                 "O w",
	} {
		words := strings.Fields(request)
		u, err := url.Parse("http://contoso" + words[2])
		noError(t, err)
		of := map[string]func(*http.Request) Need{"queue": queueNeeds, "blob": blobNeeds}[words[0]]
		if got := of(&http.Request{Method: words[1], URL: u}); got != want {
			t.Errorf("%s needs %q, want %q", request, got, want)
		}
	}
}

// TestConfine: what leaves a signature's range, by whatever request, is refused before it gets to a service that holds none.
func TestConfine(t *testing.T) {
	const keys = "sig=x&spk=b&srk=2&epk=c"
	change := func(pk string) string {
		return batchBody(part("DELETE", "(PartitionKey='"+pk+"',RowKey='3')", "", "If-Match", "*") + part("DELETE", "(PartitionKey='"+pk+"',RowKey='1')", "", "If-Match", "*"))
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
		req, err := http.NewRequest(c.method, "http://localhost/acct"+c.path+"?"+keys, strings.NewReader(c.body))
		noError(t, err)
		req.Header.Set("Content-Type", "multipart/mixed; boundary=b")
		if !strings.HasSuffix(c.path, "batch") {
			req.Header.Set("Content-Type", "application/json")
		}
		sent, refused := Screen{Prefix: "/acct"}.Confine(req, []byte(c.body), 1, testStart())
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
	noError(t, resp.Write(&b))
	return b.String()
}
