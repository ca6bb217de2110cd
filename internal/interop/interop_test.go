package interop

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/interop/jsclient"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

//go:embed script.js
var script string

const (
	hardPartition = "O'Brien & Söhne %2F+"
	typesRow      = "types"
	namesRow      = "names"
)

// rows are what every client writes: values of every type, hard names, and hard keys. On Azurite they lack what it refuses or garbles.
func rows(azurite bool) []row {
	ofTypes, long, wide := map[string]value{}, map[string]value{}, map[string]value{}
	for name, v := range extremes() {
		switch {
		case len(v.Text) < 1000:
			ofTypes[name] = v
		case v.Type == "String" && v.Text[0] != 'x':
			wide[name] = v
		default:
			long[name] = v
		}
	}
	ofTypes["P"], ofTypes["R"] = value{"String", hardPartition}, value{"String", typesRow}
	ofNames := map[string]value{}
	for i, name := range names() {
		if azurite && slices.Contains(azuriteNames, name) {
			continue
		}
		ofNames[name] = value{"Int32", strconv.Itoa(i)}
	}
	all := []row{{hardPartition, typesRow, ofTypes}, {hardPartition, namesRow, ofNames}, {hardPartition, "long", long}}
	if !azurite { // which decodes bodies chunk by chunk, and so spoils a character that lies on a cut
		all = append(all, row{hardPartition, "wide", wide})
	}
	for _, key := range keys() {
		all = append(all, row{"keys", key, map[string]value{"Key": {"String", key}}}, row{key, "of a partition", map[string]value{"Key": {"String", key}}})
	}
	return all
}

// azuriteNames are names of properties that Azurite loses, or answers with status 500: those of members that every object of JavaScript has.
var azuriteNames = []string{"toString", "hasOwnProperty", "constructor", "valueOf"}

// isAzurite reports whether a service is Azurite, whose account has a name of its own.
func isAzurite(s *storagetest.Service) bool { return s.AccountName == "devstoreaccount1" }

// normal returns the one form of a value: equal values have equal forms. A client of JavaScript, or one that has parsed and written JSON,
// returns a whole Double as a number without a type: want says what it is.
func normal(v value, want string) (value, error) {
	if v.Type == "Int32" && want == "Double" {
		v.Type = want
	}
	switch v.Type {
	case "Double":
		f, err := strconv.ParseFloat(v.Text, 64)
		return value{v.Type, strconv.FormatFloat(f, 'g', -1, 64)}, err
	case "DateTime":
		at, err := time.Parse(time.RFC3339Nano, v.Text)
		return value{v.Type, at.UTC().Format(time.RFC3339Nano)}, err
	case "Guid":
		return value{v.Type, strings.ToLower(v.Text)}, nil
	}
	return v, nil
}

// lostByJavaScript is a name of a property that @azure/data-tables takes for the ETag: it writes no such property, and reads none.
const lostByJavaScript = "etag"

// withoutLost returns rows as JavaScript writes and reads them. compare then also requires that it still does so.
func withoutLost(all []row) (rest []row) {
	for _, r := range all {
		r.Properties = maps.Clone(r.Properties)
		delete(r.Properties, lostByJavaScript)
		rest = append(rest, r)
	}
	return rest
}

// ownProperty begins the names of properties that this library adds to what it writes.
const ownProperty = "_tp"

// withoutOwn removes the properties that this library adds, of which each row that it wrote has one.
func withoutOwn(writer string, all []row) (rest []row, failure error) {
	for _, r := range all {
		n := len(r.Properties)
		r.Properties = maps.Clone(r.Properties)
		maps.DeleteFunc(r.Properties, func(name string, _ value) bool { return strings.HasPrefix(name, ownProperty) })
		if n -= len(r.Properties); (n == 1) != (writer == "ours") || n > 1 {
			failure = fmt.Errorf("row (%q, %q) has %d properties of the library", r.Partition, r.Row, n)
		}
		rest = append(rest, r)
	}
	return rest, failure
}

// compare returns the differences of what a client has read, and how many values it has compared.
func compare(got, want []row) (differences []string, values int) {
	found := map[[2]string]row{}
	for _, r := range got {
		found[[2]string{r.Partition, r.Row}] = r
	}
	for _, w := range want {
		g, ok := found[[2]string{w.Partition, w.Row}]
		if !ok {
			differences = append(differences, fmt.Sprintf("row (%.40q, %.40q) is missing", w.Partition, w.Row))
			continue
		}
		for name, v := range w.Properties {
			values++
			wanted, err := normal(v, v.Type)
			read, err2 := normal(g.Properties[name], v.Type)
			if err != nil || err2 != nil || read != wanted {
				differences = append(differences, fmt.Sprintf("row (%.40q, %.40q), property %.40q: %s %.60q, want %s %.60q (%v %v)", w.Partition, w.Row, name, read.Type, read.Text, wanted.Type, wanted.Text, err, err2))
			}
		}
		if len(g.Properties) != len(w.Properties) {
			differences = append(differences, fmt.Sprintf("row (%.40q, %.40q) has %d properties, want %d", w.Partition, w.Row, len(g.Properties), len(w.Properties)))
		}
	}
	if len(found) != len(want) {
		differences = append(differences, fmt.Sprintf("%d rows, want %d", len(found), len(want)))
	}
	slices.Sort(differences)
	return differences, values
}

