package patterns_test

import (
	"context"
	"io"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// The golden tests pin what is stored: rows and tokens that exist in accounts and must be read for ever.
// docs/reference/storage-format.md describes the same in words. Where one of them fails, either the change is wrong or readers
// need a way to tell the old from the new; a new golden row is added then, and the old one stays.

// goldenID is a write id, or an incarnation id: 26 characters of base32.
var goldenID = regexp.MustCompile(`\b[A-Z2-7]{26}\b`)

// goldenEmployee has one property of each kind.
type goldenEmployee struct {
	tables.Meta
	Department string `table:"PartitionKey"`
	Row        string `table:"RowKey"`
	Name       string
	Photo      []byte
	FullTime   bool
	Age        int32
	Badge      int64
	Rate       float64
	Ratio      float64
	Hired      time.Time
	Session    uuid.UUID
	Tags       []string `table:",json"`
	Nickname   *string
	Extra      map[string]tables.Value `table:",rest"`
}

func (e *goldenEmployee) id() (id int) {
	if err := compoundkey.Parse(e.Row, "empid", compoundkey.ToInt(&id, 6)); err != nil {
		panic(err)
	}
	return id
}

func newGoldenEmployee() *goldenEmployee {
	return &goldenEmployee{
		Department: "Sales", Row: "empid_000223", Name: "June \"O'Brien\" Müller \U0001F600\u2028\u0001", Photo: []byte{0, 1, 254, 255}, FullTime: true, Age: -41,
		Badge: 1<<53 + 1, Rate: 3, Ratio: math.Inf(-1), Hired: time.Date(2012, 12, 31, 23, 59, 59, 123456700, time.UTC),
		Session: uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff"), Tags: []string{"a", "b"},
		Extra: map[string]tables.Value{"Later": tables.Int32(1)},
	}
}

// goldenProperties are those of newGoldenEmployee, as they are sent.
const goldenProperties = `"Name":"June \"O'Brien\" Müller 😀\u2028\u0001",` +
	`"Photo@odata.type":"Edm.Binary","Photo":"AAH+/w==",` +
	`"FullTime":true,` +
	`"Age":-41,` +
	`"Badge@odata.type":"Edm.Int64","Badge":"9007199254740993",` +
	`"Rate@odata.type":"Edm.Double","Rate":3.0,` +
	`"Ratio@odata.type":"Edm.Double","Ratio":"-Infinity",` +
	`"Hired@odata.type":"Edm.DateTime","Hired":"2012-12-31T23:59:59.1234567Z",` +
	`"Session@odata.type":"Edm.Guid","Session":"00112233-4455-6677-8899-aabbccddeeff",` +
	`"Tags":"[\"a\",\"b\"]",` +
	`"Later":1`

// golden keeps the bodies of the writes sent to it, with their ids replaced, and answers reads with a stored row.
type golden struct {
	bodies []string
	stored string
}

func (g *golden) Do(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		return harness.Reply(req, http.StatusOK, g.stored, "Content-Type", "application/json;odata=minimalmetadata", "ETag", `W/"datetime'1'"`), nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	rows := []string{string(body)}
	if strings.HasSuffix(req.URL.Path, "/$batch") {
		rows = regexp.MustCompile(`(?m)^\{.*\}`).FindAllString(string(body), -1)
	}
	for _, row := range rows {
		g.bodies = append(g.bodies, goldenID.ReplaceAllString(row, "ID"))
	}
	if len(rows) > 1 {
		return harness.Reply(req, http.StatusAccepted, string(harness.BatchAnswer(len(rows))), "Content-Type", "multipart/mixed; boundary=batchresponse_1"), nil
	}
	return harness.Reply(req, http.StatusNoContent, "", "ETag", `W/"datetime'1'"`), nil
}

func (g *golden) wrote(t *testing.T, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, g.bodies); d != "" {
		t.Errorf("the stored format has changed (-want +got):\n%s", d)
	}
	g.bodies = nil
}

// goldenRepository keeps golden employees, with two indexes or without.
func goldenRepository(t *testing.T, g *golden, attached ...patterns.Pattern[goldenEmployee]) *patterns.Repository[goldenEmployee] {
	return assert.Must[*patterns.Repository[goldenEmployee]](t)(patterns.NewRepository(harness.InProcess(t, g.Do).Table("Employees"), patterns.Schema[goldenEmployee]{
		Key: func(e *goldenEmployee) tables.Key {
			return tables.Key{Partition: e.Department, Row: e.Row}
		},
		Prefix: "empid",
	}, attached...))
}

func TestGoldenRow(t *testing.T) {
	g := &golden{}
	repo := goldenRepository(t, g)
	e := newGoldenEmployee()
	if err := repo.Insert(context.Background(), e); err != nil {
		t.Fatal(err)
	}
	g.wrote(t, `{"PartitionKey":"Sales","RowKey":"empid_000223",`+goldenProperties+`,"_tpIncarnation":"ID","_tpWrite":"ID"}`)
	if !goldenID.MatchString(e.Incarnation()) {
		t.Errorf("the incarnation is %q", e.Incarnation())
	}
	bag := &tables.Entity{Key: tables.Key{Partition: "Sales", Row: ""}, Properties: tables.Properties{{Name: "Count", Value: tables.Int32(2)}}}
	if err := repo.Table().Entities().Insert(context.Background(), bag); err != nil {
		t.Fatal(err)
	}
	g.wrote(t, `{"PartitionKey":"Sales","RowKey":"","Count":2,"_tpWrite":"ID"}`)
}

