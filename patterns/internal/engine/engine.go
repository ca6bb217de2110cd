package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/handle"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/stores"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/background"
	"github.com/tablepatterns/tablepatterns/patterns/internal/ownrows"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Engine stores entities of one type as pointers, without knowing the type at compile time; Repository adds
// the type. If it were generic, the compiler would generate its code for each type.
type Engine struct {
	Table    *core.Table
	Schema   Schema
	Codec    *core.Codec
	Names    []string    // names of the properties that the type can store, nil for any
	Primary  core.Source // of the entities' own rows
	Patterns []*driver.Implementation

	Copies       []*driver.Implementation
	copyNames    tablerow.CopyList // the names of Copies and Outside, in the form of _tpCopies
	rows         []*driver.Implementation
	companions   []*driver.Implementation
	Outside      []*driver.Implementation
	intents      []*driver.Implementation // patterns with OutsideKeys, sorted: those that complete entities come after the others, and those with Last at the end
	completers   []*driver.Implementation
	rememberers  []*driver.Implementation
	Transformers []*driver.Implementation // in order of writing
	Layout       *driver.Implementation   // nil for none
	spills       bool                     // a transform stores blobs or other objects outside of the table
	seals        *driver.Implementation   // the pattern whose Transform authenticates copies, nil for none
}

// Schema is a Schema whose T is not known at compile time.
type Schema struct {
	Name        string
	Key         func(any) entity.Key
	Own         ownrows.Rows
	Intents     intents.Runner    // nil for none
	Rest        *background.Tasks // nil: changes do everything before they return
	ReadOnly    bool              // reads settle no marks
	OtherBuilds bool              // programs that do not know a pattern of the repository may write its entities
	MayName     func(entity, other entity.Key) bool
	MaxAttempts int
}