// ours returns a value of this library.
func ours(v value) (tables.Value, error) {
	switch v.Type {
	case "Boolean":
		return tables.Boolean(v.Text == "true"), nil
	case "Int32":
		n, err := strconv.ParseInt(v.Text, 10, 32)
		return tables.Int32(int32(n)), err
	case "Int64":
		n, err := strconv.ParseInt(v.Text, 10, 64)
		return tables.Int64(n), err
	case "Double":
		f, err := strconv.ParseFloat(v.Text, 64)
		return tables.Double(f), err
	case "DateTime":
		at, err := time.Parse(time.RFC3339Nano, v.Text)
		if err != nil {
			return tables.Value{}, err
		}
		return tables.DateTime(at)
	case "Guid":
		id, err := uuid.Parse(v.Text)
		return tables.GUID(id), err
	case "Binary":
		content, err := base64.StdEncoding.DecodeString(v.Text)
		return tables.Binary(content), err
	}
	return tables.String(v.Text), nil
}

// textOf returns what this library has read.
func textOf(v tables.Value) value {
	switch x := v.Any().(type) {
	case bool:
		return value{"Boolean", strconv.FormatBool(x)}
	case int32:
		return value{"Int32", fmt.Sprint(x)}
	case int64:
		return value{"Int64", fmt.Sprint(x)}
	case float64:
		return value{"Double", strconv.FormatFloat(x, 'g', -1, 64)}
	case time.Time:
		return value{"DateTime", x.Format(time.RFC3339Nano)}
	case uuid.UUID:
		return value{"Guid", x.String()}
	case []byte:
		return value{"Binary", base64.StdEncoding.EncodeToString(x)}
	case string:
		return value{"String", x}
	}
	return value{fmt.Sprintf("%T", v.Any()), ""}
}

