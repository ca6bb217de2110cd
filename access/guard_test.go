package access_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/access"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// requestOf is a request as the SDK would send it.
func requestOf(t testing.TB, method, address, contentType, body string, headers ...string) *policy.Request {
	t.Helper()
	req := assert.Must[*policy.Request](t)(runtime.NewRequest(t.Context(), method, address))
	if body != "" {
		assert.Check(t, req.SetBody(streaming.NopCloser(strings.NewReader(body)), contentType))
	}
	for i := 0; i < len(headers); i += 2 {
		req.Raw().Header.Set(headers[i], headers[i+1])
	}
	return req
}

// batchOf is a transaction of one operation.
func batchOf(method, address, headers, body string) string {
	return "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n" +
		method + " " + address + " HTTP/1.1\r\n" + headers + "\r\n" + body + "\r\n--c--\r\n--b--\r\n"
}

const batchType = "multipart/mixed; boundary=b"

// TestGuardReadsEveryKey: whatever a key is made of, the guard refuses just what is outside of the range: in an address, in an
// entity, and in both of a transaction; and leaves the body as it was.
func TestGuardReadsEveryKey(t *testing.T) {
	o := newOwner(t, storagetest.Simulator(t, nil))
	through := access.Through(at("B", "m'm"), at("D", "ü"))
	token := o.sign(access.Grant{Range: through, Permissions: access.Everything})
	base, query, _ := strings.Cut(token.RevealAddress(), "?")
	endpoint := strings.TrimSuffix(base, o.table.Name())
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"B", "C", "D", "m'm", "m''m", "m", "ü", "',RowKey='", "')", "%27", "a)b", "(", "'", "\\", `"`, "\r\n\r\n", "--c--"}))
	partition := rapid.OneOf(text, rapid.Just("C")) // whose keys are all within the range: some are drawn in any run
	refused, sent := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		key := at(partition.Draw(rt, "partition"), text.Draw(rt, "row"))
		body := string(assert.Must[[]byte](t)(jsonOf(key)))
		address := base + rowAddress(key)
		for what, req := range map[string]*policy.Request{
			"get":      requestOf(t, http.MethodGet, address+"?"+query, "", ""),
			"merge":    requestOf(t, http.MethodPost, address+"?"+query, "application/json", "{}", "X-HTTP-Method", "MERGE"),
			"insert":   requestOf(t, http.MethodPost, base+"?"+query, "application/json", body),
			"a $batch": requestOf(t, http.MethodPost, endpoint+"$batch?"+query, batchType, batchOf(http.MethodDelete, address, "If-Match: *\r\n", "")),
			"insert in a $batch": requestOf(t, http.MethodPost, endpoint+"$batch?"+query, batchType,
				batchOf(http.MethodPost, base, "Content-Type: application/json\r\n", body)),
		} {
			err := access.Refusal(token, req)
			if through.Contains(key) {
				sent++
			} else {
				refused++
			}
			if errors.Is(err, access.ErrOutside) == through.Contains(key) || err != nil && !errors.Is(err, tables.ErrDenied) {
				rt.Fatalf("%s of %q: %v", what, key, err)
			}
			if req.Body() != nil {
				if left, err := io.ReadAll(req.Body()); err != nil || len(left) == 0 {
					rt.Fatalf("%s: the body is gone: %v", what, err)
				}
			}
		}
	})
	if refused == 0 || sent == 0 {
		t.Errorf("%d were refused, %d were not", refused, sent)
	}
}

func jsonOf(key tables.Key) ([]byte, error) {
	return fmt.Appendf(nil, `{"Before":[1,{"RowKey":"x"}],"RowKey":%s,"Between":null,"PartitionKey":%s,"After":1}`, quoted(key.Row), quoted(key.Partition)), nil
}

// quoted is JSON with every character escaped.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		if r > 0xFFFF {
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3FF)
			continue
		}
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	b.WriteByte('"')
	return b.String()
}

// TestGuardLeavesTheRestToTheService: what it cannot read it lets pass, and does not panic.
func TestGuardLeavesTheRestToTheService(t *testing.T) {
	o := newOwner(t, storagetest.Simulator(t, nil))
	token := o.sign(access.Grant{Range: access.Partition("Sales"), Permissions: access.Everything})
	base, query, _ := strings.Cut(token.RevealAddress(), "?")
	endpoint := strings.TrimSuffix(base, o.table.Name())
	for _, row := range []string{"(PartitionKey=1,RowKey='x')", "(PartitionKey='x')", "(PartitionKey='x',RowKey=1)", "(PartitionKey='x',RowKey='y", "(PartitionKey='x',RowKey='y')more", "(RowKey='y',PartitionKey='x')", "()"} {
		assert.NoError(t, access.Refusal(token, requestOf(t, http.MethodGet, base+row+"?"+query, "", "")), row)
	}
	for _, body := range []string{"", "[]", "{", `{"PartitionKey"`, `{"PartitionKey":1}`, `{"PartitionKey":"x"}`, `{"Text":`, `{"Text":"x",1}`, "not JSON"} {
		assert.NoError(t, access.Refusal(token, requestOf(t, http.MethodPost, base+"?"+query, "application/json", body)), "an insert of %s", body)
	}
	outside := base + rowAddress(at("Works", "x"))
	whole := batchOf(http.MethodDelete, outside, "If-Match: *\r\n", "")
	for what, req := range map[string][2]string{"no multipart": {"application/json", whole}, "no boundary": {"multipart/mixed", whole}, "another boundary": {"multipart/mixed; boundary=x", whole}, "no type": {"", whole}, "nothing": {batchType, "x"},
		"no line": {batchType, strings.Replace(whole, "DELETE "+outside+" HTTP/1.1\r\nIf-Match: *\r\n\r\n", "DELETE", 1)}, "no end of headers": {batchType, strings.Replace(whole, "If-Match: *\r\n\r\n\r\n", "If-Match: *", 1)},
		"no address": {batchType, strings.Replace(whole, outside, "\x7f", 1)}, "another account": {batchType, strings.Replace(whole, outside, "https://other.test", 1)}} {
		if err := access.Refusal(token, requestOf(t, http.MethodPost, endpoint+"$batch?"+query, req[0], req[1])); err != nil && what != "another account" {
			t.Errorf("a transaction with %s: %v", what, err)
		}
	}
	for what, req := range map[string]*policy.Request{
		"the whole":      requestOf(t, http.MethodPost, endpoint+"$batch?"+query, batchType, whole),
		"by a header":    requestOf(t, http.MethodPost, endpoint+"$batch?"+query, batchType, strings.Replace(whole, "DELETE", "POST", 1), "X-HTTP-Method", "DELETE"),
		"within another": requestOf(t, http.MethodPost, endpoint+"$batch?"+query, batchType, strings.Replace(whole, "If-Match: *", "X-HTTP-Method: MERGE", 1)),
	} {
		assert.ErrorIs(t, access.Refusal(token, req), access.ErrOutside, what)
	}
	for _, address := range []string{"https://other.test/x/y", endpoint + "?comp=properties&restype=service", base + "?comp=acl"} {
		err := access.Refusal(token, requestOf(t, http.MethodGet, address, "", ""))
		if u := assert.Must[*url.URL](t)(url.Parse(address)); err == nil || strings.Contains(err.Error(), u.RawQuery) && u.RawQuery != "" {
			t.Errorf("%s: %v", address, err)
		}
	}
	assert.NoError(t, access.Refusal(token, requestOf(t, http.MethodOptions, base+"?"+query, "", "")), "a method that nobody knows")
}
