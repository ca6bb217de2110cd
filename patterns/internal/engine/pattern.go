package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Pattern is the form of a driver.Implementation whose T is unknown at compile time. Its fields have the same
// meaning.
type Pattern struct {
	Name        string
	Copies      func(entity any) ([]driver.Copy, error)
	Outside     *Outside
	Async       bool
	Last        bool
	Prior       func(entity any, stored tables.Properties) ([]string, error)
	Rows        func(ctx context.Context, changes []*Change) ([]driver.RowOperation, error)
	Companions  func(ctx context.Context, c *Change, x *tables.Transaction) error
	Complete    func(ctx context.Context, c *Change) error
	OutsideKeys func(ctx context.Context, c *Change) ([]string, error)
	Reconcile   func(ctx context.Context, all []*Reconciliation) error
	Transform   *Transform
	Layout      *driver.Layout
	Audit       *Audit
}

// Outside is a driver.Outside without the type parameter.
type Outside struct {
	Table           *tables.Table
	Copies          func(entity any) ([]driver.OutsideCopy, error)
	Owns            func(key tables.Key) bool
	ReservationTerm time.Duration
}

// Transform is a driver.Transform without the type parameter.
type Transform struct {
	Stage          driver.Stage
	Store          func(ctx context.Context, c *Change, p tables.Properties) (tables.Properties, error)
	Load           func(ctx context.Context, of driver.Reading, p tables.Properties) (tables.Properties, error)
	Filterable     func(property string) bool
	RefusesMerge   error
	Streams        bool
	Authentication *driver.Authentication
}

// Audit is a driver.Audit without the type parameter.
type Audit struct {
	Expected func(entity any) ([]driver.Fact, error)
	List     func(ctx context.Context, scope driver.Scope) iter.Seq2[driver.Fact, error]
	Read     func(ctx context.Context, asked []driver.Fact) ([]*driver.Fact, error)
	Remove   func(ctx context.Context, place string, entity tables.Key, wanted func(context.Context) (bool, error)) error
}

// Reconciliation is a driver.Reconciliation without the type parameter.
type Reconciliation struct {
	Key          tables.Key
	Entity       any
	Stored       tables.Properties
	Keys         []string
	Received     bool
	ChangeID     string
	NotCommitted bool
	Err          error
}

// compile checks a pattern, and adds it to the engine's lists of patterns with copies, transforms, and so on.
func (r *Engine) compile(p *Pattern, others []*Pattern) error {
	if p.Name == "" || strings.HasPrefix(p.Name, rows.Prefix) || strings.Contains(p.Name, copyNameSeparator) {
		return fmt.Errorf("pattern %d is named %q; a name must not be empty, contain a comma or begin with %s", len(others)+1, p.Name, rows.Prefix)
	}
	if slices.ContainsFunc(others, func(o *Pattern) bool { return o.Name == p.Name }) {
		return fmt.Errorf("two patterns are named %q; give each a name of its own", p.Name)
	}
	if err := p.check(); err != nil {
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
		r.copyNames = strings.TrimPrefix(r.copyNames+copyNameSeparator+p.Name, copyNameSeparator)
	}
	for list, has := range map[*[]*Pattern]bool{
		&r.rows: p.Rows != nil, &r.companions: p.Companions != nil, &r.Outside: p.Outside != nil, &r.intents: p.OutsideKeys != nil,
		&r.completers: p.Complete != nil, &r.rememberers: p.Prior != nil, &r.Transformers: p.Transform != nil,
	} {
		if has {
			*list = append(*list, p)
		}
	}
	if p.Transform != nil && p.Transform.Authentication != nil {
		r.seals = p
	}
	return nil
}

// check returns an error if the implementation has a function but lacks another function that the first
// requires.
func (p *Pattern) check() error {
	switch {
	case p.Copies == nil && p.Rows == nil && p.Companions == nil && p.Outside == nil && p.OutsideKeys == nil && p.Transform == nil && p.Layout == nil && p.Prior == nil && p.Audit == nil:
		return errors.New("its Implementation contributes nothing; set a function")
	case (p.OutsideKeys == nil) != (p.Reconcile == nil):
		return errors.New("its Implementation has one of OutsideKeys and Reconcile; set both")
	case p.Complete != nil && p.OutsideKeys == nil && p.Companions == nil:
		return errors.New("its Implementation has Complete but neither OutsideKeys nor Companions; set one of them, which checks again what Complete has read")
	case p.Outside != nil && p.Outside.Copies == nil:
		return errors.New("its Outside has no Copies; set it")
	case p.Transform != nil && (p.Transform.Store == nil || p.Transform.Load == nil):
		return errors.New("its Transform lacks Store or Load; set both")
	case p.Layout != nil && (p.Layout.Split == nil || p.Layout.Join == nil || p.Layout.Versions == nil || p.Layout.Rows == nil || p.Layout.Filterable == nil):
		return errors.New("its Layout lacks a function; set all")
	case p.Audit != nil && (p.Audit.Expected == nil || p.Audit.List == nil || p.Audit.Read == nil):
		return errors.New("its Audit lacks Expected, List or Read; set all three")
	}
	return nil
}

// PatternError adds the pattern's name to an error. objection is the kind for an error that the pattern
// itself has made, without the library, the service or the transport: ErrInvalid on writing, ErrGarbled on
// reading. On writing, a pattern's ErrNotFound becomes ErrMissingReference, so that ErrNotFound always
// concerns the entity itself.
func PatternError(p *Pattern, err, objection error) error {
	e := tables.FailureOf(pass, err)
	of, ours := err.(*tables.Error)
	if ours {
		*e = *of
	}
	e.Pattern = cmp.Or(e.Pattern, p.Name)
	switch e.Kind = cmp.Or(e.Kind, tables.KindOf(err)); {
	case errors.Is(e.Kind, tables.ErrNotFound) && errors.Is(objection, tables.ErrInvalid):
		e.Kind = tables.ErrMissingReference // the pattern looked for a row other than the entity's own
	case e.Kind == nil && !ours && e.Code == "" && !wire.HasEnded(err):
		e.Kind = objection
	}
	return e
}
