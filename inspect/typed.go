package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/fields"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/tables"
)

// As is Table, and also reports how the struct T would read the entities: rows that T cannot read, fields that would get a zero value because the
// row lacks the property, and properties that a Replace would remove. T needs no tables.Meta. Requests: those of Table.
func As[T any](ctx context.Context, table *tables.Table, options *Options) (*Report, error) {
	const op = "inspect.As"
	j, err := newTypeJudge[T](op, table)
	if err != nil {
		return nil, err
	}
	return inspect(ctx, op, table, options, j)
}

type typeJudge[T any] struct {
	codec   *tables.Codec[T]
	fields  []fields.Field
	rest    bool
	known   map[string]bool
	absent  []int64 // entities without the property, by field
	unknown map[string]int64

	read, refused int64
	problems      reasons[problem]
}

type problem struct{ property, stored, reason string }

func newTypeJudge[T any](op string, table *tables.Table) (*typeJudge[T], error) {
	codec, err := tables.NewCodec[T]()
	if err != nil {
		return nil, err
	}
	j := &typeJudge[T]{codec: codec, known: map[string]bool{}, unknown: map[string]int64{}}
	typ := reflect.TypeFor[T]()
	if typ == reflect.TypeFor[tables.Entity]() {
		name := ""
		if table != nil {
			name = table.Name()
		}
		return nil, errs.Wiringf(op, name, "T is tables.Entity, which reads every row; call Table")
	}
	plan, err := fields.New(typ)
	if err != nil {
		return nil, errs.Wiringf(op, "", "%w", err)
	}
	j.fields, j.rest = plan.Fields(), plan.HasRest()
	j.absent = make([]int64, len(j.fields))
	for _, f := range j.fields {
		j.known[f.Name] = true
	}
	return j, nil
}

// row implements judge.
func (j *typeJudge[T]) row(_ context.Context, row *tablerow.Row, k kind) error {
	if k == isEntity {
		j.value(row)
	}
	return nil
}

// value decodes an entity; nil if T cannot read it, with the reasons recorded.
func (j *typeJudge[T]) value(row *tablerow.Row) *T {
	p := row.Properties
	present := 0
	for _, each := range p {
		if j.known[each.Name] {
			present++
		} else if !j.rest && (len(j.unknown) < defaultProperties || j.unknown[each.Name] > 0) {
			j.unknown[each.Name]++
		}
	}
	if present < len(j.fields) {
		for i, f := range j.fields {
			if !p.Has(f.Name) {
				j.absent[i]++
			}
		}
	}
	v := new(T)
	if j.codec.Decode(p, v) == nil {
		j.read++
		return v
	}
	j.refused++
	for i := range p {
		if err := j.codec.Decode(p[i:i+1], new(T)); err != nil {
			j.problems.add(problem{p[i].Name, p[i].Value.Type().String(), reasonOf(err)}, row.Key)
		}
	}
	return nil
}

// reasonOf omits operation and key.
func reasonOf(err error) string {
	if e, ok := errors.AsType[*tables.Error](err); ok && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}

func (j *typeJudge[T]) garbled(e *tables.Error) {
	j.refused++
	j.problems.add(problem{reason: reasonOf(e)}, e.Key)
}

func (j *typeJudge[T]) page() {}

func (j *typeJudge[T]) confirm(context.Context, *scan) error { return nil }

// report implements judge.
func (j *typeJudge[T]) report(r *Report) {
	t := &Type{Name: reflect.TypeFor[T]().String(), Read: j.read, Refused: j.refused, Problems: []Problem{}, OtherProblems: j.problems.other, Zero: []ZeroField{},
		Unknown: []UnknownProperty{}, Rest: j.rest}
	for _, p := range j.problems.list {
		t.Problems = append(t.Problems, Problem{p.of.property, p.of.stored, p.of.reason, p.rows, p.examples})
	}
	slices.SortStableFunc(t.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Property, b.Property), cmp.Compare(a.Stored, b.Stored))
	})
	for i, f := range j.fields {
		if j.absent[i] > 0 && !f.Optional {
			t.Zero = append(t.Zero, ZeroField{f.Field, f.Name, j.absent[i], f.ZeroRefused})
		}
	}
	for name, n := range j.unknown {
		t.Unknown = append(t.Unknown, UnknownProperty{name, n})
	}
	slices.SortFunc(t.Unknown, func(a, b UnknownProperty) int { return cmp.Compare(a.Property, b.Property) })
	r.Type = t
}

// reasons counts rows by at most mostProblems reasons, and all others together.
type reasons[K comparable] struct {
	by    map[K]*reason[K]
	list  []*reason[K]
	other int64
}

type reason[K comparable] struct {
	of       K
	rows     int64
	examples []Key
}

func (r *reasons[K]) add(of K, key tables.Key) {
	found := r.by[of]
	if found == nil {
		if len(r.list) >= mostProblems {
			r.other++
			return
		}
		if r.by == nil {
			r.by = map[K]*reason[K]{}
		}
		found = &reason[K]{of: of}
		r.by[of], r.list = found, append(r.list, found)
	}
	if found.rows++; len(found.examples) < mostExamples {
		found.examples = append(found.examples, keyOf(key))
	}
}

func warn(r *Report) {
	add := func(format string, args ...any) { r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...)) }
	if r.Lossy > 0 {
		add("rows with half of a surrogate pair in a text: %d; it is read as U+FFFD, and a write is refused until the program has corrected the text", r.Lossy)
	}
	if s := r.Schema; s != nil {
		if r.Rows > 0 && s.Own == 0 {
			add("no row of the table is an entity of the repository: the schema's range of row keys fits none of its %d rows", r.Rows)
		}
		if s.OtherKeys > 0 {
			add("entities with another key than Schema.Key returns: %d; a write would make a second row of each", s.OtherKeys)
		}
		if n := int64(len(s.TakenKeys)) + s.OtherTakenKeys; n > 0 {
			add("index keys that two rows or more want: %d; Rebuild fills each for one of the rows", n)
		}
		for _, x := range s.Refused {
			add("entities that the index %s refuses: %d", x.Pattern, x.Rows)
		}
		if s.KeysNotCompared > 0 {
			add("index keys that were not compared with others: %d; raise Options.MaxKeys, or first correct the keys that two rows want", s.KeysNotCompared)
		}
	}
	if t := r.Type; t != nil {
		if t.Refused > 0 {
			add("entities that %s does not read: %d of %d", t.Name, t.Refused, t.Refused+t.Read)
		}
		if len(t.Zero) > 0 {
			add("fields of %s that would turn an absent property into a zero value: %d; make them pointers, or tag them omitzero", t.Name, len(t.Zero))
		}
		if len(t.Unknown) > 0 {
			add("properties without a field in %s, which a Replace would remove: %d; add a field tagged rest", t.Name, len(t.Unknown))
		}
	}
	mixed := 0
	for _, p := range r.Properties {
		if typ, _ := goType(p.Types); typ == "tables.Value" {
			mixed++
		}
	}
	if mixed > 0 {
		add("properties with values of several types that no field reads together: %d; correct the rows, or use a tables.Value", mixed)
	}
	if r.Garbled > 0 {
		add("rows with a value that cannot be read: %d; correct or delete them", r.Garbled)
	}
	if r.OtherProperties > 0 {
		add("names of properties: more than %d, and %d values of others are not listed; raise Options.MaxProperties", len(r.Properties), r.OtherProperties)
	}
}
