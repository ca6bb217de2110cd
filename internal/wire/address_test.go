package wire

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

// TestAddressIsPercentEncoded: of the ASCII characters only the unreserved ones stand for themselves in a key.
func TestAddressIsPercentEncoded(t *testing.T) {
	for c := byte(' '); c < 0x7F; c++ {
		key := string(c)
		want := url.QueryEscape(key)
		switch c {
		case ' ':
			want = "%20"
		case '\'':
			want = "%27%27"
		}
		a := Address{Table: "Employees", PartitionKey: "p", RowKey: key}
		assert.Equal(t, string(a.AppendEscaped(nil)), "Employees(PartitionKey='p',RowKey='"+want+"')", "%q: the address", key)
	}
}

// TestPathsOfTheSDK: what the SDK leaves unescaped in a key or name is percent-encoded, and syntax is not.
func TestPathsOfTheSDK(t *testing.T) {
	for _, c := range []struct {
		tables     bool
		path, want string
	}{
		{true, "", ""},
		{true, "/account/$batch", "/account/$batch"},
		{true, "/Tables('Employees')", "/Tables('Employees')"},
		{true, "/Employees()", "/Employees()"},
		{true, "/E(PartitionKey='a+b&c=d:e@f$g',RowKey='')", "/E(PartitionKey='a%2Bb%26c%3Dd%3Ae%40f%24g',RowKey='')"},
		{true, "/E(PartitionKey='%27%27$batch',RowKey='%2525%2C=')", "/E(PartitionKey='%27%27%24batch',RowKey='%2525%2C%3D')"},
		{true, "/E(PartitionKey='%C3%A9',RowKey='100%25')", "/E(PartitionKey='%C3%A9',RowKey='100%25')"},
		{false, "/photos/2012%2F$&+=:@%25", "/photos/2012%2F%24%26%2B%3D%3A%40%25"},
		{false, "/photos/a/b'(c),*!;d", "/photos/a/b%27%28c%29%2C%2A%21%3Bd"},
		{false, "/$logs/x", "/%24logs/x"},
		{false, "/jobs/messages/0-9._~", "/jobs/messages/0-9._~"},
	} {
		service := &answered{}
		pipeline := runtime.NewPipeline("module", "v1", runtime.PipelineOptions{PerCall: []policy.Policy{Paths{Tables: c.tables}}}, &policy.ClientOptions{Transport: service})
		req, err := runtime.NewRequest(context.Background(), http.MethodGet, "https://contoso.test"+c.path+"?timeout=5&x=a+b")
		assert.Check(t, err)
		before := *req.Raw().URL
		assert.Check(t, assert.Err(pipeline.Do(req)))
		assert.Equal(t, service.paths[0], c.want, "%s", c.path)
		if after := req.Raw().URL; after.Path != before.Path || after.RawQuery != before.RawQuery {
			t.Errorf("%s now means %s", &before, after)
		}
	}
}
