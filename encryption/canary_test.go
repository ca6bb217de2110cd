package encryption_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// printed returns every text that a value can be made to give: by the verbs of fmt, in JSON and by slog; and of an error, also
// those of everything that Unwrap returns, at any depth.
func printed(v any) []string {
	var texts []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%p", "%t"} {
		texts = append(texts, fmt.Sprintf(verb, v))
	}
	encoded, err := json.Marshal(v)
	texts = append(texts, string(encoded), fmt.Sprint(err))
	for _, handler := range []func(*bytes.Buffer) slog.Handler{
		func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		var b bytes.Buffer
		slog.New(handler(&b)).Info("x", "v", v, slog.Group("g", "v", v))
		texts = append(texts, b.String())
	}
	switch w := v.(type) {
	case interface{ Unwrap() error }:
		if cause := w.Unwrap(); cause != nil {
			texts = append(texts, printed(cause)...)
		}
	case interface{ Unwrap() []error }:
		for _, cause := range w.Unwrap() {
			if cause != nil {
				texts = append(texts, printed(cause)...)
			}
		}
	}
	return texts
}

// canary is the plaintext that no error may hold.
const canary = "canary-078-05-1120"

// talkative is a type whose errors quote the value, as those of most types do.
type talkative string

func (v talkative) MarshalText() ([]byte, error) {
	if strings.HasPrefix(string(v), "no ") {
		return nil, fmt.Errorf("cannot write %q", string(v))
	}
	return []byte(v), nil
}

func (v *talkative) UnmarshalText(text []byte) error {
	return &quotingError{Value: string(text), Err: fmt.Errorf("cannot read %q", text)}
}

// quotingError keeps the value in a field, as time.ParseError does.
type quotingError struct {
	Value string
	Err   error
}

func (e *quotingError) Error() string { return "cannot read " + e.Value }
func (e *quotingError) Unwrap() error { return e.Err }

type confidant struct {
	tables.Meta
	ID     string
	Spoken talkative       `encrypt:"true"`
	Listed struct{ N int } `table:",json" encrypt:"true"`
}

// TestErrorsHoldNoPlaintext: what the type of an encrypted property says of a value does not come out of any error of the
// library, at any depth.
func TestErrorsHoldNoPlaintext(t *testing.T) {
	w, ctx := worldOn(t, storagetest.Simulator(t, nil)), t.Context()
	table := w.account.Table("Confidants")
	assert.Check(t, table.Create(ctx))
	r := assert.Must[*patterns.Repository[confidant]](t)(patterns.NewRepository(table, patterns.Schema[confidant]{
		Key: func(c *confidant) tables.Key { return tables.Key{Partition: "p", Row: c.ID} },
	}, encryption.New[confidant]("encryption", w.registry, nil)))
	a := loaderIn(t, w, "Confidants", &encryption.Options{Resolver: func(_, _, name string) bool { return name == "Listed" || name == "Spoken" }})
	read := func(id string, p ...tables.Property) error {
		key := tables.Key{Partition: "p", Row: id}
		put(t, table, &tables.Entity{Key: key, Properties: a.stored(t, key, p...)})
		return assert.Err(r.Get(ctx, key))
	}
	errWrite := r.Insert(ctx, &confidant{ID: "1", Spoken: "no " + canary})
	errRead := read("2", text("ID", "2"), text("Spoken", canary), text("Listed", "{}"))
	errJSON := read("3", text("ID", "3"), text("Listed", `{"N":"`+canary+`"}`))
	for what, err := range map[string]error{"a write": errWrite, "a read": errRead, "a read of JSON": errJSON} {
		if err == nil {
			t.Errorf("%s does not fail", what)
			continue
		}
		for _, text := range printed(err) {
			if strings.Contains(text, canary) {
				t.Errorf("%s: the error prints the plaintext: %s", what, text)
				break
			}
		}
		var quoting *quotingError
		if errors.As(err, &quoting) {
			t.Errorf("%s: errors.As finds the type's own error, which holds %q", what, quoting.Value)
		}
	}
}

