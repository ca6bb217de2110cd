package patterns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/patterns/driver"

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/tables"

	"github.com/tablepatterns/tablepatterns/compoundkey"
)

// engine keeps entities of one type, which is not known at compile time: entities are pointers to it. Repository gives it the type.
// One engine serves all types, since the compiler would otherwise make the whole core anew for each.
type engine struct {
	table    *tables.Table
	schema   schema
	host     driver.Host // the repository, as its patterns see it
	codec    *tables.RawCodec
	names    []string      // of the properties that the type stores, nil for any
	primary  tables.Source // of the entities' own rows
	patterns []driver.Pattern

	copies       []driver.CopyContributor
	copyNames    string // of copies, as rows hold them
	rows         []driver.RowContributor
	companions   []driver.CompanionContributor
	outside      []driver.OutsideCopyContributor
	intents      []driver.IntentContributor // Completers last
	completers   []driver.Completer
	rememberers  []driver.Rememberer
	transformers []driver.PropertyTransformer // in order of writing
	layout       driver.Layout
	seals        driver.CopyAuthenticator // nil for none
}

// schema is a Schema whose T is not known at compile time.
type schema struct {
	Name        string
	Key         func(any) tables.Key
	RowPrefix   string
	Intents     driver.IntentRunner
	MaxAttempts int
}

// attach gives the engine to its patterns, each to this repository only.
func (r *engine) attach() error {
	const op = "NewRepository"
	if r.schema.MaxAttempts == 0 {
		r.schema.MaxAttempts = defaultAttempts
	}
	if err := r.compose(); err != nil {
		return tables.Invalid(op, err)
	}
	for i, p := range r.patterns {
		if err := p.Attach(r.host); err != nil {
			r.release(r.patterns[:i])
			return tables.Invalid(op, fmt.Errorf("pattern %q: %w", p.PatternName(), err))
		}
	}
	if r.reachesOut() {
		if err := r.schema.Intents.Register(r.name(), r.reconcile); err != nil {
			r.release(r.patterns)
			return tables.Invalid(op, err)
		}
	}
	return nil
}

// release makes patterns free for another repository; it has no error.
func (r *engine) release(patterns []driver.Pattern) {
	for _, attached := range patterns {
		_ = attached.Attach(nil)
	}
}

// name is how intents call the repository.
func (r *engine) name() string {
	if r.schema.Name == "" {
		return r.table.Name()
	}
	return r.schema.Name
}

// reachesOut reports whether changes have effects outside of the partition.
func (r *engine) reachesOut() bool { return len(r.intents)+len(r.outside) > 0 }

// compose checks that schema and patterns fit together, and sorts the patterns by what they contribute.
func (r *engine) compose() (err error) {
	if r.schema.MaxAttempts < 0 {
		return fmt.Errorf("a Schema.MaxAttempts of %d", r.schema.MaxAttempts)
	}
	for i, p := range r.patterns {
		if err := r.compile(p, r.patterns[:i]); err != nil {
			return err
		}
	}
	if name, out := r.firstOutside(); out && isNil(r.schema.Intents) {
		return fmt.Errorf("%s has effects outside of the partition and needs Schema.Intents", name)
	}
	slices.SortStableFunc(r.intents, func(a, b driver.IntentContributor) int { return isCompleter(a) - isCompleter(b) })
	slices.SortStableFunc(r.transformers, func(a, b driver.PropertyTransformer) int { return int(a.Stage()) - int(b.Stage()) })
	if err := r.refuseClearText(); err != nil {
		return err
	}
	r.primary, err = r.newPrimary()
	return err
}

// EncryptTag is the struct tag of fields that are stored encrypted only: `encrypt:"true"`.
const EncryptTag = "encrypt"

// refuseClearText refuses a type with encrypted properties where nothing encrypts: a pattern that was forgotten would show
// only in what is stored.
func (r *engine) refuseClearText() error {
	if slices.ContainsFunc(r.transformers, func(t driver.PropertyTransformer) bool { return t.Stage() == driver.StageEncrypt }) {
		return nil
	}
	for _, field := range reflect.VisibleFields(r.codec.Type()) {
		if value, tagged := field.Tag.Lookup(EncryptTag); tagged && value != "false" {
			return fmt.Errorf("field %s of %s has the tag %s, and no pattern encrypts it", field.Name, r.codec.Type(), EncryptTag)
		}
	}
	return nil
}

const defaultAttempts = 10

