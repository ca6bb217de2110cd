package patterns

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"reflect"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/tables"

	"github.com/tablepatterns/tablepatterns/compoundkey"
)

// Schema says how a Repository keeps entities of type T.
type Schema[T any] struct {
	// Name tells the repository from others whose intents go the same way, the table's name for "". Intents that are
	// under way name it, so it stays the same from one version of a program to the next.
	Name string
	// Key makes the entity's key. It is pure, and an entity keeps its key for life.
	Key func(*T) tables.Key
	// RowPrefix is the prefix that Key gives every row key, as in compoundkey.Join(RowPrefix, ...). With it, queries of
	// a partition's entities are range queries that do not read the partition's index rows; without it they are
	// partition scans that read and skip them.
	RowPrefix string
	// Intents runs changes with effects outside of the partition; required when a pattern has such.
	Intents IntentRunner
	// MaxAttempts bounds how often a change starts over on conflict, 10 for 0.
	MaxAttempts int
}

// Repository keeps entities of one type with all their patterns: every change is planned whole and written in one
// entity group transaction. T is a struct that embeds Meta. A Repository is safe for concurrent use.
type Repository[T any] struct {
	table    *tables.Table
	schema   Schema[T]
	names    []string // of the properties that T stores, nil for any
	codec    *tables.RawCodec
	primary  tables.Source // of the entities' own rows
	patterns []Pattern

	copies       []CopyContributor
	copyNames    string // of copies, as rows hold them
	rows         []RowContributor
	companions   []CompanionContributor
	outside      []OutsideCopyContributor
	intents      []IntentContributor // Completers last
	completers   []Completer
	rememberers  []Rememberer
	transformers []PropertyTransformer // in order of writing
	layout       Layout
	seals        CopyAuthenticator // nil for none
}

// NewRepository attaches the patterns, each to this repository only. It makes no request. What does not fit together
// is ErrInvalid.
func NewRepository[T any](table *tables.Table, schema Schema[T], attached ...Pattern) (*Repository[T], error) {
	const op = "NewRepository"
	if table == nil || schema.Key == nil {
		return nil, tables.Invalidf(op, "it needs a table and a Schema.Key")
	}
	if table.Account() == nil {
		return nil, tables.Invalid(op, raw(table).Usable())
	}
	typed, err := tables.NewCodec[T]()
	if err != nil {
		return nil, tables.Relabel(pass, op, table, err)
	}
	codec := tables.CodecOf(pass, typed)
	if !codec.HasMeta() {
		return nil, tables.Invalidf(op, "%s does not embed tables.Meta", reflect.TypeFor[T]())
	}
	r := &Repository[T]{table: table, schema: schema, codec: codec, names: typed.PropertyNames(), patterns: slices.Clone(attached)}
	if r.schema.MaxAttempts == 0 {
		r.schema.MaxAttempts = defaultAttempts
	}
	if err := r.compose(); err != nil {
		return nil, tables.Invalid(op, err)
	}
	for i, p := range r.patterns {
		if err := p.Attach(r); err != nil {
			for _, attached := range r.patterns[:i] {
				_ = attached.Attach(nil) // free for another try; releasing has no error
			}
			return nil, tables.Invalid(op, fmt.Errorf("pattern %q: %w", p.PatternName(), err))
		}
	}
	if r.reachesOut() {
		if err := r.schema.Intents.Register(r.name(), r.Reconcile); err != nil {
			for _, attached := range r.patterns {
				_ = attached.Attach(nil)
			}
			return nil, tables.Invalid(op, err)
		}
	}
	return r, nil
}

// name is how intents call the repository.
func (r *Repository[T]) name() string {
	if r.schema.Name == "" {
		return r.table.Name()
	}
	return r.schema.Name
}

// reachesOut reports whether changes have effects outside of the partition.
func (r *Repository[T]) reachesOut() bool { return len(r.intents)+len(r.outside) > 0 }