// TestCanaries: whatever goes wrong, no error of an operation that meets encrypted values and data keys holds either, by any verb, in
// JSON or in a log, at any depth of its chain.
func TestCanaries(t *testing.T) {
	w, ctx := worldOn(t, storagetest.Simulator(t, nil)), t.Context()
	x := w.lookups(t, "Employees", nil)
	e, other := june("Sales", 1), june("Sales", 2)
	e.Number, other.Number = canary, canary+"-2"
	assert.Check(t, x.repo.Insert(ctx, e), x.repo.Insert(ctx, other))
	_, key := w.dataKey(t)
	secrets := []string{canary, string(key), hex.EncodeToString(key), base64.StdEncoding.EncodeToString(key), strings.Trim(fmt.Sprint(key), "[]"), strings.Trim(fmt.Sprintf("%#v", key)[7:], "{}")}
	rows, keys := intrude(t, w.s, "Employees"), intrude(t, w.s, w.keys.Name())
	fresh := func(o *encryption.RegistryOptions) *patterns.Repository[employee] {
		return assert.Must[*patterns.Repository[employee]](t)(employeesOf(w.account.Table("Employees"), w.open(t, w.wrapper, o), nil))
	}
	number := x.beacon.Part(tables.String(canary))
	large, twin := june("Sales", 3), june("Works", 1)
	large.Number, twin.Number = canary+strings.Repeat("x", 70_000), canary
	errs := map[string]error{
		"an insert of what is there": x.repo.Insert(ctx, june("Sales", 1)), "a value that is too large": x.repo.Insert(ctx, large), "a merge": x.repo.Merge(ctx, e, "Number"),
		"a condition":                assert.Err(x.repo.Query().Partition("Sales").Where(tables.Eq("Number", canary)).First(ctx)),
		"a wrapper without the key":  w.open(t, localKey(t, "none", 9), nil).Check(ctx),
		"a key that is not trusted":  fresh(&encryption.RegistryOptions{Trusted: []encryption.DataKeyID{{1}}}).Insert(ctx, june("Sales", 4)),
		"a stream of something else": assert.Err(opened(streamOf(t, w.registry, ""), binding, []byte(canary))),
	}
	rows.copy(t, x.row(t, "near", canary+"-2"), x.row(t, "near", canary))
	errs["a copy of another entity"] = assert.Err(x.near.In("Sales").Get(ctx, number))
	row := rows.read(t, employeeKey("Sales", 1))
	row["Salary"], row["Salary@odata.type"] = canary, "Edm.String"
	rows.put(t, employeeKey("Sales", 1), row)
	errs["a row that was changed"] = assert.Err(x.repo.Get(ctx, employeeKey("Sales", 1)))
	errs["an update of it"] = assert.Err(x.repo.Update(ctx, employeeKey("Sales", 1), func(*employee) error { return nil }))
	found := assert.Must[[]patterns.Finding](t)(harness.Findings(ctx, x.repo.Verify, nil))
	for _, f := range found {
		if f.Err != nil {
			errs[fmt.Sprint("Verify of ", f.Entity)] = f.Err
		}
	}
	for name := range map[string]bool{"Wrapped": true, "Check": true} {
		key := tables.Key{Partition: "datakeys", Row: "current"}
		named, _ := keys.read(t, key)["DataKey"].(string)
		at := tables.Key{Partition: "datakeys", Row: "key_" + named}
		row, intact := keys.read(t, at), keys.read(t, at)
		row[name] = base64.StdEncoding.EncodeToString([]byte(canary))
		keys.put(t, at, row)
		errs["a data key whose "+name+" was changed"] = fresh(nil).Insert(ctx, june("Sales", 5))
		errs["Check with another "+name] = w.open(t, w.wrapper, nil).Check(ctx)
		errs["a read with another "+name] = assert.Err(fresh(nil).Get(ctx, employeeKey("Sales", 2)))
		keys.put(t, at, intact)
	}
	tried := 0
	for what, err := range errs {
		if err == nil {
			t.Errorf("%s is no error", what)
			continue
		}
		for _, text := range printed(err) {
			tried++
			for _, secret := range secrets {
				if strings.Contains(text, secret) {
					t.Errorf("%s: a secret is printed: %s", what, text)
				}
			}
		}
	}
	t.Logf("%d texts of %d errors, 0 secrets", tried, len(errs))
	if tried < 200 {
		t.Errorf("only %d texts", tried)
	}
}
