package rowreader

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/kinds"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
)

func readAll(answer string, known map[string]int) (rows []tablerow.Row, err error) {
	err = New([]byte(answer), known).Page(func(row *tablerow.Row) error {
		rows = append(rows, *row.Clone())
		return nil
	})
	return rows, err
}

func pageOf(rows ...string) string { return `{"value":[` + strings.Join(rows, ",") + `]}` }

// TestReadRefusesRepeatedNames holds that an answer that says something twice is never read as if it said it once,
// be it a property that nobody asked for.
func TestReadRefusesRepeatedNames(t *testing.T) {
	const keys = `"odata.etag":"W/\"1\"","PartitionKey":"p","RowKey":"r"`
	good := `{` + keys + `,"A":1,"B@odata.type":"Edm.Int64","B":"2"}`
	for name, bad := range map[string]string{
		"property":                   pageOf(`{` + keys + `,"A":1,"A":1}`),
		"property nobody wants":      pageOf(`{` + keys + `,"Z":1,"Z":1}`),
		"property, one of them null": pageOf(`{` + keys + `,"A":null,"A":1}`),
		"property, later row":        pageOf(good, good, `{`+keys+`,"A":1,"B@odata.type":"Edm.Int64","B":"2","A":1}`),
		"property, escaped":          pageOf(`{` + keys + `,"A":1,"\u0041":1}`),
		"property, escaped first":    pageOf(`{` + keys + `,"\u0041":1,"A":1}`),
		"annotation":                 pageOf(`{` + keys + `,"B@odata.type":"Edm.Int64","B@odata.type":"Edm.Int64","B":"2"}`),
		"annotation, escaped":        pageOf(`{` + keys + `,"B@odata.type":"Edm.Int64","\u0042@odata.type":"Edm.Int64","B":"2"}`),
		"partition key":              pageOf(`{` + keys + `,"PartitionKey":"p"}`),
		"row key":                    pageOf(`{` + keys + `,"RowKey":"r"}`),
		"timestamp":                  pageOf(`{` + keys + `,"Timestamp":"2026-11-20T08:30:00Z","Timestamp":"2026-11-20T08:30:00Z"}`),
		"ETag":                       pageOf(`{` + keys + `,"odata.etag":"W/\"1\""}`),
		"write id":                   pageOf(`{` + keys + `,"_tpWrite":"a","_tpWrite":"a"}`),
		"metadata":                   pageOf(`{` + keys + `,"odata.id":"a","odata.id":"a"}`),
		"inside of metadata":         pageOf(`{` + keys + `,"odata.id":{"a":1,"a":1}}`),
		"inside of a list":           pageOf(`{` + keys + `,"odata.id":[{"a":1,"a":1}]}`),
		"page":                       `{"value":[],"value":[` + good + `]}`,
		"page, escaped":              `{"value":[],"\u0076alue":[` + good + `]}`,
		"page's metadata":            `{"odata.metadata":"a","value":[],"odata.metadata":"a"}`,
	} {
		for filter, known := range map[string]map[string]int{"all": nil, "some": {"A": 0, "B": 1}} {
			if rows, err := readAll(bad, known); !errors.Is(err, kinds.ErrCutOff) {
				t.Errorf("%s, reading %s: %d rows, %v", name, filter, len(rows), err)
			}
		}
	}
	if rows, err := readAll(pageOf(good, good), nil); err != nil || len(rows) != 2 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// TestReadRowsOfManyShapes reads pages whose rows have properties, orders and annotations of their own, so that the
// guess of the next name is wrong as often as right.
func TestReadRowsOfManyShapes(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for round := range 200 {
		names := 3 + random.IntN(3*fewNames)
		var texts []string
		var want []entity.Properties
		for row := range 8 {
			text, properties := randomRow(random, names, row)
			texts, want = append(texts, text), append(want, properties)
		}
		rows, err := readAll(pageOf(texts...), nil)
		if err != nil || len(rows) != len(want) {
			t.Fatalf("round %d: %d rows, %v", round, len(rows), err)
		}
		for i, row := range rows {
			if row.Key.Row != fmt.Sprint(i) || len(row.Properties) != len(want[i]) {
				t.Fatalf("round %d, row %d: %d properties of %q, want %d", round, i, len(row.Properties), row.Key.Row, len(want[i]))
			}
			for _, p := range want[i] {
				assert.Equal(assert.Fatal(t), row.Properties.Get(p.Name), p.Value, "round %d, row %d: %s", round, i, p.Name)
			}
		}
	}
}

// randomRow makes a row of some of the names N0 to Nn, in any order, now and then escaped or annotated behind.
func randomRow(random *rand.Rand, names, row int) (string, entity.Properties) {
	members := []string{`"odata.etag":"W/\"1\"","PartitionKey":"p"`, fmt.Sprintf(`"RowKey":"%d"`, row)}
	var properties entity.Properties
	for _, n := range random.Perm(names)[:random.IntN(names)] {
		name := fmt.Sprintf("N%d", n)
		quoted := name
		if random.IntN(10) == 0 {
			quoted = `\u004e` + name[1:]
		}
		switch value := random.Int32N(1000); random.IntN(4) {
		case 0:
			members = append(members, fmt.Sprintf(`"%s":%d`, quoted, value))
			properties = append(properties, entity.Property{Name: name, Value: entity.Int32(value)})
		case 1:
			members = append(members, fmt.Sprintf(`"%s@odata.type":"Edm.Int64","%s":"%d"`, name, quoted, value))
			properties = append(properties, entity.Property{Name: name, Value: entity.Int64(int64(value))})
		case 2:
			members = append(members, fmt.Sprintf(`"%s":"%d","%s@odata.type":"Edm.Int64"`, name, value, quoted))
			properties = append(properties, entity.Property{Name: name, Value: entity.Int64(int64(value))})
		case 3:
			members = append(members, fmt.Sprintf(`"%s@odata.type":"Edm.Guid","%s":null`, quoted, name))
		}
	}
	return "{" + strings.Join(members, ",") + "}", properties
}

// TestReadGoesOn: a value that cannot be read is the problem of its row, and half of a surrogate pair a loss of it.
func TestReadGoesOn(t *testing.T) {
	const keys = `"odata.etag":"W/\"1\"","PartitionKey":"p","RowKey":"r"`
	good := `{` + keys + `,"A":1,"B@odata.type":"Edm.Int64","B":"2"}`
	for name, c := range map[string]struct {
		row            string
		problem, lossy bool
	}{
		"not a number":             {`{` + keys + `,"B@odata.type":"Edm.Int64","B":"two","A":1}`, true, false},
		"no such type":             {`{` + keys + `,"B@odata.type":"Edm.Decimal","B":"2","A":1}`, true, false},
		"an object":                {`{` + keys + `,"B":{"x":1},"A":1}`, true, false},
		"a wrong type behind":      {`{` + keys + `,"B":"two","B@odata.type":"Edm.Guid","A":1}`, true, false},
		"a timestamp":              {`{` + keys + `,"Timestamp":"yesterday","A":1}`, true, false},
		"an own property":          {`{` + keys + `,"_tpPrimary":5,"A":1}`, true, false},
		"half a pair, the first":   {`{` + keys + `,"B":"x\ud83dy","A":1}`, false, true},
		"half a pair, the second":  {`{` + keys + `,"B":"x\uDE00","A":1}`, false, true},
		"a whole pair":             {`{` + keys + `,"B":"x\ud83d\ude00","A":1}`, false, false},
		"half a pair in a key":     {`{"odata.etag":"W/\"1\"","PartitionKey":"p","RowKey":"r\ud83d","A":1}`, true, true},
		"half of one nobody wants": {`{` + keys + `,"A":1,"odata.id":"\ud83d"}`, false, false},
	} {
		rows, err := readAll(pageOf(good, c.row, good), nil)
		if err != nil || len(rows) != 3 {
			t.Errorf("%s: %d rows, %v", name, len(rows), err)
			continue
		}
		if row := rows[1]; (row.Problem != nil) != c.problem || row.Lossy != c.lossy {
			t.Errorf("%s: %+v", name, row)
		} else if row.Properties.Get("A") != entity.Int32(1) {
			t.Errorf("%s: what stands behind is lost: %+v", name, row)
		}
		if rows[0].Problem != nil || rows[2].Problem != nil || rows[0].Lossy || rows[2].Lossy || len(rows[2].Properties) != 2 {
			t.Errorf("%s: the rows beside it: %+v", name, rows)
		}
	}
	for name, bad := range map[string]string{
		"a key that is no text": `{"odata.etag":"W/\"1\"","PartitionKey":"p","RowKey":5}`,
		"invalid UTF-8":         `{` + keys + `,"A":"\ud83d","B":"` + "\xff" + `"}`,
		"a name twice":          `{` + keys + `,"A":{"x":1},"A":2}`,
		"no ETag":               `{"PartitionKey":"p","RowKey":"r","A":{"x":1}}`,
	} {
		if rows, err := readAll(pageOf(good, bad), nil); !errors.Is(err, kinds.ErrCutOff) {
			t.Errorf("%s: %d rows, %v", name, len(rows), err)
		}
	}
}

// TestRowsShareNothingWithTheAnswer overwrites each answer behind its reader, whose memory the next one uses: what was read stays.
func TestRowsShareNothingWithTheAnswer(t *testing.T) {
	row := func(i int) string {
		return fmt.Sprintf(`{"odata.etag":"W/\"%d\"","PartitionKey":"p%d","RowKey":"r%d","_tpWrite":"w%d","N%d":"plain","E":"escaped\n%d","L":%q,"B@odata.type":"Edm.Binary","B":"YWJj"}`,
			i, i, i, i, i, i, strings.Repeat(fmt.Sprint(i), 2*longText))
	}
	known := map[string]int{"E": 0, "L": 1, "B": 2}
	var rows []tablerow.Row
	for i := range 3 * manyNames {
		answer := []byte(pageOf(row(i), row(i)))
		reader := New(answer, nil)
		switch i % 3 {
		case 1:
			reader = New(answer, known)
		case 2:
			reader = NewPlain(answer)
		}
		err := reader.Page(func(row *tablerow.Row) error {
			rows = append(rows, *row.Clone())
			return nil
		})
		assert.Check(t, err)
		for j := range answer {
			answer[j] = '!'
		}
	}
	for n, got := range rows {
		i := n / 2
		want := entity.Properties{{Name: fmt.Sprintf("N%d", i), Value: entity.String("plain")}, {Name: "E", Value: entity.String(fmt.Sprintf("escaped\n%d", i))},
			{Name: "L", Value: entity.String(strings.Repeat(fmt.Sprint(i), 2*longText))}, {Name: "B", Value: entity.Binary([]byte("abc"))}}
		write := fmt.Sprintf("w%d", i)
		switch i % 3 {
		case 1:
			want = want[1:]
		case 2:
			want, write = append(entity.Properties{{Name: "_tpWrite", Value: entity.String(write)}}, want...), ""
		}
		if string(got.ETag) != fmt.Sprintf(`W/"%d"`, i) || got.Key.Partition != fmt.Sprintf("p%d", i) || got.Key.Row != fmt.Sprintf("r%d", i) || got.WriteID != write || !slices.Equal(got.Properties, want) {
			t.Fatalf("row %d is %+v, want properties %+v", n, got, want)
		}
	}
}

// FuzzReadIsStrict holds that what is not JSON by the strict reading, repeated names included, is never accepted.
func FuzzReadIsStrict(f *testing.F) {
	row := `{"odata.etag":"W/\"1\"","PartitionKey":"p","RowKey":"r","Timestamp":"2026-11-20T08:30:00.1Z","A":1,"B@odata.type":"Edm.Int64","B":"2","C":1.5}`
	f.Add(pageOf())
	f.Add(pageOf(row, row))
	f.Add(pageOf(row, `{"odata.etag":"W/\"1\"","PartitionKey":"p","RowKey":"r","\u0041":true,"D":null,"odata.x":{"a":[1]}}`))
	f.Add(`{"odata.metadata":"m","value":[` + row + `],"odata.nextLink":{"a":1}}`)
	f.Fuzz(func(t *testing.T, answer string) {
		halves := strings.Contains(answer, `\ud`) || strings.Contains(answer, `\uD`)
		valid := jsontext.Value(answer).IsValid(jsontext.AllowInvalidUTF8(halves)) && utf8.ValidString(answer)
		for _, known := range []map[string]int{nil, {"A": 0, "B": 1}} {
			if rows, err := readAll(answer, known); err == nil && !valid {
				t.Errorf("%d rows were read", len(rows))
			} else if err != nil && !errors.Is(err, kinds.ErrCutOff) {
				t.Errorf("the error is %v", err)
			}
		}
	})
}
