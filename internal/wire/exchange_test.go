package wire

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/kinds"
)

// answered is a transport that keeps the addresses it is asked for.
type answered struct{ paths []string }

func (a *answered) Do(req *http.Request) (*http.Response, error) {
	a.paths = append(a.paths, req.URL.EscapedPath())
	return &http.Response{StatusCode: http.StatusNoContent, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
}

// TestUnexpectedAddressIsNotSent: where the SDK does not address the stub as it did, nothing goes out: it would read or
// change the entity that has the stub's keys.
func TestUnexpectedAddressIsNotSent(t *testing.T) {
	service := &answered{}
	pipeline := runtime.NewPipeline("module", "v1", runtime.PipelineOptions{PerCall: []policy.Policy{Caller{Paths{Tables: true}}}}, &policy.ClientOptions{Transport: service})
	send := func(path string) error {
		ex := &Exchange{Entity: &Address{Table: "Employees", PartitionKey: "O'Brien", RowKey: "a b"}}
		req, err := runtime.NewRequest(With(context.Background(), ex), http.MethodDelete, "https://contoso.test/account"+path)
		assert.Check(t, err)
		_, err = pipeline.Do(req)
		return err
	}
	for _, path := range []string{
		"/Employees(PartitionKey='k',RowKey='k')?timeout=5", "/Employees(PartitionKey=%27k%27,RowKey=%27k%27)",
	} {
		assert.NoError(t, send(path), path)
	}
	for _, path := range service.paths {
		assert.Equal(t, path, "/account/Employees(PartitionKey='O%27%27Brien',RowKey='a%20b')", "the path asked for")
	}
	service.paths = nil
	for _, path := range []string{
		"", "/Employees()", "/Employees(PartitionKey='k',RowKey='k')/", "/Employees(RowKey='k',PartitionKey='k')", "/Employees(PartitionKey='k',%20RowKey='k')",
		"/employees(PartitionKey='k',RowKey='k')", "/Employees('k','k')", "/Employees(PartitionKey='k',RowKey='')",
	} {
		assert.Error(t, send(path), "%s is sent", path)
	}
	if len(service.paths) > 0 {
		t.Errorf("asked for %q", service.paths)
	}
	a := Address{Table: "Employees", PartitionKey: "p", RowKey: "r"}
	u := &url.URL{Path: "/elsewhere"}
	if err := a.replaceStub(u); err == nil || u.Path != "/elsewhere" || errors.Is(err, kinds.ErrCutOff) {
		t.Errorf("%v, path %s", err, u.Path)
	}
}