// compose checks that schema and patterns fit together, and sorts the patterns by what they contribute.
func (r *Repository[T]) compose() (err error) {
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
	slices.SortStableFunc(r.intents, func(a, b IntentContributor) int { return isCompleter(a) - isCompleter(b) })
	slices.SortStableFunc(r.transformers, func(a, b PropertyTransformer) int { return int(a.Stage()) - int(b.Stage()) })
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
func (r *Repository[T]) refuseClearText() error {
	if slices.ContainsFunc(r.transformers, func(t PropertyTransformer) bool { return t.Stage() == StageEncrypt }) {
		return nil
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if value, tagged := field.Tag.Lookup(EncryptTag); tagged && value != "false" {
			return fmt.Errorf("field %s of %s has the tag %s, and no pattern encrypts it", field.Name, reflect.TypeFor[T](), EncryptTag)
		}
	}
	return nil
}

const defaultAttempts = 10

// compile notes what a pattern contributes.
func (r *Repository[T]) compile(p Pattern, others []Pattern) error {
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
	if layout, ok := p.(Layout); ok {
		if r.layout != nil {
			return fmt.Errorf("%q and %q are both layouts", r.layout.PatternName(), name)
		}
		r.layout = layout
	}
	if x, ok := p.(CopyContributor); ok {
		r.copies = append(r.copies, x)
		r.copyNames = strings.TrimPrefix(r.copyNames+copyNameSeparator+name, copyNameSeparator)
	}
	if x, ok := p.(RowContributor); ok {
		r.rows = append(r.rows, x)
	}
	if x, ok := p.(CompanionContributor); ok {
		r.companions = append(r.companions, x)
	}
	if x, ok := p.(OutsideCopyContributor); ok {
		r.outside = append(r.outside, x)
	}
	if x, ok := p.(IntentContributor); ok {
		r.intents = append(r.intents, x)
	}
	if x, ok := p.(Completer); ok {
		r.completers = append(r.completers, x)
	}
	if x, ok := p.(Rememberer); ok {
		r.rememberers = append(r.rememberers, x)
	}
	if x, ok := p.(PropertyTransformer); ok {
		r.transformers = append(r.transformers, x)
	}
	if x, ok := p.(CopyAuthenticator); ok {
		r.seals = x
	}
	if !contributes(p) {
		return fmt.Errorf("pattern %q of type %T contributes nothing: a method of the interface that it means is missing, or has another signature", name, p)
	}
	return nil
}

// contributes reports whether a pattern is more than its name.
func contributes(p Pattern) bool {
	switch p.(type) {
	case CopyContributor, RowContributor, CompanionContributor, OutsideCopyContributor, IntentContributor, PropertyTransformer, Layout, Rememberer, Auditor:
		return true
	}
	return false
}

// Table returns the repository's table.
func (r *Repository[T]) Table() *tables.Table { return r.table }

// EntityType returns the type of T.
func (r *Repository[T]) EntityType() reflect.Type { return reflect.TypeFor[T]() }

// RowPrefix returns Schema.RowPrefix.
func (r *Repository[T]) RowPrefix() string { return r.schema.RowPrefix }

// PropertyNames lists the properties that T stores, nil when it takes any.
func (r *Repository[T]) PropertyNames() []string { return r.names }

// KeyOf returns the key that the schema gives an entity.
func (r *Repository[T]) KeyOf(v *T) tables.Key { return r.schema.Key(v) }

// MetaOf returns the entity's Meta.
func (r *Repository[T]) MetaOf(v *T) *tables.Meta { return r.codec.Meta(v) }

// state returns what the repository remembers of an entity, nil for nothing.
func (r *Repository[T]) state(v *T) *tables.State { return tables.StateOf(pass, r.codec.Meta(v)) }

// get reads one entity by its own row. Requests: 1.
func (r *Repository[T]) get(ctx context.Context, op string, key tables.Key) (*T, error) {
	return tables.GetOf[T](ctx, pass, &r.primary, op, key)
}

// Patterns returns the attached patterns.
func (r *Repository[T]) Patterns() []Pattern { return slices.Clone(r.patterns) }

// Get reads one entity. Requests: 1.
func (r *Repository[T]) Get(ctx context.Context, key tables.Key) (*T, error) {
	return r.get(ctx, "Get", key)
}

// GetMany reads entities by their keys, several at once, and yields those that are there in the order of keys. An
// error comes once, last. Requests: 1 for each key.
func (r *Repository[T]) GetMany(ctx context.Context, keys []tables.Key, options *tables.ParallelOptions[T]) iter.Seq2[*T, error] {
	return tables.GetManyOf(ctx, pass, &r.primary, keys, options)
}

// Query begins a query of the entities; their index copies and further rows are left out.
func (r *Repository[T]) Query() tables.Query[T] { return tables.QueryOf[T](pass, &r.primary) }

// Copies reads the rows that a CopyContributor made, as entities. span is where their row keys lie; keep are the
// properties that they hold, nil for all. Index packages build their reads on it.
func (r *Repository[T]) Copies(span compoundkey.Span, keep []string) tables.Query[T] {
	return tables.QueryOf[T](pass, r.copiesSource(span, keep))
}

// GetCopy reads one row that a CopyContributor made, as an entity. Requests: 1.
func (r *Repository[T]) GetCopy(ctx context.Context, key tables.Key, keep []string) (*T, error) {
	return tables.GetOf[T](ctx, pass, r.copiesSource(compoundkey.All(), keep), "Get", key)
}

func (r *Repository[T]) copiesSource(span compoundkey.Span, keep []string) *tables.Source {
	src := r.primary
	src.Span, src.Skips, src.Kept = span, r.layout != nil, keep
	src.Load = loads(func(ctx context.Context, row *storedRow, selected []string) (*T, error) {
		if !row.isNearCopy() || row.layout == furtherRow {
			return nil, nil
		}
		return r.loadCopy(ctx, r.table, row, selected, keep)
	})
	return &src
}

// loads makes the Load of a source: nil for a row that no entity is made of.
func loads[T any](load func(context.Context, *storedRow, []string) (*T, error)) func(context.Context, *tables.RawRow, []string) (any, error) {
	return func(ctx context.Context, raw *tables.RawRow, selected []string) (any, error) {
		v, err := load(ctx, rowOf(raw), selected)
		if v == nil || err != nil {
			return nil, err
		}
		return v, nil
	}
}

// newPrimary makes the source of the entities' own rows.
func (r *Repository[T]) newPrimary() (tables.Source, error) {
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
	src.Load = loads(func(ctx context.Context, row *storedRow, selected []string) (*T, error) {
		if row.isCopy {
			return nil, nil
		}
		return r.load(ctx, r.table, row, selected, nil)
	})
	return src, nil
}

// patternError says which pattern an error comes from. objection is the kind of an error that is neither the
// library's nor the service's nor the transport's: ErrInvalid on writing, ErrGarbled on reading.
func patternError(p Pattern, err, objection error) error {
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

// GetPrimary reads the entity that a copy belongs to, given the copy's key. With a CopyAuthenticator it is ErrNotFound where the
// entity does not have a copy there. Requests: 2.
func (r *Repository[T]) GetPrimary(ctx context.Context, copied tables.Key) (*T, error) {
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
