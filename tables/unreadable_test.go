package tables_test

import (
	"errors"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// grade is an enumeration as generators write it: the text of its zero value does not parse.
type grade int

func (g grade) MarshalText() ([]byte, error) {
	if g == 1 {
		return []byte("low"), nil
	}
	return []byte("grade(s3cr3t)"), nil
}

func (g *grade) UnmarshalText(text []byte) error {
	if string(text) != "low" {
		return errors.New("unknown grade s3cr3t")
	}
	*g = 1
	return nil
}

// vault encodes itself as JSON that it does not decode.
type vault struct{}

func (vault) MarshalJSON() ([]byte, error) { return []byte(`"s3cr3t"`), nil }
func (*vault) UnmarshalJSON([]byte) error  { return errors.New("no s3cr3t") }

type shape interface{ Area() float64 }

type square struct{ Side float64 }

func (s square) Area() float64 { return s.Side * s.Side }

// nested is JSON of n levels.
type nested struct{ Next *nested }

func deep(n int) *nested {
	var v *nested
	for range n {
		v = &nested{v}
	}
	return v
}

// stored makes a row of one field.
type stored[V any] struct {
	tables.Meta
	PartitionKey, RowKey string
	V                    V
}

// refusesUnreadable fails unless every write path refuses a value that could not be read back, without a request.
func refusesUnreadable[T any](t *testing.T, v *T, property string) {
	t.Helper()
	ctx := t.Context()
	a, requests := harness.Counted(t)
	rows := assert.Must[*tables.Rows[T]](t)(tables.RowsOf[T](a.Table("Unreadable")))
	codec := assert.Must[*tables.Codec[T]](t)(tables.NewCodec[T]())
	bulk := func(verb tables.BulkVerb, names ...string) error {
		_, err := rows.BulkNonAtomic(ctx, func(yield func(*T, error) bool) { yield(v, nil) }, &tables.BulkOptions{Verb: verb, Properties: names})
		return err
	}
	_, encode := codec.Encode(v)
	_, some := codec.EncodeOnly(v, []string{property})
	_, bag := rows.Entity(v)
	for what, err := range map[string]error{
		"Encode": encode, "EncodeOnly": some, "Entity": bag,
		"Insert": rows.Insert(ctx, v), "Replace": rows.Replace(ctx, v), "ReplaceUnconditional": rows.ReplaceUnconditional(ctx, v), "Upsert": rows.Upsert(ctx, v),
		"Merge": rows.Merge(ctx, v), "MergeUnconditional": rows.MergeUnconditional(ctx, v), "UpsertMerge": rows.UpsertMerge(ctx, v, property),
		"BulkInsert": bulk(tables.BulkInsert), "BulkReplace": bulk(tables.BulkReplace), "BulkMerge": bulk(tables.BulkMerge, property),
		"BulkUpsert": bulk(tables.BulkUpsert), "BulkUpsertMerge": bulk(tables.BulkUpsertMerge),
	} {
		e := harness.WantKind(t, err, tables.ErrInvalid)
		if text := e.Error(); strings.Contains(text, "s3cr3t") || strings.Contains(text, "stored data") || !strings.Contains(text, "property "+property) {
			t.Errorf("%s of %T: %v", what, v, text)
		}
	}
	assert.Equal(t, requests.Load(), 0, "%T: requests", v)
}

// TestUnreadableValuesAreRefused: a value whose own encoding could not be decoded is refused by every write path.
func TestUnreadableValuesAreRefused(t *testing.T) {
	meta := tables.Meta{ETag: `W/"1"`}
	refusesUnreadable(t, &stored[uuid.NullUUID]{Meta: meta}, "V")
	refusesUnreadable(t, &stored[*uuid.NullUUID]{Meta: meta, V: &uuid.NullUUID{}}, "V")
	refusesUnreadable(t, &stored[grade]{Meta: meta}, "V")
	type wrapped[V any] struct {
		tables.Meta
		PartitionKey, RowKey string
		V                    V `table:",json"`
	}
	refusesUnreadable(t, &wrapped[shape]{Meta: meta, V: square{2}}, "V")
	refusesUnreadable(t, &wrapped[[]shape]{Meta: meta, V: []shape{square{2}}}, "V")
	refusesUnreadable(t, &wrapped[map[string]grade]{Meta: meta, V: map[string]grade{"a": 0}}, "V")
	refusesUnreadable(t, &wrapped[map[grade]int]{Meta: meta, V: map[grade]int{0: 1}}, "V")
	refusesUnreadable(t, &wrapped[vault]{Meta: meta}, "V")
	refusesUnreadable(t, &wrapped[*nested]{Meta: meta, V: deep(10001)}, "V")
	refusesUnreadable(t, &wrapped[float64]{Meta: meta, V: math.NaN()}, "V")
	refusesUnreadable(t, &wrapped[time.Time]{Meta: meta, V: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, "V")
}

// TestReadableOptionalValues: the zero value of such a type is stored as no property if its field says so, and each other value as before.
func TestReadableOptionalValues(t *testing.T) {
	type optional struct {
		Owner uuid.NullUUID  `table:",omitzero"`
		Other *uuid.NullUUID // nil for none
		Grade grade          `table:",omitzero"`
		Shape shape          `table:",json"` // null reads back as nil
	}
	codec := assert.Must[*tables.Codec[optional]](t)(tables.NewCodec[optional]())
	owner := uuid.NullUUID{UUID: uuid.Max, Valid: true}
	for _, in := range []optional{{}, {Owner: owner, Other: &owner, Grade: 1}} {
		var out optional
		assert.Check(t, codec.Decode(assert.Must[tables.Properties](t)(codec.Encode(&in)), &out))
		assert.NoDiff(t, equal(in, out))
	}
}

// task has an optional property of each kind.
type task struct {
	tables.Meta
	PartitionKey, RowKey string
	N                    int
	Due                  *time.Time
	Photo                []byte
	Extra                tables.Value
	Note                 string                  `table:",omitempty"`
	At                   time.Time               `table:",omitzero"`
	Rest                 map[string]tables.Value `table:",rest"`
}

func fullTask(row string) *task {
	return &task{PartitionKey: "p", RowKey: row, N: 1, Due: new(time.Unix(0, 0).UTC()), Photo: []byte{1}, Extra: tables.Int32(1), Note: "a", At: time.Unix(1, 0).UTC(),
		Rest: map[string]tables.Value{"Color": tables.String("red")}}
}

// TestMergeOfNoValue: a merge cannot remove a property from the row, so every verb that merges refuses a property without a value,
// named or not, before a request, and leaves the value and its ETag as they are.
func TestMergeOfNoValue(t *testing.T) {
	ctx := t.Context()
	a, requests := harness.Counted(t)
	table := harness.NewTable(t, a)
	rows := assert.Must[*tables.Rows[task]](t)(tables.RowsOf[task](table))
	bulk := func(verb tables.BulkVerb) func(*task, ...string) error {
		return func(v *task, names ...string) error {
			_, err := rows.BulkNonAtomic(ctx, iter.Seq2[*task, error](func(yield func(*task, error) bool) { yield(v, nil) }), &tables.BulkOptions{Verb: verb, Properties: names})
			return err
		}
	}
	verbs := map[string]func(*task, ...string) error{
		"Merge":              func(v *task, names ...string) error { return rows.Merge(ctx, v, names...) },
		"MergeUnconditional": func(v *task, names ...string) error { return rows.MergeUnconditional(ctx, v, names...) },
		"UpsertMerge":        func(v *task, names ...string) error { return rows.UpsertMerge(ctx, v, names...) },
		"BulkMerge":          bulk(tables.BulkMerge),
		"BulkUpsertMerge":    bulk(tables.BulkUpsertMerge),
	}
	for property, unset := range map[string]func(*task){
		"Due": func(v *task) { v.Due = nil }, "Photo": func(v *task) { v.Photo = nil }, "Extra": func(v *task) { v.Extra = tables.Value{} },
		"Note": func(v *task) { v.Note = "" }, "At": func(v *task) { v.At = time.Time{} }, "Color": func(v *task) { v.Rest = map[string]tables.Value{"Color": {}} },
	} {
		for verb, merge := range verbs {
			v := fullTask(verb + property)
			assert.Check(t, rows.Insert(ctx, v))
			assert.Check(t, merge(v)) // all of it
			unset(v)
			etag, before := v.ETag, requests.Load()
			for _, names := range [][]string{nil, {property}, {"N", property, property}} {
				e := harness.WantKind(t, merge(v, names...), tables.ErrInvalid)
				if text := e.Error(); !strings.Contains(text, "property "+property) || !strings.Contains(text, "Replace") {
					t.Errorf("%s of %q: %v", verb, names, text)
				}
			}
			if v.ETag != etag || requests.Load() != before {
				t.Errorf("%s without %s: %d requests, ETag %s after %s", verb, property, requests.Load()-before, v.ETag, etag)
			}
			v.N = 2
			assert.Check(t, merge(v, "N", "N"))
			got := assert.Must[*task](t)(rows.Get(ctx, tables.Key{Partition: "p", Row: v.RowKey}))
			want := fullTask(v.RowKey)
			if want.Meta, want.N = got.Meta, 2; equal(want, got) != "" {
				t.Errorf("%s of N stores %s", verb, equal(want, got))
			}
		}
	}
}

// TestMergeOfNullInBag: the bag's merges follow the same rule, in a Transaction too.
func TestMergeOfNullInBag(t *testing.T) {
	ctx := t.Context()
	a, requests := harness.Counted(t)
	bags := a.Table("Bags").Entities()
	e := &tables.Entity{Key: tables.Key{Partition: "p", Row: "r"}, ETag: `W/"1"`, Properties: tables.Properties{{Name: "A", Value: tables.Int32(1)}, {Name: "B"}}}
	commit := func(stage func(*tables.Transaction, *tables.Entity) int) error {
		x := bags.Table().NewTransaction()
		stage(x, e)
		_, err := x.Commit(ctx)
		return err
	}
	for verb, err := range map[string]error{
		"Merge": bags.Merge(ctx, e), "MergeUnconditional": bags.MergeUnconditional(ctx, e), "UpsertMerge": bags.UpsertMerge(ctx, e), "named": bags.Merge(ctx, e, "B"),
		"missing": bags.Merge(ctx, e, "C"), "staged Merge": commit((*tables.Transaction).Merge),
		"staged MergeUnconditional": commit((*tables.Transaction).MergeUnconditional), "staged UpsertMerge": commit((*tables.Transaction).UpsertMerge),
	} {
		assert.Contains(t, harness.WantKind(t, err, tables.ErrInvalid).Error(), "has no value", verb)
	}
	assert.Equal(t, requests.Load(), 0, "requests")
}

// TestMergeAfterProjection: a struct that was read with Select merges the properties that are named.
func TestMergeAfterProjection(t *testing.T) {
	ctx := t.Context()
	rows := assert.Must[*tables.Rows[task]](t)(tables.RowsOf[task](harness.NewTable(t, harness.Account(t))))
	assert.Check(t, rows.Insert(ctx, fullTask("r")))
	part := assert.Must[*task](t)(rows.Query().Partition("p").Select("N").First(ctx))
	harness.WantKind(t, rows.Merge(ctx, part), tables.ErrInvalid)
	part.N, part.Note = 3, "b"
	assert.Check(t, rows.Merge(ctx, part, "N"))
	got := assert.Must[*task](t)(rows.Get(ctx, tables.Key{Partition: "p", Row: "r"}))
	if got.N != 3 || got.Note != "a" || got.Due == nil || !part.Partial() {
		t.Errorf("stored is %+v", got)
	}
}

// TestBulkNamesWhatCannotBeEncoded: the error of a value that cannot be stored has the value's key.
func TestBulkNamesWhatCannotBeEncoded(t *testing.T) {
	rows := assert.Must[*tables.Rows[stored[grade]]](t)(tables.RowsOf[stored[grade]](harness.NewTable(t, harness.Account(t))))
	var keys []string
	values := func(yield func(*stored[grade], error) bool) {
		_ = yield(&stored[grade]{PartitionKey: "p", RowKey: "1"}, nil) && yield(&stored[grade]{PartitionKey: "p", RowKey: "2", V: 1}, nil)
	}
	report, err := rows.BulkNonAtomic(t.Context(), values, &tables.BulkOptions{Refused: func(e *tables.Error) error {
		keys = append(keys, e.Key.Row)
		return nil
	}})
	if err != nil || report.Written != 1 || !slices.Equal(keys, []string{"1"}) {
		t.Errorf("%v, refused %q, %v", report, keys, err)
	}
}
