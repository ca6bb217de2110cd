package engine

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/ownrows"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Engine stores entities of one type as pointers, without knowing the type at compile time; Repository adds
// the type. If it were generic, the compiler would generate its code for each type.
type Engine struct {
	Table    *tables.Table
	Schema   Schema
	Codec    *tables.RawCodec
	Names    []string      // names of the properties that the type stores, nil for any
	Primary  tables.Source // of the entities' own rows
	Patterns []*Pattern

	Copies       []*Pattern
	copyNames    string // of copies, as stored
	rows         []*Pattern
	companions   []*Pattern
	Outside      []*Pattern
	intents      []*Pattern // patterns with OutsideKeys, sorted: those that complete entities come after the others, and those with Last at the end
	completers   []*Pattern
	rememberers  []*Pattern
	Transformers []*Pattern // in order of writing
	Layout       *Pattern   // nil for none
	seals        *Pattern   // the pattern whose Transform authenticates copies, nil for none
}

// Schema is a Schema whose T is not known at compile time.
type Schema struct {
	Name        string
	Key         func(any) tables.Key
	Own         ownrows.Rows
	Intents     intents.Runner // nil for none
	MaxAttempts int
}

// Register registers the engine with its Runner, which then calls it for intents whose writer died. It does
// nothing if changes have no effects outside of the partition.
func (r *Engine) Register() error {
	if !r.ReachesOut() {
		return nil
	}
	return r.Schema.Intents.Register(r.Name(), r.Reconcile)
}

// Name is the repository's name in intents.
func (r *Engine) Name() string {
	if r.Schema.Name == "" {
		return r.Table.Name()
	}
	return r.Schema.Name
}

// ReachesOut reports whether changes have effects outside of the partition.
func (r *Engine) ReachesOut() bool { return len(r.intents)+len(r.Outside) > 0 }

// Compose checks that schema and patterns can be combined, and sorts the patterns by what they contribute.
func (r *Engine) Compose() (err error) {
	r.Schema.MaxAttempts = cmp.Or(r.Schema.MaxAttempts, 10)
	if r.Schema.MaxAttempts < 0 {
		return fmt.Errorf("Schema.MaxAttempts is %d; it must be 0 (meaning 10) or more", r.Schema.MaxAttempts)
	}
	for i, p := range r.Patterns {
		if err := r.compile(p, r.Patterns[:i]); err != nil {
			return err
		}
	}
	if name, out := r.firstOutside(); out && r.Schema.Intents == nil {
		return fmt.Errorf("pattern %s has effects outside of the partition, whose intents need a queue; open the table with Store.Table, of an account with a queue endpoint", name)
	}
	stage := func(p *Pattern) int {
		switch {
		case p.Last:
			return 2
		case p.Complete != nil:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(r.intents, func(a, b *Pattern) int { return stage(a) - stage(b) })
	slices.SortStableFunc(r.Transformers, func(a, b *Pattern) int { return int(a.Transform.Stage) - int(b.Transform.Stage) })
	if err := r.refuseClearText(); err != nil {
		return err
	}
	r.sealCopies()
	r.Primary, err = r.newPrimary()
	return err
}

// refuseClearText rejects a type with encrypted properties if no pattern encrypts them. Without this check,
// nobody would notice a missing encryption before looking at stored data.
func (r *Engine) refuseClearText() error {
	if slices.ContainsFunc(r.Transformers, func(p *Pattern) bool { return p.Transform.Stage == driver.StageEncrypt }) {
		return nil
	}
	for _, field := range reflect.VisibleFields(r.Codec.Type()) {
		if value, tagged := field.Tag.Lookup(driver.EncryptTag); tagged && value != "false" {
			return fmt.Errorf("field %s of %s has the tag %s, but no pattern encrypts it; attach an encryption or remove the tag", field.Name, r.Codec.Type(), driver.EncryptTag)
		}
	}
	return nil
}

// State returns the prior state of an entity as its Meta stores it, nil for none.
func (r *Engine) State(v any) *tables.State { return *tables.StateOf(pass, r.Codec.Meta(v)) }

// Get reads one entity by its own row. Requests: 1.
func (r *Engine) Get(ctx context.Context, op string, key tables.Key) (any, error) {
	return tables.GetAny(ctx, pass, &r.Primary, op, key)
}

// CopiesSource returns the source of queries of a pattern's copies in the entities' own partitions. It decodes each copy as an entity.
// keep names the properties that the copies hold; nil means all.
func (r *Engine) CopiesSource(span compoundkey.Span, keep []string) *tables.Source {
	src, keep := r.Primary, r.keeps(keep)
	src.Span, src.Where, src.Skips, src.Kept = span, nil, r.Layout != nil, keep
	src.Load = Loads(func(ctx context.Context, row *StoredRow, selected []string) (any, error) {
		if !row.isNearCopy() || row.Layout == FurtherRow || !r.Schema.Own.Keeps(tables.Key{Partition: row.Key.Partition, Row: row.Primary}) {
			return nil, nil
		}
		return r.loadCopy(ctx, r.Table, row, selected, keep)
	})
	return &src
}

// Loads adapts a function that loads entities to Source.Load.
func Loads(load func(context.Context, *StoredRow, []string) (any, error)) func(context.Context, *tables.RawRow, []string) (any, error) {
	return func(ctx context.Context, raw *tables.RawRow, selected []string) (any, error) {
		return load(ctx, RowOf(raw), selected)
	}
}

// newPrimary returns the source of the entities' own rows.
func (r *Engine) newPrimary() (tables.Source, error) {
	src := tables.Source{Table: r.Table, Codec: r.Codec, Known: r.Codec.Known(),
		System: []string{rows.Primary, rows.Shared, rows.Copies, rows.Incarnation, rows.WriteID, rows.Layout}, Filterable: r.filterable}
	if len(r.Transformers) > 0 || len(r.rememberers) > 0 || r.Layout != nil {
		src.Known = nil // patterns need every stored property
	}
	src.System = append(src.System, r.sealed()...)
	own := &r.Schema.Own
	if err := own.Compile(r.Codec, r.Names, r.filterable); err != nil {
		return src, err
	}
	src.System = append(src.System, own.Properties()...)
	src.Span, src.Where, src.Skips = own.Span, own.Conditions(), own.Span == (compoundkey.Span{}) || own.Mine != nil || r.Layout != nil
	src.Problems = true // Load gets rows with problems, too, and skips those that do not belong to the repository
	src.Load = Loads(func(ctx context.Context, row *StoredRow, selected []string) (any, error) {
		if !r.Owns(row) {
			return nil, nil
		}
		if selected != nil && len(own.Conditions()) > 0 {
			row = row.With(row.Properties.Only(slices.Concat(selected, r.sealed()))) // without the properties that only the condition needed
		}
		return r.load(ctx, r.Table, row, selected, nil)
	})
	return src, nil
}

// GetPrimary implements Host.GetPrimary.
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
