package tables_test

import (
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/simulator"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe/accounts"
)

func date(t *testing.T, text string) edm.Value {
	t.Helper()
	at := assert.Must[time.Time](t)(time.Parse(time.RFC3339Nano, text))
	v := assert.Must[edm.Value](t)(edm.DateTime(at))
	return v
}

func TestValuesAreWhatTheirTypeSays(t *testing.T) {
	none := edm.Value{}
	for _, c := range []struct {
		typ, value string
		want       edm.Value // the zero Value for one that is refused
		code       string
	}{
		{"", `"x"`, edm.String("x"), ""}, {"Edm.String", `"é😀\u0000"`, edm.String("é😀\x00"), ""}, {"Edm.String", `5`, none, "InvalidInput"}, {"Edm.String", `true`, none, "InvalidInput"},
		{"", `true`, edm.Boolean(true), ""}, {"Edm.Boolean", `false`, edm.Boolean(false), ""}, {"Edm.Boolean", `"yes"`, none, "InvalidInput"}, {"Edm.Boolean", `1`, none, "InvalidInput"},
		{"", `2147483647`, edm.Int32(math.MaxInt32), ""}, {"", `-2147483648`, edm.Int32(math.MinInt32), ""},
		{"", `2147483648`, none, "InvalidInput"}, {"", `-2147483649`, none, "InvalidInput"}, {"Edm.Int32", `2147483648`, none, "InvalidInput"}, {"Edm.Int32", `1.5`, none, "InvalidInput"}, {"Edm.Int32", `true`, none, "InvalidInput"},
		{"Edm.Int64", `"9223372036854775807"`, edm.Int64(math.MaxInt64), ""}, {"Edm.Int64", `"9223372036854775808"`, none, "InvalidInput"}, {"Edm.Int64", `"abc"`, none, "InvalidInput"}, {"Edm.Int64", `5`, none, "InvalidInput"}, {"Edm.Int64", `""`, none, "InvalidInput"},
		{"", `3.0`, edm.Double(3), ""}, {"", `3e0`, edm.Double(3), ""}, {"", `1E+2`, edm.Double(100), ""}, {"Edm.Double", `3`, edm.Double(3), ""}, {"Edm.Double", `"3.5"`, edm.Double(3.5), ""}, {"", `-0.0`, edm.Double(math.Copysign(0, -1)), ""},
		{"Edm.Double", `"NaN"`, edm.Double(math.NaN()), ""}, {"Edm.Double", `"Infinity"`, edm.Double(math.Inf(1)), ""}, {"Edm.Double", `"-Infinity"`, edm.Double(math.Inf(-1)), ""},
		{"Edm.Double", `"x"`, none, "InvalidInput"}, {"", `1e999`, none, "InvalidInput"}, {"", `"NaN"`, edm.String("NaN"), ""},
		{"Edm.DateTime", `"2014-08-22T00:50:32.1234567Z"`, date(t, "2014-08-22T00:50:32.1234567Z"), ""}, {"Edm.DateTime", `"1601-01-01T00:00:00Z"`, date(t, "1601-01-01T00:00:00Z"), ""},
		{"Edm.DateTime", `"1600-12-31T23:59:59.9999999Z"`, none, "OutOfRangeInput"}, {"Edm.DateTime", `"0001-01-01T00:00:00Z"`, none, "OutOfRangeInput"},
		{"Edm.DateTime", `"9999-12-31T23:59:59.9999999Z"`, date(t, "9999-12-31T23:59:59.9999999Z"), ""}, {"Edm.DateTime", `"10000-01-01T00:00:00Z"`, none, "InvalidInput"},
		{"Edm.DateTime", `"2014-08-22T02:50:32+02:00"`, date(t, "2014-08-22T00:50:32Z"), ""}, {"Edm.DateTime", `"2014-08-22T00:50:32.12345678Z"`, none, "InvalidInput"}, {"Edm.DateTime", `"not a date"`, none, "InvalidInput"}, {"Edm.DateTime", `5`, none, "InvalidInput"},
		{"Edm.Guid", `"c9da6455-213d-42c9-9a79-3e9149a57833"`, edm.Guid(uuid.MustParse("c9da6455-213d-42c9-9a79-3e9149a57833")), ""}, {"Edm.Guid", `"c9da6455"`, none, "InvalidInput"}, {"Edm.Guid", `"{9da6455-213d-42c9-9a79-3e9149a57833}"`, none, "InvalidInput"},
		{"Edm.Binary", `"YmluYXJ5"`, edm.Binary([]byte("binary")), ""}, {"Edm.Binary", `""`, edm.Binary(nil), ""}, {"Edm.Binary", `"Ymlu YXJ5"`, none, "InvalidInput"}, {"Edm.Binary", `"YmluYXJ"`, none, "InvalidInput"},
		{"Edm.Decimal", `"5"`, none, "InvalidInput"}, {"Edm.int64", `"5"`, none, "InvalidInput"}, {"", `{}`, none, "InvalidInput"}, {"", `[1]`, none, "InvalidInput"},
		{"", `null`, none, ""}, {"Edm.Int64", `null`, none, ""},
	} {
		for _, before := range []bool{true, false} {
			property := `"A":` + c.value
			if c.typ != "" && before {
				property = `"A@odata.type":"` + c.typ + `",` + property
			} else if c.typ != "" {
				property += `,"A@odata.type":"` + c.typ + `"`
			}
			a := accounts.WithTable(t, simulator.Options{})
			status := 201
			if c.code != "" {
				status = 400
			}
			a.Want(http.MethodPost, "/Employees", `{"PartitionKey":"p","RowKey":"r",`+property+`}`, status, c.code)
			rows := a.Rows("Employees")
			switch {
			case (len(rows) == 1) != (c.code == ""):
				t.Errorf("%s: %d rows", property, len(rows))
			case len(rows) == 1 && rows[0].Get("A") != c.want:
				t.Errorf("%s: stored %#v, want %#v", property, rows[0].Get("A"), c.want)
			case len(rows) == 1 && c.want.IsNull() && len(rows[0].Properties) > 0:
				t.Errorf("%s: a null was stored", property)
			}
		}
	}
	a := accounts.WithTable(t, simulator.Options{})
	a.Want(http.MethodPost, "/Employees", `{"PartitionKey":"p","RowKey":"r","A@odata.type":"Edm.Int64"}`, 400, "InvalidInput")
	a.Want(http.MethodPost, "/Employees", `{"odata.etag":"x","odata.metadata":"y","PartitionKey":"p","RowKey":"r","A@odata.mediaType":"z","Timestamp":"nonsense"}`, 201, "")
}

func TestANullInAMergeChangesNothing(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	accounts.Insert(a, "p", "r", `,"A":1,"B":2`)
	a.Want(http.MethodPatch, "/Employees(PartitionKey='p',RowKey='r')", `{"A":null,"B":3}`, 204, "")
	if row := a.Rows("Employees")[0]; row.Get("A") != edm.Int32(1) || row.Get("B") != edm.Int32(3) {
		t.Errorf("%#v", row)
	}
}