func TestGoldenIndexRows(t *testing.T) {
	ctx := context.Background()
	g := &golden{}
	full := intrapartition.NewUnique("name", func(e *goldenEmployee) compoundkey.Part {
		return compoundkey.Tuple(compoundkey.String(e.Name[:4]), compoundkey.Int(e.id(), 6))
	}, nil)
	kept := intrapartition.NewUnique("hired", func(e *goldenEmployee) compoundkey.Part { return compoundkey.Time(e.Hired) }, &intrapartition.Options{Project: []string{"Age"}})
	repo := goldenRepository(t, g, full, kept)
	e := newGoldenEmployee()
	if err := repo.Insert(ctx, e); err != nil {
		t.Fatal(err)
	}
	const fullCopy = `{"PartitionKey":"Sales","RowKey":"name_June!_000223",` + goldenProperties + `,"_tpIncarnation":"ID","_tpCopies":"name,hired","_tpPrimary":"empid_000223","_tpWrite":"ID"}`
	g.wrote(t,
		`{"PartitionKey":"Sales","RowKey":"empid_000223",`+goldenProperties+`,"_tpIncarnation":"ID","_tpCopies":"name,hired","_tpWrite":"ID"}`, fullCopy,
		`{"PartitionKey":"Sales","RowKey":"hired_0634925951991234567","Age":-41,"_tpIncarnation":"ID","_tpCopies":"name,hired","_tpPrimary":"empid_000223","_tpWrite":"ID"}`)

	// An update writes all rows again, under the incarnation of the insert.
	incarnation := e.Incarnation()
	if err := repo.Replace(ctx, e); err != nil {
		t.Fatal(err)
	}
	if len(g.bodies) != 3 || g.bodies[1] != fullCopy || e.Incarnation() != incarnation {
		t.Errorf("the replacement wrote %q", g.bodies)
	}
}

func TestGoldenRowIsRead(t *testing.T) {
	ctx := context.Background()
	g := &golden{stored: `{"odata.metadata":"http://table.test/contoso/$metadata#Employees/@Element","odata.etag":"W/\"datetime'1'\"",` +
		`"PartitionKey":"Sales","RowKey":"empid_000223","Timestamp":"2026-01-02T03:04:05.6789012Z",` + goldenProperties +
		`,"_tpIncarnation":"ABCDEFGHIJKLMNOPQRSTUVWXYZ","_tpWrite":"ZYXWVUTSRQPONMLKJIHGFEDCBA"}`}
	got, err := goldenRepository(t, g).Get(ctx, tables.Key{Partition: "Sales", Row: "empid_000223"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Incarnation() != "ABCDEFGHIJKLMNOPQRSTUVWXYZ" || !got.Timestamp.Equal(time.Date(2026, 1, 2, 3, 4, 5, 678901200, time.UTC)) {
		t.Errorf("incarnation %q, time %v", got.Incarnation(), got.Timestamp)
	}
	got.Meta = tables.Meta{}
	if d := cmp.Diff(newGoldenEmployee(), got, cmp.AllowUnexported(tables.Meta{}), cmp.Comparer(func(a, b tables.Value) bool { return a == b })); d != "" {
		t.Error(d)
	}
}

func TestGoldenContinuationToken(t *testing.T) {
	ctx := context.Background()
	// {"v":1,"q":"0342bce05e2369de","p":"1!8!U2FsZXM-","r":"1!8!MDAwMjIz","n":5}
	const token = "eyJ2IjoxLCJxIjoiMDM0MmJjZTA1ZTIzNjlkZSIsInAiOiIxITghVTJGc1pYTS0iLCJyIjoiMSE4IU1EQXdNakl6IiwibiI6NX0"
	var asked url.Values
	answer := func(req *http.Request) (*http.Response, error) {
		asked = req.URL.Query()
		return harness.Reply(req, http.StatusOK, `{"value":[]}`, "Content-Type", "application/json;odata=minimalmetadata",
			"X-Ms-Continuation-Nextpartitionkey", "1!8!U2FsZXM-", "X-Ms-Continuation-Nextrowkey", "1!8!MDAwMjIz"), nil
	}
	query := harness.InProcess(t, answer).Table("Employees").Entities().Query().Partition("Sales").Where(tables.Gt("Age", int32(40))).Select("Age").Top(5)
	page, err := query.Page(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	if page.Next != token {
		t.Errorf("the token is %q", page.Next)
	}
	if _, err := query.Page(ctx, token); err != nil {
		t.Fatal(err)
	}
	if asked.Get("NextPartitionKey") != "1!8!U2FsZXM-" || asked.Get("NextRowKey") != "1!8!MDAwMjIz" {
		t.Errorf("it asks for %v", asked)
	}
}