// Register registers Reconcile with the Runner, which then calls it for intents that workers carry out.
// Register does nothing if changes have no effects outside of the partition.
func (r *Engine) Register() error {
	if !r.Intends() {
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

// Intends reports whether changes have effects outside of the partition for which they store an intent.
func (r *Engine) Intends() bool { return len(r.intents) > 0 }

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
	if r.Intends() && r.Schema.Intents == nil {
		return fmt.Errorf("pattern %s has effects outside of the partition, whose intents need a queue; open the table with Store.Table, of an account with a queue endpoint", r.intents[0].Name)
	}
	stage := func(p *driver.Implementation) int {
		switch {
		case p.Effect.Last:
			return 2
		case p.Complete != nil:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(r.intents, func(a, b *driver.Implementation) int { return stage(a) - stage(b) })
	slices.SortStableFunc(r.Transformers, func(a, b *driver.Implementation) int { return int(a.Transform.Stage) - int(b.Transform.Stage) })
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
	if slices.ContainsFunc(r.Transformers, func(p *driver.Implementation) bool { return p.Transform.Stage == driver.StageEncrypt }) {
		return nil
	}
	for _, field := range reflect.VisibleFields(r.Codec.Type()) {
		if value, tagged := field.Tag.Lookup(driver.EncryptTag); tagged && value != "false" {
			return fmt.Errorf("field %s of %s has the tag %s, but no pattern encrypts it; attach an encryption or remove the tag", field.Name, r.Codec.Type(), driver.EncryptTag)
		}
	}
	return nil
}

// ErrNil returns the error of an operation of a nil Repository, whose engine is nil.
func ErrNil(op string) error {
	return errs.Wiringf(op, "", "the repository is nil; make it with NewRepository, and look at its error")
}

// Entities returns the source of the entities. That of a nil Engine returns an error.
func (r *Engine) Entities() *core.Source {
	if r == nil {
		return &core.Source{Err: ErrNil("Query")}
	}
	return &r.Primary
}

// OwnTable returns the repository's table, nil for a nil Engine.
func (r *Engine) OwnTable() *core.Table {
	if r == nil {
		return nil
	}
	return r.Table
}

// State returns the state that an entity's Meta holds, nil for none.
func (r *Engine) State(v any) *core.State { return core.StateOf(r.Codec.Meta(v)) }

// Get reads one entity by its own row. Requests: 1.
func (r *Engine) Get(ctx context.Context, op string, key entity.Key) (any, error) {
	if r == nil {
		return nil, ErrNil(op)
	}
	if err := r.Schema.Own.CheckPartition(key.Partition); err != nil {
		return nil, r.Invalid(op, key, err)
	}
	return r.Primary.Get(ctx, op, key)
}

// CopiesSource returns a source that yields a pattern's copies in the entities' own partitions, each as an
// entity. keep names the properties that the copies hold; nil means all.
func (r *Engine) CopiesSource(span compoundkey.Span, keep []string) *core.Source {
	src, keep := r.Primary, r.keeps(keep)
	src.Span, src.Where, src.Skips, src.Kept = span, nil, r.Layout != nil, keep
	src.Load = func(ctx context.Context, row *tablerow.Row, selected []string) (any, error) {
		if !row.IsNearCopy() || row.Own.Layout == FurtherRow || !r.Schema.Own.Keeps(entity.Key{Partition: row.Key.Partition, Row: row.Own.Primary}) {
			return nil, nil
		}
		return r.loadCopy(ctx, r.Table, row, selected, keep)
	}
	return &src
}

// newPrimary returns the source of the entities' own rows.
func (r *Engine) newPrimary() (core.Source, error) {
	src := core.Source{Table: r.Table, Codec: r.Codec, Known: r.Codec.Known(),
		System: []string{rows.Primary, rows.Shared, rows.Copies, rows.Incarnation, rows.WriteID, rows.Layout}, Filterable: r.filterable, Added: r.added}
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
	src.Load = func(ctx context.Context, row *tablerow.Row, selected []string) (any, error) {
		if !r.Owns(row) {
			return nil, nil
		}
		if selected != nil && len(own.Conditions()) > 0 {
			row = row.With(row.Properties.Only(slices.Concat(selected, r.sealed()))) // drop the properties that were read only for the condition
		}
		return r.load(ctx, r.Table, row, selected, nil)
	}
	return src, nil
}

// GetPrimary implements Host.GetPrimary.
func (r *Engine) GetPrimary(ctx context.Context, copied entity.Key) (any, error) {
	row, err := r.Table.Get(ctx, "Get", copied, map[string]int{})
	if err != nil {
		return nil, err
	}
	if !row.IsNearCopy() {
		return nil, &entity.Error{Op: "Get", Table: r.Table.Name(), Key: copied, Kind: entity.ErrNotFound}
	}
	v, err := r.Get(ctx, "Get", entity.Key{Partition: copied.Partition, Row: row.Own.Primary})
	if err == nil && r.seals != nil && !r.belongsUnder(v, r.Table, copied, false) {
		return nil, &entity.Error{Op: "Get", Table: r.Table.Name(), Key: copied, Kind: entity.ErrNotFound}
	}
	return v, err
}

// OutsideTable returns the table of a pattern's copies in other partitions.
func OutsideTable(p *driver.Implementation) *core.Table { return (*core.Table)(p.Outside.Table) }

// Containers returns the containers that a pattern names.
func Containers(p *driver.Implementation) (all []stores.Entry) {
	for _, c := range p.Containers {
		if container, ok := handle.Any(c).Value().(stores.Entry); ok {
			all = append(all, container)
		}
	}
	return all
}

// Mixes reports whether a pattern of the engine and one of the same name in another engine store rows or lists under
// that name in the same table or container.
func (r *Engine) Mixes(p *driver.Implementation, other *Engine, q *driver.Implementation) bool {
	near := func(p *driver.Implementation) bool { return p.Copies != nil || p.Rows != nil }
	// If the row keys of the entities are separate, copies in the entities' partitions can be told apart by their entity.
	apart := !r.Schema.Own.Span.Overlaps(other.Schema.Own.Span) && p.Rows == nil && q.Rows == nil
	switch {
	case near(p) && near(q) && r.Table.Same(other.Table) && !apart:
		return true
	case p.Outside != nil && q.Outside != nil && OutsideTable(p).Same(OutsideTable(q)):
		return true
	case p.Effect.List == nil || q.Effect.List == nil: // no lists
		return false
	}
	sameTable := func(t *tables.Table) bool {
		return slices.ContainsFunc(q.Tables, func(u *tables.Table) bool {
			return cmp.Or((*core.Table)(t), r.Table).Same(cmp.Or((*core.Table)(u), other.Table))
		})
	}
	sameContainer := func(c stores.Entry) bool {
		return slices.ContainsFunc(Containers(q), func(d stores.Entry) bool { return c.ID == d.ID })
	}
	return slices.ContainsFunc(p.Tables, sameTable) || slices.ContainsFunc(Containers(p), sameContainer)
}

// compile checks a pattern, and adds it to the engine's lists of patterns with copies, transforms, and so on.
func (r *Engine) compile(p *driver.Implementation, others []*driver.Implementation) error {
	if p.Name == "" || strings.HasPrefix(p.Name, rows.Prefix) || strings.ContainsAny(p.Name, ",>") {
		return fmt.Errorf("pattern %d is named %q; a name must not be empty, contain a comma or '>', or begin with %s", len(others)+1, p.Name, rows.Prefix)
	}
	if slices.ContainsFunc(others, func(o *driver.Implementation) bool { return o.Name == p.Name }) {
		return fmt.Errorf("two patterns are named %q; give each a name of its own", p.Name)
	}
	if err := check(p); err != nil {
		return fmt.Errorf("pattern %q: %w", p.Name, err)
	}
	if p.Layout != nil {
		if r.Layout != nil {
			return fmt.Errorf("%q and %q both have a Layout; a repository has at most one", r.Layout.Name, p.Name)
		}
		r.Layout = p
	}
	if p.Copies != nil {
		r.Copies = append(r.Copies, p)
		r.copyNames = r.copyNames.With(p.Name)
	}
	if p.Outside != nil {
		r.copyNames = r.copyNames.WithElsewhere(p.Name)
	}
	for list, has := range map[*[]*driver.Implementation]bool{
		&r.rows: p.Rows != nil, &r.companions: p.Companions != nil, &r.Outside: p.Outside != nil, &r.intents: p.Effect.OutsideKeys != nil,
		&r.completers: p.Complete != nil, &r.rememberers: p.Prior != nil, &r.Transformers: p.Transform != nil,
	} {
		if has {
			*list = append(*list, p)
		}
	}
	r.spills = r.spills || p.Transform != nil && p.Transform.Stage == driver.StageSpill
	if p.Transform != nil && p.Transform.Authentication != nil {
		r.seals = p
	}
	return nil
}

// check returns an error if the implementation has no function, or has a function but lacks another one that
// the first requires.
func check(p *driver.Implementation) error {
	e := &p.Effect
	switch {
	case p.Copies == nil && p.Rows == nil && p.Companions == nil && p.Outside == nil && e.OutsideKeys == nil && p.Transform == nil && p.Layout == nil && p.Prior == nil && p.Effect.List == nil:
		return errors.New("its Implementation contributes nothing; set a function")
	case (e.OutsideKeys == nil) != (e.Reconcile == nil):
		return errors.New("its Effect has one of OutsideKeys and Reconcile; set both")
	case p.Complete != nil && e.OutsideKeys == nil && p.Companions == nil:
		return errors.New("its Implementation has Complete but neither OutsideKeys nor Companions; set one of them, which checks again what Complete has read")
	case p.Outside != nil && p.Outside.Copies == nil:
		return errors.New("its Outside has no Copies; set it")
	case p.Transform != nil && (p.Transform.Store == nil || p.Transform.Load == nil):
		return errors.New("its Transform lacks Store or Load; set both")
	case p.Layout != nil && (p.Layout.Split == nil || p.Layout.Join == nil || p.Layout.Versions == nil || p.Layout.Rows == nil || p.Layout.Filterable == nil):
		return errors.New("its Layout lacks a function; set all")
	case (e.Expected == nil) != (e.List == nil) || (e.List == nil) != (e.Read == nil) || e.Remove != nil && e.List == nil:
		return errors.New("its Effect lacks Expected, List or Read; set all three, or none without Remove")
	case p.Totals != nil && (p.Totals.Wrong == nil || p.Totals.Agree == nil):
		return errors.New("its Totals lacks Wrong or Agree; set both")
	}
	return nil
}

// PatternError adds the pattern's name to an error. objection is the kind that an error gets if the pattern
// itself has made it, and not the library, the service or the transport: ErrInvalid while the entity is
// written, ErrGarbled while it is read. During a write, a pattern's ErrNotFound becomes ErrMissingReference, so
// that ErrNotFound always concerns the entity itself.
func PatternError(p *driver.Implementation, err, objection error) error {
	e := core.Failure(err)
	of, ours := err.(*entity.Error)
	if ours {
		*e = *of
	}
	e.Pattern = cmp.Or(e.Pattern, p.Name)
	switch e.Kind = cmp.Or(e.Kind, entity.KindOf(err)); {
	case errors.Is(e.Kind, entity.ErrNotFound) && errors.Is(objection, entity.ErrInvalid):
		e.Kind = entity.ErrMissingReference // the pattern looked for a row other than the entity's own
	case e.Kind == nil && !ours && e.Code == "" && !wire.HasEnded(err):
		e.Kind = objection
	}
	return e
}