func writeOurs(ctx context.Context, table *tables.Table, all []row) error {
	for _, r := range all {
		e := &tables.Entity{Key: tables.Key{Partition: r.Partition, Row: r.Row}}
		for _, name := range slices.Sorted(maps.Keys(r.Properties)) {
			v, err := ours(r.Properties[name])
			if err != nil {
				return err
			}
			e.Set(name, v)
		}
		if err := table.Entities().Insert(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

func rowOf(e *tables.Entity) row {
	r := row{e.Key.Partition, e.Key.Row, map[string]value{}}
	for _, p := range e.Properties {
		r.Properties[p.Name] = textOf(p.Value)
	}
	return r
}

// readOurs reads all rows by a query, and each row by its key.
func readOurs(ctx context.Context, table *tables.Table, all []row) (queried, got []row, err error) {
	for e, err := range table.Entities().Query().AllowTableScan().All(ctx) {
		if err != nil {
			return nil, nil, err
		}
		queried = append(queried, rowOf(e))
	}
	for _, r := range all {
		e, err := table.Entities().Get(ctx, tables.Key{Partition: r.Partition, Row: r.Row})
		if err != nil {
			return nil, nil, err
		}
		got = append(got, rowOf(e))
	}
	return queried, got, nil
}

// writeBare writes with aztables alone, in its own JSON.
func writeBare(ctx context.Context, client *aztables.Client, all []row) error {
	for _, r := range all {
		entity := map[string]any{"PartitionKey": r.Partition, "RowKey": r.Row}
		for name, v := range r.Properties {
			switch v.Type {
			case "String":
				entity[name] = v.Text
			case "Boolean":
				entity[name] = v.Text == "true"
			case "Int32":
				entity[name] = json.Number(v.Text)
			default:
				entity[name], entity[name+"@odata.type"] = v.Text, "Edm."+v.Type
			}
		}
		text, err := json.Marshal(entity)
		if err == nil {
			_, err = client.AddEntity(ctx, text, nil)
		}
		if err != nil {
			return fmt.Errorf("row (%q, %q): %w", r.Partition, r.Row, err)
		}
	}
	return nil
}

// readBare reads with aztables alone.
func readBare(ctx context.Context, client *aztables.Client) (all []row, err error) {
	for pager := client.NewListEntitiesPager(nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, text := range page.Entities {
			var entity map[string]any
			decoder := json.NewDecoder(bytes.NewReader(text))
			decoder.UseNumber()
			if err := decoder.Decode(&entity); err != nil {
				return nil, err
			}
			r := row{fmt.Sprint(entity["PartitionKey"]), fmt.Sprint(entity["RowKey"]), map[string]value{}}
			for name, v := range entity {
				annotation, _ := entity[name+"@odata.type"].(string)
				switch x := v.(type) {
				case nil:
				case bool:
					r.Properties[name] = value{"Boolean", strconv.FormatBool(x)}
				case json.Number:
					kind := "Int32"
					if strings.ContainsAny(x.String(), ".eE") || annotation == "Edm.Double" {
						kind = "Double"
					}
					r.Properties[name] = value{kind, x.String()}
				case string:
					kind := "String"
					if annotation != "" {
						kind = strings.TrimPrefix(annotation, "Edm.")
					}
					r.Properties[name] = value{kind, x}
				}
			}
			for name := range r.Properties {
				if strings.Contains(name, "odata.") || slices.Contains([]string{"PartitionKey", "RowKey", "Timestamp"}, name) {
					delete(r.Properties, name)
				}
			}
			all = append(all, r)
		}
	}
	return all, nil
}

// typed has a field of each type for properties of the row of types.
type typed struct {
	tables.Meta
	P, R     string
	True     bool
	Guid     uuid.UUID
	Binary   []byte    `table:"BinaryZero"`
	MinInt32 int32     `table:"Int32013"`
	MinInt64 int64     `table:"Int64023"`
	Denormal float64   `table:"Double031"`
	Last     time.Time `table:"DateTime043"`
	Empty    string    `table:"String053"`
}

// readTyped reads the row of types as a struct, with Rows and with a repository.
func readTyped(ctx context.Context, table *tables.Table) (all []typed, err error) {
	key := tables.Key{Partition: hardPartition, Row: typesRow}
	type raw struct {
		PartitionKey, RowKey string
		typed
	}
	flat, err := tables.RowsOf[raw](table)
	if err != nil {
		return nil, err
	}
	v, err := flat.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	repo, err := patterns.NewRepository(table, patterns.Schema[typed]{Key: func(v *typed) tables.Key { return tables.Key{Partition: v.P, Row: v.R} }})
	if err != nil {
		return nil, err
	}
	e, err := repo.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	return []typed{v.typed, *e}, nil
}

// TestClients: what each of @azure/data-tables, aztables alone and this library writes, each of them reads without a difference, on Azurite and
// on the simulator.
func TestClients(t *testing.T) {
	for name, s := range map[string]*storagetest.Service{"service of the run": storagetest.Open(t), "simulator": storagetest.Simulator(t, nil)} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			a := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
			credential := assert.Must[*aztables.SharedKeyCredential](t)(aztables.NewSharedKeyCredential(s.AccountName, s.AccountKey))
			bare := assert.Must[*aztables.ServiceClient](t)(aztables.NewServiceClientWithSharedKey(s.TableEndpoint, credential, &aztables.ClientOptions{ClientOptions: s.ClientOptions}))
			all := rows(isAzurite(s))
			tablesOf := map[string]*tables.Table{}
			type read struct {
				Table string      `json:"table"`
				Keys  [][2]string `json:"keys,omitempty"`
			}
			var reads []read
			for _, writer := range []string{"js", "bare", "ours"} {
				table := a.Table(s.TableName(t))
				assert.Check(t, table.Create(ctx))
				tablesOf[writer] = table
				r := read{Table: table.Name()}
				for _, x := range all {
					r.Keys = append(r.Keys, [2]string{x.Partition, x.Row})
				}
				reads = append(reads, r)
			}
			assert.Check(t, writeOurs(ctx, tablesOf["ours"], all), writeBare(ctx, bare.NewClient(tablesOf["bare"].Name()), all))
			input := assert.Must[[]byte](t)(json.Marshal(map[string]any{"write": []any{map[string]any{"table": tablesOf["js"].Name(), "rows": all}}, "read": reads}))
			var byJS map[string][]row
			assert.Check(t, json.Unmarshal(jsclient.Run(t, s, script, input), &byJS))
			total := 0
			for _, writer := range slices.Sorted(maps.Keys(tablesOf)) {
				table := tablesOf[writer]
				queried, got, err := readOurs(ctx, table, all)
				assert.Check(t, err)
				js := byJS[table.Name()]
				if len(js) != 2*len(all) {
					t.Errorf("written by %s: JavaScript has read %d rows, want %d by query and as many by key", writer, len(js), len(all))
					continue
				}
				for reader, found := range map[string][]row{"our query": queried, "our Get": got, "JavaScript's query": js[:len(all)], "JavaScript's get": js[len(all):],
					"aztables alone": assert.Must[[]row](t)(readBare(ctx, bare.NewClient(table.Name())))} {
					want := all
					if strings.HasPrefix(reader, "JavaScript") || writer == "js" {
						want = withoutLost(all)
					}
					if !strings.HasPrefix(reader, "our") { // which does not see them
						var err error
						found, err = withoutOwn(writer, found)
						assert.Check(t, err)
					}
					differences, values := compare(found, want)
					total += values
					for _, d := range differences {
						t.Errorf("written by %s, read by %s: %s", writer, reader, d)
					}
				}
				structs := assert.Must[[]typed](t)(readTyped(ctx, table))
				for _, v := range structs {
					e := assert.Must[*tables.Entity](t)(table.Entities().Get(ctx, tables.Key{Partition: hardPartition, Row: typesRow}))
					for name, field := range map[string]any{"P": v.P, "R": v.R, "True": v.True, "Guid": v.Guid, "Int32013": v.MinInt32, "Int64023": v.MinInt64, "Double031": v.Denormal, "String053": v.Empty} {
						if total++; e.Get(name).Any() != field {
							t.Errorf("written by %s: field of %s is %v, want %v", writer, name, field, e.Get(name))
						}
					}
					content, _ := e.Get("BinaryZero").Bytes()
					at, _ := e.Get("DateTime043").Time()
					if total += 2; !bytes.Equal(content, v.Binary) || !at.Equal(v.Last) {
						t.Errorf("written by %s: the fields of binary and time differ", writer)
					}
				}
			}
			t.Logf("%d values compared: 3 writers, 5 readers, %d rows, %d values of types, %d keys, %d names", total, len(all), len(extremes()), len(keys()), len(names()))
			if total < 3*5*len(all) {
				t.Errorf("only %d values were compared", total)
			}
		})
	}
}

