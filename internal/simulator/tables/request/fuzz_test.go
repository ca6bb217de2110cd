package request

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/entity"
)

// FuzzAddress: what is parsed as an entity's address is written as one that parses to the same.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"/", "/$batch", "/Tables", "/Tables('abc')", "/abc()", "/abc(PartitionKey='p',RowKey='r')", "/abc(RowKey='O''Brien', PartitionKey='''')",
		"/abc(PartitionKey='p',RowKey='%27')", "/abc(PartitionKey='\xff',RowKey='')", "/abc(PartitionKey='a'b',RowKey='')"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		a, fault := ParseAddress(path)
		if fault != nil {
			if fault.Status != 400 || fault.Code == "" {
				t.Errorf("fault %+v", fault)
			}
			return
		}
		if a.Kind != ToEntity {
			return
		}
		if CheckTableName(a.Table) != nil || entity.CheckKeys(a.Partition, a.Row) != nil {
			t.Fatalf("%q has parts that are against the rules: %+v", path, a)
		}
		written, err := url.PathUnescape(string(entity.AppendAddress(nil, a.Table, a.Partition, a.Row)))
		assert.NoError(assert.Fatal(t), err, "%+v is written as something that does not decode", a)
		if again, fault := ParseAddress("/" + written); fault != nil || again != a {
			t.Fatalf("%+v is written as %q, which is %+v, %v", a, written, again, fault)
		}
	})
}

// FuzzBatch: whatever comes, the parser answers, its parts are pieces of the body, and what it takes apart is small enough.
func FuzzBatch(f *testing.F) {
	good := probe.Batch(probe.Part("PUT", "(PartitionKey='p',RowKey='r')", `{"A":1}`) + probe.Part("DELETE", "(PartitionKey='p',RowKey='s')", "", "If-Match", "*"))
	for _, seed := range []string{good, strings.ReplaceAll(good, "\r\n", "\n"), good[:50], "--b\r\n\r\n--b--", "--b--", "", "--b\n--b--\n", probe.Batch(""),
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
		for i := range b.Parts {
			p := &b.Parts[i]
			total += len(p.body) + len(p.Target) + len(p.Method)
			if p.Method == "" || !strings.HasPrefix(p.Target, "/") || (p.Method == http.MethodGet) != b.Query {
				t.Fatalf("part %+v", p)
			}
		}
		// A change set may be empty; a query is one part.
		if b.Query && len(b.Parts) != 1 || total > len(body) {
			t.Fatalf("%d parts with %d bytes of a body of %d", len(b.Parts), total, len(body))
		}
		if ops, index, fault := b.Operations(""); !b.Query && fault == nil {
			for _, op := range ops {
				if entity.Check(op.Partition, op.Row, op.Properties) != nil || op.Partition != ops[0].Partition {
					t.Fatalf("operation %+v is against the rules", op)
				}
			}
		} else if index < 0 || index >= len(b.Parts) {
			t.Fatalf("index %d of %d", index, len(b.Parts))
		}
	})
}
