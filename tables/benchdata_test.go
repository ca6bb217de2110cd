package tables_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/tables"
)

// benchEmployee is the entity of the benchmarks: 12 properties of the eight types.
type benchEmployee struct {
	tables.Meta
	PartitionKey, RowKey string

	FirstName  string
	LastName   string
	Email      string
	Title      string
	Age        int32
	Vacation   int32
	BadgeNo    int64
	Salary     float64
	FullTime   bool
	Hired      time.Time
	ExternalID uuid.UUID
	BadgeKey   []byte
}

// plainEmployee is the same record for encoding/json, with what that package needs to read the service's answers.
type plainEmployee struct {
	ETag         string `json:"odata.etag"`
	PartitionKey string
	RowKey       string
	Timestamp    time.Time

	FirstName  string
	LastName   string
	Email      string
	Title      string
	Age        int32
	Vacation   int32
	BadgeNo    int64 `json:",string"`
	Salary     float64
	FullTime   bool
	Hired      time.Time
	ExternalID uuid.UUID
	BadgeKey   []byte
}

// benchEmployees makes n records, the same ones every time.
func benchEmployees(n int) []*benchEmployee {
	random := rand.New(rand.NewPCG(1, 2))
	first := []string{"Jun", "Ken", "Dana", "Søren", "Aiko", "Mary", "José", "Wei"}
	last := []string{"Cao", "Kwok", "O'Brien", "Jones", "Kierkegaard", "Smith", "García", "Li"}
	title := []string{"Engineer", "Senior Engineer", "Accountant", "Manager, \"Special\" Projects"}
	employees := make([]*benchEmployee, n)
	for i := range employees {
		e := &benchEmployee{
			PartitionKey: "Sales", RowKey: fmt.Sprintf("empid_%06d", i),
			FirstName: first[random.IntN(len(first))], LastName: last[random.IntN(len(last))],
			Email: fmt.Sprintf("employee%d@contoso.com", i), Title: title[random.IntN(len(title))],
			Age: 18 + random.Int32N(50), Vacation: random.Int32N(40), BadgeNo: 1<<40 + random.Int64N(1<<40),
			Salary: 30_000 + float64(random.IntN(9_000_000))/100, FullTime: random.IntN(4) > 0,
			Hired:    time.Date(2000, 1, 1, 9, 0, 0, random.IntN(10_000_000)*100, time.UTC).AddDate(0, 0, random.IntN(8000)),
			BadgeKey: make([]byte, 32),
		}
		for j := range e.BadgeKey {
			e.BadgeKey[j] = byte(random.Uint32())
		}
		copy(e.ExternalID[:], e.BadgeKey[7:])
		employees[i] = e
	}
	return employees
}

// benchTime is the time of the last change of employee i, and benchETag the ETag that goes with it.
func benchTime(i int) time.Time {
	return time.Date(2026, 11, 20, 8, 30, i%60, 123456700+i%1000*100, time.UTC)
}

func benchETag(i int) string {
	return "W/\"datetime'" + benchTime(i).Format("2006-01-02T15%3A04%3A05.9999999Z") + "'\""
}

// benchPage is the answer to a query, as the service writes it with minimal metadata.
func benchPage(employees []*benchEmployee) []byte {
	page := []byte(`{"odata.metadata":"https://contoso.table.core.windows.net/$metadata#Employees","value":[`)
	for i, e := range employees {
		if i > 0 {
			page = append(page, ',')
		}
		const form = `{"odata.etag":%s,"PartitionKey":%s,"RowKey":%s,"Timestamp":"%s",` +
			`"FirstName":%s,"LastName":%s,"Email":%s,"Title":%s,"Age":%d,"Vacation":%d,` +
			`"BadgeNo@odata.type":"Edm.Int64","BadgeNo":"%d","Salary":%s,"FullTime":%t,` +
			`"Hired@odata.type":"Edm.DateTime","Hired":"%s","ExternalID@odata.type":"Edm.Guid","ExternalID":"%s",` +
			`"BadgeKey@odata.type":"Edm.Binary","BadgeKey":"%s"}`
		page = fmt.Appendf(page, form, strconv.Quote(benchETag(i)), strconv.Quote(e.PartitionKey), strconv.Quote(e.RowKey),
			benchTime(i).Format(time.RFC3339Nano), strconv.Quote(e.FirstName), strconv.Quote(e.LastName), strconv.Quote(e.Email),
			strconv.Quote(e.Title), e.Age, e.Vacation, e.BadgeNo, jsonDouble(e.Salary), e.FullTime,
			e.Hired.Format(time.RFC3339Nano), e.ExternalID, base64.StdEncoding.EncodeToString(e.BadgeKey))
	}
	return append(page, "]}"...)
}

// benchRow is the answer to a read of the only one of the employees.
func benchRow(employees []*benchEmployee) []byte {
	row := bytes.TrimSuffix(benchPage(employees), []byte("]}"))
	_, row, _ = bytes.Cut(row, []byte(`"value":[{`))
	return append([]byte(`{"odata.metadata":"https://contoso.table.core.windows.net/$metadata#Employees/@Element",`), row...)
}

// jsonDouble writes a double with a point, which tells it from an integer.
func jsonDouble(f float64) string {
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if f == float64(int64(f)) {
		text += ".0"
	}
	return text
}

// edmEntity is e as the SDK's property bag.
func (e *benchEmployee) edmEntity() aztables.EDMEntity {
	return aztables.EDMEntity{
		Entity: aztables.Entity{PartitionKey: e.PartitionKey, RowKey: e.RowKey},
		Properties: map[string]any{
			"FirstName": e.FirstName, "LastName": e.LastName, "Email": e.Email, "Title": e.Title,
			"Age": e.Age, "Vacation": e.Vacation, "BadgeNo": aztables.EDMInt64(e.BadgeNo), "Salary": e.Salary, "FullTime": e.FullTime,
			"Hired": aztables.EDMDateTime(e.Hired), "ExternalID": aztables.EDMGUID(e.ExternalID.String()), "BadgeKey": aztables.EDMBinary(e.BadgeKey),
		},
	}
}

func (e *benchEmployee) plain(i int) plainEmployee {
	return plainEmployee{
		ETag: benchETag(i), PartitionKey: e.PartitionKey, RowKey: e.RowKey, Timestamp: benchTime(i),
		FirstName: e.FirstName, LastName: e.LastName, Email: e.Email, Title: e.Title, Age: e.Age, Vacation: e.Vacation,
		BadgeNo: e.BadgeNo, Salary: e.Salary, FullTime: e.FullTime, Hired: e.Hired, ExternalID: e.ExternalID, BadgeKey: e.BadgeKey,
	}
}

// wantEqual fails unless got is e in everything that is stored.
func (e *benchEmployee) wantEqual(t testing.TB, i int, got *benchEmployee) {
	t.Helper()
	if string(got.BadgeKey) != string(e.BadgeKey) || fmt.Sprint(got.plain(i)) != fmt.Sprint(e.plain(i)) {
		t.Fatalf("employee %d is %+v, want %+v", i, got, e)
	}
	if string(got.ETag) != benchETag(i) || !got.Timestamp.Equal(benchTime(i)) {
		t.Fatalf("employee %d has ETag %q and time %v", i, got.ETag, got.Timestamp)
	}
}
