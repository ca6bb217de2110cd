package simulator

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// FuzzAddress: what is parsed as an entity's address is written as one that parses to the same.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"/", "/$batch", "/Tables", "/Tables('abc')", "/abc()", "/abc(PartitionKey='p',RowKey='r')", "/abc(RowKey='O''Brien', PartitionKey='''')",
		"/abc(PartitionKey='p',RowKey='%27')", "/abc(PartitionKey='\xff',RowKey='')", "/abc(PartitionKey='a'b',RowKey='')"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		a, fault := parseAddress(path)
		if fault != nil {
			if fault.Status != 400 || fault.Code == "" {
				t.Errorf("fault %+v", fault)
			}
			return
		}
		if a.kind != addressEntity {
			return
		}
		if CheckTableName(a.table) != nil || CheckKeys(a.pk, a.rk) != nil {
			t.Fatalf("%q has parts that are against the rules: %+v", path, a)
		}
		written, err := url.PathUnescape(string(appendEntityAddress(nil, a.table, a.pk, a.rk)))
		if err != nil {
			t.Fatalf("%+v is written as something that does not decode", a)
		}
		if again, fault := parseAddress("/" + written); fault != nil || again != a {
			t.Fatalf("%+v is written as %q, which is %+v, %v", a, written, again, fault)
		}
	})
}

// FuzzBatch: whatever comes, the parser answers, its parts are pieces of the body, and what it takes apart is small enough.
func FuzzBatch(f *testing.F) {
	good := batchBody(part("PUT", "(PartitionKey='p',RowKey='r')", `{"A":1}`) + part("DELETE", "(PartitionKey='p',RowKey='s')", "", "If-Match", "*"))
	for _, seed := range []string{good, strings.ReplaceAll(good, "\r\n", "\n"), good[:50], "--b\r\n\r\n--b--", "--b--", "", "--b\n--b--\n",
		"--b\r\nContent-Type: application/http\r\n\r\nGET /abc() HTTP/1.1\r\n\r\n\r\n--b--", strings.ReplaceAll(good, "boundary=c", "boundary=b")} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		b, fault := parseBatch("multipart/mixed; boundary=b", body)
		if fault != nil {
			if fault.Status != 400 || fault.Code != "InvalidInput" {
				t.Errorf("fault %+v", fault)
			}
			return
		}
		total := 0
		for i := range b.parts {
			p := &b.parts[i]
			total += len(p.body) + len(p.target) + len(p.method)
			if p.method == "" || !strings.HasPrefix(p.target, "/") || (p.method == http.MethodGet) != b.query {
				t.Fatalf("part %+v", p)
			}
		}
		if len(b.parts) == 0 || b.query && len(b.parts) != 1 || total > len(body) {
			t.Fatalf("%d parts with %d bytes of a body of %d", len(b.parts), total, len(body))
		}
		if ops, index, fault := b.operations(""); !b.query && fault == nil {
			for _, op := range ops {
				if checkEntity(op.pk, op.rk, op.properties) != nil || op.pk != ops[0].pk {
					t.Fatalf("operation %+v is against the rules", op)
				}
			}
		} else if index < 0 || index >= len(b.parts) {
			t.Fatalf("index %d of %d", index, len(b.parts))
		}
	})
}
