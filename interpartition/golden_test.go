package interpartition_test

import (
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/google/go-cmp/cmp"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// goldenRows keeps the rows of transactions that are sent, with their ids replaced.
type goldenRows struct{ sent []string }

var goldenID = regexp.MustCompile(`\b[A-Z2-7]{26}\b`)

// Do is policy.Policy, before the one that puts the library's own body into the request: it reads what was sent afterwards.
func (g *goldenRows) Do(req *policy.Request) (*http.Response, error) {
	resp, err := req.Next()
	if body := req.Raw().Body; body != nil && strings.HasSuffix(req.Raw().URL.Path, "/$batch") {
		if err := req.RewindBody(); err != nil {
			return resp, err
		}
		text, err := io.ReadAll(body)
		if err != nil {
			return resp, err
		}
		for _, row := range regexp.MustCompile(`(?m)^\{.*\}`).FindAllString(string(text), -1) {
			g.sent = append(g.sent, goldenID.ReplaceAllString(row, "ID"))
		}
	}
	return resp, err
}

// TestGoldenReservation pins the rows of a reserved key, which later versions must read.
func TestGoldenReservation(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	w := newWorld(t, s, kind{unique: true})
	g := &goldenRows{}
	watched := *s
	watched.ClientOptions.PerRetryPolicies = append(slices.Clip(s.ClientOptions.PerRetryPolicies), g)
	p := harness.Must[*process](t)(w.start(&watched))
	e := jones()
	e.Badge = ""
	if err := p.repo.Insert(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	claim := regexp.MustCompile("\uFFFC[A-Z2-7]{32}").FindString(strings.Join(g.sent, "\n"))
	if len(g.sent) < 2 || claim == "" {
		t.Fatalf("the rows sent are %q", g.sent)
	}
	if d := cmp.Diff([]string{
		`{"PartitionKey":"email_Sales","RowKey":"jonesj@contoso.com","_tpPrimary":"empid_000223","_tpPartition":"Sales","_tpReserved":"ID","_tpTerm":3600,"_tpWrite":"ID"}`,
		`{"PartitionKey":"email_Sales","RowKey":"` + claim + `","_tpPrimary":"empid_000223","_tpPartition":"Sales","_tpReserved":"ID","_tpClaim":"jonesj@contoso.com","_tpWrite":"ID"}`,
	}, g.sent[:2]); d != "" {
		t.Errorf("the stored format has changed (-want +got):\n%s", d)
	}
}

// TestOldReservationIsRead: a reservation as earlier versions wrote it, without a term, keeps its key taken, is no copy, and is
// filled by its change's intent where the entity has the key.
func TestOldReservationIsRead(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	w := newWorld(t, s, kind{unique: true})
	p := harness.Must[*process](t)(w.start(s))
	if err := p.repo.Insert(t.Context(), jones()); err != nil {
		t.Fatal(err)
	}
	const old = `{"PartitionKey":"email_Sales","RowKey":"jonesj@contoso.com","_tpPrimary":"empid_000223","_tpPartition":"Sales","_tpReserved":"R1","_tpWrite":"W1"}`
	if _, err := p.repo.Table().Client().UpsertEntity(t.Context(), []byte(old), &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.email.In("Sales").Get(t.Context(), compoundkey.String(jones().Email)); !errors.Is(err, tables.ErrNotFound) {
		t.Errorf("a reserved key is read as a copy: %v", err)
	}
	if err := p.repo.Insert(t.Context(), &employee{Department: "Sales", ID: 224, Name: "Jim Jones", Email: jones().Email}); !errors.Is(err, tables.ErrDuplicate) {
		t.Errorf("a key that is reserved can be taken: %v", err)
	}
	for _, r := range repairOnce(t.Context(), t, p) {
		if !r.Repaired {
			t.Error(r)
		}
	}
	if _, err := w.check(t.Context(), s); err != nil {
		t.Error(err)
	}
}
