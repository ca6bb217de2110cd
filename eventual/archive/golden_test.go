package archive

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	jsonv2 "github.com/go-json-experiment/json"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestGoldenMoverRows pins the rows that a mover keeps: a move that one build has begun is finished by another.
func TestGoldenMoverRows(t *testing.T) {
	if name := moveName("archive", "Employees", tables.Key{Partition: "Sales", Row: "empid_000223"}, "LIFE", []string{"Left", "empid_000223"}); name != "3KW2GTYZ5TPWOEDYO5KKEIR7DR4VRZ4W" {
		t.Errorf("the move is named %s", name)
	}
	s := storagetest.Simulator(t, nil)
	var sent []string
	options := s.ClientOptions
	options.PerRetryPolicies = append(options.PerRetryPolicies, recorder{&sent})
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: options})
	if err != nil {
		t.Fatal(err)
	}
	table := account.Table(s.TableName(t))
	if err := table.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	for word, fill := range map[string]func(*moverRow){
		markRow:   func(r *moverRow) { r.Source = `W/"1"` },
		traceRow:  func(r *moverRow) { r.Write = "WRITE" },
		recordRow: func(r *moverRow) { r.Source, r.Base, r.Write, r.Round = `W/"1"`, `"0x1"`, "WRITE", 1 },
	} {
		row := &moverRow{PartitionKey: "Sales", RowKey: "\uFFFC" + word + "NAME", Version: moverRowVersion, Mover: "archive", Table: "Employees",
			Partition: "Sales", Row: "empid_000223", Incarnation: "LIFE"}
		fill(row)
		sent = nil
		if done, err := writeRow(context.Background(), driver.InsertRow, table, row); !done || err != nil {
			t.Fatal(err)
		}
		want := map[string]string{
			markRow:   `"Source":"W/\"1\"",`,
			traceRow:  `"Write":"WRITE",`,
			recordRow: `"Source":"W/\"1\"","Write":"WRITE","Base":"\"0x1\"","Round":1,`,
		}[word]
		want = `{"PartitionKey":"Sales","RowKey":"` + "\uFFFC" + word + `NAME","Version":1,"Mover":"archive","Table":"Employees","Partition":"Sales","Row":"empid_000223","Incarnation":"LIFE",` +
			want + `"_tpShared":"mover","_tpWrite":"`
		if len(sent) != 1 || !strings.HasPrefix(sent[0], want) || !json.Valid([]byte(sent[0])) {
			t.Errorf("%s is stored as\n%s\nwant\n%s...", word, sent, want)
		}
	}
}

// TestGoldenBody pins the body of a mover's message: those on a queue are read by later versions.
func TestGoldenBody(t *testing.T) {
	want := `{"partition":"Sales","row":"empid_000223","incarnation":"LIFE","to":["Left","empid_000223"]}`
	got, err := jsonv2.Marshal(moveBody{"Sales", "empid_000223", "LIFE", []string{"Left", "empid_000223"}})
	if err != nil || string(got) != want {
		t.Errorf("it is written as\n%s\nwant\n%s\n%v", got, want, err)
	}
	if moveTypes != "tablepatterns.move." {
		t.Errorf("the type begins with %q", moveTypes)
	}
}

// recorder notes the bodies of requests.
type recorder struct{ sent *[]string }

// Do is policy.Policy.
func (r recorder) Do(req *policy.Request) (*http.Response, error) {
	if body := req.Body(); body != nil {
		var text strings.Builder
		buffer := make([]byte, 1<<10)
		for {
			n, err := body.Read(buffer)
			text.Write(buffer[:n])
			if err != nil {
				break
			}
		}
		if err := req.RewindBody(); err != nil {
			return nil, err
		}
		*r.sent = append(*r.sent, text.String())
	}
	return req.Next()
}
