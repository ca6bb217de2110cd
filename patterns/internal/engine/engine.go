package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Engine keeps entities of one type, which is not known at compile time: entities are pointers to it. Repository gives it the type.
// One engine serves all types, since the compiler would otherwise compile the whole core for each.
type Engine struct {
	Table    *tables.Table
	Schema   Schema
	Host     driver.Host // the repository, as its patterns see it
	Codec    *tables.RawCodec
	Names    []string      // of the properties that the type stores, nil for any
	Primary  tables.Source // of the entities' own rows
	Patterns []driver.Pattern

	Copies       []driver.CopyContributor
	copyNames    string // of copies, as rows hold them
	rows         []driver.RowContributor
	companions   []driver.CompanionContributor
	Outside      []driver.OutsideCopyContributor
	intents      []driver.IntentContributor // Completers last
	completers   []driver.Completer
	rememberers  []driver.Rememberer
	Transformers []driver.PropertyTransformer // in order of writing
	Layout       driver.Layout
	seals        driver.CopyAuthenticator // nil for none
}

// Schema is a Schema whose T is not known at compile time.
type Schema struct {
	Name        string
	Key         func(any) tables.Key
	RowPrefix   string
	Intents     driver.IntentRunner
	MaxAttempts int
}

// Attach gives the engine to its patterns, each to this repository only.
func (r *Engine) Attach() error {
	const op = "NewRepository"
	if r.Schema.MaxAttempts == 0 {
		r.Schema.MaxAttempts = defaultAttempts
	}
	if err := r.compose(); err != nil {
		return tables.Invalid(op, err)
	}
	for i, p := range r.Patterns {
		if err := p.Attach(r.Host); err != nil {
			r.release(r.Patterns[:i])
			return tables.Invalid(op, fmt.Errorf("pattern %q: %w", p.PatternName(), err))
		}
	}
	if r.ReachesOut() {
		if err := r.Schema.Intents.Register(r.Name(), r.Reconcile); err != nil {
			r.release(r.Patterns)
			return tables.Invalid(op, err)
		}
	}
	return nil
}

// release makes patterns free for another repository; it has no error.
func (r *Engine) release(patterns []driver.Pattern) {
	for _, attached := range patterns {
		_ = attached.Attach(nil)
	}
}

// Name is how intents call the repository.
func (r *Engine) Name() string {
	if r.Schema.Name == "" {
		return r.Table.Name()
	}
	return r.Schema.Name
}

// ReachesOut reports whether changes have effects outside of the partition.
func (r *Engine) ReachesOut() bool { return len(r.intents)+len(r.Outside) > 0 }

// compose checks that schema and patterns fit together, and sorts the patterns by what they contribute.
func (r *Engine) compose() (err error) {
	if r.Schema.MaxAttempts < 0 {
		return fmt.Errorf("a Schema.MaxAttempts of %d", r.Schema.MaxAttempts)
	}
	for i, p := range r.Patterns {
		if err := r.compile(p, r.Patterns[:i]); err != nil {
			return err
		}
	}
	if name, out := r.firstOutside(); out && isNil(r.Schema.Intents) {
		return fmt.Errorf("%s has effects outside of the partition and needs Schema.Intents", name)
	}
	slices.SortStableFunc(r.intents, func(a, b driver.IntentContributor) int { return isCompleter(a) - isCompleter(b) })
	slices.SortStableFunc(r.Transformers, func(a, b driver.PropertyTransformer) int { return int(a.Stage()) - int(b.Stage()) })
	if err := r.refuseClearText(); err != nil {
		return err
	}
	r.Primary, err = r.newPrimary()
	return err
}

// refuseClearText refuses a type with encrypted properties where nothing encrypts: a pattern that was forgotten would show
// only in what is stored.
func (r *Engine) refuseClearText() error {
	if slices.ContainsFunc(r.Transformers, func(t driver.PropertyTransformer) bool { return t.Stage() == driver.StageEncrypt }) {
		return nil
	}
	for _, field := range reflect.VisibleFields(r.Codec.Type()) {
		if value, tagged := field.Tag.Lookup(driver.EncryptTag); tagged && value != "false" {
			return fmt.Errorf("field %s of %s has the tag %s, and no pattern encrypts it", field.Name, r.Codec.Type(), driver.EncryptTag)
		}
	}
	return nil
}

const defaultAttempts = 10