// TestAzuritesLimits: what TestClients leaves out on Azurite, Azurite still refuses or loses, and the simulator, as the service, does not.
func TestAzuritesLimits(t *testing.T) {
	s := storagetest.Open(t).WithRetries(-1)
	a := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
	table := a.Table(s.TableName(t))
	assert.Check(t, table.Create(t.Context()))
	for _, name := range azuriteNames {
		e := &tables.Entity{Key: tables.Key{Partition: "names", Row: name}}
		e.Set(name, tables.Int32(1))
		err := table.Entities().Insert(t.Context(), e)
		if err == nil {
			e, err = table.Entities().Get(t.Context(), e.Key)
		}
		if kept := err == nil && e.Get(name) == tables.Int32(1); kept == isAzurite(s) {
			t.Errorf("property %q is kept: %v, %v", name, kept, err)
		}
	}
	spoiled := 0
	for i := range 20 {
		_, err := a.TableService().NewClient(table.Name()).AddEntity(t.Context(), fmt.Appendf(nil, `{"PartitionKey":"wide","RowKey":"%d","S":"%s"}`, i, strings.Repeat("😀", 1<<14)), nil)
		if err != nil { // the two halves of a character that was cut are more than it was
			spoiled++
		}
	}
	if (spoiled > 0) != isAzurite(s) {
		t.Errorf("%d of 20 strings of wide characters were refused", spoiled)
	}
	t.Logf("%d of 20 strings of wide characters were refused", spoiled)
}

// TestCompare: a value, a type, a property or a row that differs is found.
func TestCompare(t *testing.T) {
	want := []row{{"p", "r", map[string]value{"A": {"Double", "3"}, "B": {"Guid", "AB"}}}}
	for text, c := range map[string]struct {
		got   []row
		count int
	}{
		"the same":   {[]row{{"p", "r", map[string]value{"A": {"Int32", "3"}, "B": {"Guid", "ab"}}}}, 0},
		"a value":    {[]row{{"p", "r", map[string]value{"A": {"Double", "4"}, "B": {"Guid", "ab"}}}}, 1},
		"a type":     {[]row{{"p", "r", map[string]value{"A": {"String", "3"}, "B": {"Guid", "ab"}}}}, 1},
		"a property": {[]row{{"p", "r", map[string]value{"A": {"Double", "3"}, "B": {"Guid", "ab"}, "C": {"Int32", "1"}}}}, 1},
		"a row":      {nil, 2},
	} {
		if differences, _ := compare(c.got, want); len(differences) != c.count {
			t.Errorf("%s: %q, want %d differences", text, differences, c.count)
		}
	}
}
