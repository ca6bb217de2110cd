package interpartition_test

import (
	"io"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/google/go-cmp/cmp"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// goldenRows keeps the rows of transactions that are sent, with their ids replaced.
type goldenRows struct {
	mu   sync.Mutex
	sent []string
}

var (
	goldenID   = regexp.MustCompile(`\b[A-Z2-7]{26}\b`)
	goldenETag = regexp.MustCompile(`W/\\"[^"]*\\"`)
	goldenRow  = regexp.MustCompile(`(?m)^\{"PartitionKey":"email.*\}`)
)

// Do is policy.Policy, before the one that puts the library's own body into the request: it reads what was sent afterwards.
func (g *goldenRows) Do(req *policy.Request) (*http.Response, error) {
	resp, err := req.Next()
	if body := req.Raw().Body; body != nil {
		if err := req.RewindBody(); err != nil {
			return resp, err
		}
		text, err := io.ReadAll(body)
		if err != nil {
			return resp, err
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, row := range goldenRow.FindAllString(string(text), -1) {
			g.sent = append(g.sent, goldenETag.ReplaceAllString(goldenID.ReplaceAllString(row, "ID"), "ETAG"))
		}
	}
	return resp, err
}

// TestGoldenRows pins the rows of an index, marked and settled, which later versions must read.
func TestGoldenRows(t *testing.T) {
	for k, at := range map[kind][2]string{
		{unique: true}:               {`"email_Sales","RowKey":"jonesj@contoso.com"`, `"email_Sales","RowKey":"june@contoso.com"`},
		{}:                           {`"email_Sales","RowKey":"jonesj@contoso.com!_Sales!_empid^1000223"`, `"email_Sales","RowKey":"june@contoso.com!_Sales!_empid^1000223"`},
		{unique: true, spread: true}: {`"email_Sales!_01","RowKey":"jonesj@contoso.com"`, `"email_Sales!_02","RowKey":"june@contoso.com"`},
	} {
		acquired := func(at, base string) string {
			return `{"PartitionKey":` + at + `,"_tpPrimary":"empid_000223","_tpPartition":"Sales","_tpMark":"ID","_tpAcquirer":"ID"` + base + `,"_tpWrite":"ID"}`
		}
		settled := func(at, email string) string {
			return `{"PartitionKey":` + at + `,"Department":"Sales","ID@odata.type":"Edm.Int64","ID":"223","Name":"June Jones","Email":"` + email + `","Badge":"","_tpIncarnation":"ID","_tpCopies":">email,>badge",` +
				`"_tpPrimary":"empid_000223","_tpPartition":"Sales","_tpVersion":"ETAG","_tpWrite":"ID"}`
		}
		want := []string{acquired(at[0], ""), settled(at[0], "jonesj@contoso.com"),
			`{"PartitionKey":` + at[0] + `,"_tpMark":"ID","_tpWrite":"ID"}`, acquired(at[1], `,"_tpBase":"ETAG"`), settled(at[1], "june@contoso.com")}
		t.Run(k.String(), func(t *testing.T) {
			s := storagetest.Simulator(t, nil)
			w := newWorld(t, s, k)
			g := &goldenRows{}
			watched := *s
			watched.ClientOptions.PerRetryPolicies = append(slices.Clip(s.ClientOptions.PerRetryPolicies), g)
			p := assert.Must[*process](t)(w.start(&watched))
			e := jones()
			e.Badge = ""
			assert.Check(t, p.repo.Insert(t.Context(), e))
			e.Email = "june@contoso.com"
			assert.Check(t, p.repo.Replace(t.Context(), e))
			slices.Sort(want)
			slices.Sort(g.sent) // partitions are written at the same time
			if d := cmp.Diff(want, g.sent); d != "" {
				t.Errorf("the stored format has changed (-want +got):\n%s", d)
			}
		})
	}
}
