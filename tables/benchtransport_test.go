package tables_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// canned answers every request within the process: a query with the page, a read with the row, a transaction with the
// batch answer, and an update with 204. Both sides of a comparison use the same one, so that what is left is their own work.
type canned struct {
	page, row, batch []byte
	headers          map[string]http.Header
	sent             int64 // bytes of request bodies
}

func newCanned() *canned {
	return &canned{
		page:  benchPage(benchEmployees(benchPageSize)),
		row:   benchRow(benchEmployees(1)),
		batch: harness.BatchAnswer(tables.MaxTransactionOperations),
		headers: map[string]http.Header{
			http.MethodGet:  {"Content-Type": {"application/json;odata=minimalmetadata;streaming=true;charset=utf-8"}},
			http.MethodPost: {"Content-Type": {"multipart/mixed; boundary=batchresponse_1"}},
			http.MethodPut:  {"Etag": {benchETag(0)}},
		},
	}
}

// Do implements the SDK's Transporter.
func (c *canned) Do(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		n, err := io.Copy(io.Discard, req.Body)
		if err != nil {
			return nil, err
		}
		c.sent += n
	}
	resp := &http.Response{Header: c.headers[req.Method], Request: req, Body: http.NoBody}
	switch {
	case req.Method == http.MethodGet && strings.HasSuffix(req.URL.Path, "')"):
		resp.StatusCode, resp.Body = http.StatusOK, io.NopCloser(bytes.NewReader(c.row))
	case req.Method == http.MethodGet:
		resp.StatusCode, resp.Body = http.StatusOK, io.NopCloser(bytes.NewReader(c.page))
	case req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/$batch"):
		resp.StatusCode, resp.Body = http.StatusAccepted, io.NopCloser(bytes.NewReader(c.batch))
	default:
		resp.StatusCode = http.StatusNoContent
	}
	return resp, nil
}

const (
	benchPageSize = 1000
	benchURL      = "https://contoso.table.core.windows.net"
	benchKey      = "a2V5IG9mIG5vIGFjY291bnQ=" // signs requests that never leave the process
)

// sides are the two clients to compare, over one transport and with the same credential and options.
type sides struct {
	canned *canned
	ours   *tables.Rows[benchEmployee]
	sdk    *aztables.Client
}

func newSides(t testing.TB) *sides {
	t.Helper()
	s := &sides{canned: newCanned()}
	options := azcore.ClientOptions{Transport: s.canned}
	account, err := tables.NewAccountWithSharedKey(tables.Endpoints{Table: benchURL}, "contoso", benchKey, &tables.AccountOptions{ClientOptions: options})
	if err != nil {
		t.Fatal(err)
	}
	if s.ours, err = tables.RowsOf[benchEmployee](account.Table("Employees")); err != nil {
		t.Fatal(err)
	}
	credential, err := aztables.NewSharedKeyCredential("contoso", benchKey)
	if err != nil {
		t.Fatal(err)
	}
	s.sdk, err = aztables.NewClientWithSharedKey(benchURL+"/Employees", credential, &aztables.ClientOptions{ClientOptions: options})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