// compile notes what a pattern contributes.
func (r *Engine) compile(p driver.Pattern, others []driver.Pattern) error {
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
		if r.Layout != nil {
			return fmt.Errorf("%q and %q are both layouts", r.Layout.PatternName(), name)
		}
		r.Layout = layout
	}
	if x, ok := p.(driver.CopyContributor); ok {
		r.Copies = append(r.Copies, x)
		r.copyNames = strings.TrimPrefix(r.copyNames+copyNameSeparator+name, copyNameSeparator)
	}
	if x, ok := p.(driver.RowContributor); ok {
		r.rows = append(r.rows, x)
	}
	if x, ok := p.(driver.CompanionContributor); ok {
		r.companions = append(r.companions, x)
	}
	if x, ok := p.(driver.OutsideCopyContributor); ok {
		r.Outside = append(r.Outside, x)
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
		r.Transformers = append(r.Transformers, x)
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

// State returns what the repository remembers of an entity, nil for nothing.
func (r *Engine) State(v any) *tables.State { return tables.StateOf(pass, r.Codec.Meta(v)) }

// Get reads one entity by its own row. Requests: 1.
func (r *Engine) Get(ctx context.Context, op string, key tables.Key) (any, error) {
	return tables.GetAny(ctx, pass, &r.Primary, op, key)
}

// CopiesSource is the source of the rows of CopyContributors, as entities. keep are the properties that they hold, nil for all.
func (r *Engine) CopiesSource(span compoundkey.Span, keep []string) *tables.Source {
	src := r.Primary
	src.Span, src.Skips, src.Kept = span, r.Layout != nil, keep
	src.Load = Loads(func(ctx context.Context, row *StoredRow, selected []string) (any, error) {
		if !row.isNearCopy() || row.Layout == FurtherRow {
			return nil, nil
		}
		return r.loadCopy(ctx, r.Table, row, selected, keep)
	})
	return &src
}

// Loads makes the Load of a source: nil for a row that no entity is made of.
func Loads(load func(context.Context, *StoredRow, []string) (any, error)) func(context.Context, *tables.RawRow, []string) (any, error) {
	return func(ctx context.Context, raw *tables.RawRow, selected []string) (any, error) {
		return load(ctx, RowOf(raw), selected)
	}
}

// newPrimary makes the source of the entities' own rows.
func (r *Engine) newPrimary() (tables.Source, error) {
	src := tables.Source{Table: r.Table, Codec: r.Codec, Known: r.Codec.Known(),
		System: []string{rows.Primary, rows.Shared, rows.Copies, rows.Incarnation, rows.WriteID, rows.Layout}, Filterable: r.filterable}
	if len(r.Transformers) > 0 || len(r.rememberers) > 0 || r.Layout != nil {
		src.Known = nil // they see every stored property
	}
	src.System = append(src.System, r.Sealed()...)
	src.Skips = r.Schema.RowPrefix == "" || r.Layout != nil
	if r.Schema.RowPrefix != "" {
		src.Span = compoundkey.All().Under(r.Schema.RowPrefix)
		if err := src.Span.Err(); err != nil {
			return src, err
		}
	}
	src.Load = Loads(func(ctx context.Context, row *StoredRow, selected []string) (any, error) {
		if row.IsCopy {
			return nil, nil
		}
		return r.load(ctx, r.Table, row, selected, nil)
	})
	return src, nil
}

// PatternError says which pattern an error comes from. objection is the kind of an error that is neither the
// library's nor the service's nor the transport's: ErrInvalid on writing, ErrGarbled on reading.
func PatternError(p driver.Pattern, err, objection error) error {
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

// GetPrimary is Repository.GetPrimary.
func (r *Engine) GetPrimary(ctx context.Context, copied tables.Key) (any, error) {
	row, err := Fetch(ctx, r.Table, "Get", copied, map[string]int{})
	if err != nil {
		return nil, err
	}
	if !row.isNearCopy() {
		return nil, &tables.Error{Op: "Get", Table: r.Table.Name(), Key: copied, Kind: tables.ErrNotFound}
	}
	v, err := r.Get(ctx, "Get", tables.Key{Partition: copied.Partition, Row: row.Primary})
	if err == nil && r.seals != nil && !r.belongsUnder(v, r.Table, copied, false) {
		return nil, &tables.Error{Op: "Get", Table: r.Table.Name(), Key: copied, Kind: tables.ErrNotFound}
	}
	return v, err
}