// compile notes what a pattern contributes.
func (r *engine) compile(p driver.Pattern, others []driver.Pattern) error {
	if isNil(p) {
		return fmt.Errorf("pattern %d is nil", len(others))
	}
	name := p.PatternName()
	if name == "" || strings.HasPrefix(name, rows.Prefix) || strings.Contains(name, copyNameSeparator) {
		return fmt.Errorf("a pattern of type %T has no name of its own, or one with a comma", p)
	}
	for _, other := range others {
		if other.PatternName() == name {
			return fmt.Errorf("two patterns are named %q", name)
		}
	}
	if layout, ok := p.(driver.Layout); ok {
		if r.layout != nil {
			return fmt.Errorf("%q and %q are both layouts", r.layout.PatternName(), name)
		}
		r.layout = layout
	}
	if x, ok := p.(driver.CopyContributor); ok {
		r.copies = append(r.copies, x)
		r.copyNames = strings.TrimPrefix(r.copyNames+copyNameSeparator+name, copyNameSeparator)
	}
	if x, ok := p.(driver.RowContributor); ok {
		r.rows = append(r.rows, x)
	}
	if x, ok := p.(driver.CompanionContributor); ok {
		r.companions = append(r.companions, x)
	}
	if x, ok := p.(driver.OutsideCopyContributor); ok {
		r.outside = append(r.outside, x)
	}
	if x, ok := p.(driver.IntentContributor); ok {
		r.intents = append(r.intents, x)
	}
	if x, ok := p.(driver.Completer); ok {
		r.completers = append(r.completers, x)
	}
	if x, ok := p.(driver.Rememberer); ok {
		r.rememberers = append(r.rememberers, x)
	}
	if x, ok := p.(driver.PropertyTransformer); ok {
		r.transformers = append(r.transformers, x)
	}
	if x, ok := p.(driver.CopyAuthenticator); ok {
		r.seals = x
	}
	if !contributes(p) {
		return fmt.Errorf("pattern %q of type %T contributes nothing: a method of the interface that it means is missing, or has another signature", name, p)
	}
	return nil
}

// contributes reports whether a pattern is more than its name.
func contributes(p driver.Pattern) bool {
	switch p.(type) {
	case driver.CopyContributor, driver.RowContributor, driver.CompanionContributor, driver.OutsideCopyContributor, driver.IntentContributor, driver.PropertyTransformer, driver.Layout, driver.Rememberer, driver.Auditor:
		return true
	}
	return false
}

// state returns what the repository remembers of an entity, nil for nothing.
func (r *engine) state(v any) *tables.State { return tables.StateOf(pass, r.codec.Meta(v)) }

// get reads one entity by its own row. Requests: 1.
func (r *engine) get(ctx context.Context, op string, key tables.Key) (any, error) {
	return tables.GetAny(ctx, pass, &r.primary, op, key)
}

// Patterns returns the attached patterns.
func (r *engine) Patterns() []driver.Pattern { return slices.Clone(r.patterns) }

func (r *engine) copiesSource(span compoundkey.Span, keep []string) *tables.Source {
	src := r.primary
	src.Span, src.Skips, src.Kept = span, r.layout != nil, keep
	src.Load = loads(func(ctx context.Context, row *storedRow, selected []string) (any, error) {
		if !row.isNearCopy() || row.layout == furtherRow {
			return nil, nil
		}
		return r.loadCopy(ctx, r.table, row, selected, keep)
	})
	return &src
}

// loads makes the Load of a source: nil for a row that no entity is made of.
func loads(load func(context.Context, *storedRow, []string) (any, error)) func(context.Context, *tables.RawRow, []string) (any, error) {
	return func(ctx context.Context, raw *tables.RawRow, selected []string) (any, error) {
		return load(ctx, rowOf(raw), selected)
	}
}

// newPrimary makes the source of the entities' own rows.
func (r *engine) newPrimary() (tables.Source, error) {
	src := tables.Source{Table: r.table, Codec: r.codec, Known: r.codec.Known(),
		System: []string{rows.Primary, rows.Shared, rows.Copies, rows.Incarnation, rows.WriteID, rows.Layout}, Filterable: r.filterable}
	if len(r.transformers) > 0 || len(r.rememberers) > 0 || r.layout != nil {
		src.Known = nil // they see every stored property
	}
	src.System = append(src.System, r.sealed()...)
	src.Skips = r.schema.RowPrefix == "" || r.layout != nil
	if r.schema.RowPrefix != "" {
		src.Span = compoundkey.All().Under(r.schema.RowPrefix)
		if err := src.Span.Err(); err != nil {
			return src, err
		}
	}
	src.Load = loads(func(ctx context.Context, row *storedRow, selected []string) (any, error) {
		if row.isCopy {
			return nil, nil
		}
		return r.load(ctx, r.table, row, selected, nil)
	})
	return src, nil
}

// patternError says which pattern an error comes from. objection is the kind of an error that is neither the
// library's nor the service's nor the transport's: ErrInvalid on writing, ErrGarbled on reading.
func patternError(p driver.Pattern, err, objection error) error {
	if e, ok := err.(*tables.Error); ok {
		if e.Pattern != "" {
			return err
		}
		named := *e
		named.Pattern = p.PatternName()
		return &named
	}
	e := tables.FailureOf(pass, err)
	e.Pattern = p.PatternName()
	var transport net.Error
	if e.Kind == nil && e.Code == "" && !errors.As(err, &transport) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		e.Kind = objection
	}
	return e
}

// getPrimary is Repository.GetPrimary.
func (r *engine) getPrimary(ctx context.Context, copied tables.Key) (any, error) {
	row, err := fetch(ctx, r.table, "Get", copied, map[string]int{})
	if err != nil {
		return nil, err
	}
	if !row.isNearCopy() {
		return nil, &tables.Error{Op: "Get", Table: r.table.Name(), Key: copied, Kind: tables.ErrNotFound}
	}
	v, err := r.get(ctx, "Get", tables.Key{Partition: copied.Partition, Row: row.primary})
	if err == nil && r.seals != nil && !r.belongsUnder(v, r.table, copied, false) {
		return nil, &tables.Error{Op: "Get", Table: r.table.Name(), Key: copied, Kind: tables.ErrNotFound}
	}
	return v, err
}
