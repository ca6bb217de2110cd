package engine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
)

// ClaimPrefix begins the row keys of claims. compoundkey writes U+FFFC only after a '.', so no index key begins with
// it, and all index keys sort before it.
const ClaimPrefix = "\uFFFC"

// ClaimKey is the key of the row that names the owner of a copy. It is derived from the copy, the entity and
// the reservation, so only a writer that knows the present owner can write the copy and its claim in one
// transaction.
func ClaimKey(copied, owner entity.Key, reserved string) entity.Key {
	return entity.Key{Partition: copied.Partition, Row: ClaimPrefix + rows.Hash(copied.Row, owner.Partition, owner.Row, reserved)}
}

// IsMisplaced reports whether a row is a claim whose row key does not match its content. The library writes no such
// claim: another program changed it, or swapped two claims.
func IsMisplaced(r *tablerow.Row) bool {
	if !r.Own.Outside.IsClaim {
		return false
	}
	copied := entity.Key{Partition: r.Key.Partition, Row: r.Own.Outside.Claim}
	return r.Key != ClaimKey(copied, entity.Key{Partition: r.Own.Outside.Partition, Row: r.Own.Primary}, r.Own.Outside.Reserved)
}

// CopyNamedBy returns the copy or the reserved key to which a claim with the key claim would belong, or nil if
// there is none. Requests: at most 1 for each page of the copies in the claim's partition.
func CopyNamedBy(ctx context.Context, table *core.Table, claim entity.Key) (*tablerow.Row, error) {
	for row, err := range core.All[tablerow.Row](ctx, table.Query().Partition(claim.Partition).Rows(compoundkey.Range("", ClaimPrefix))) {
		if err != nil {
			return nil, err
		}
		if row.Own.Outside.Is && !row.Own.Outside.IsClaim && ClaimKey(row.Key, entity.Key{Partition: row.Own.Outside.Partition, Row: row.Own.Primary}, row.Own.Outside.Reserved) == claim {
			return row, nil
		}
	}
	return nil, nil
}

// rememberOutside lists the keys of an entity's outside copies. For a pattern whose key function rejects the
// entity it lists none, since the pattern has written none.
func (r *Engine) rememberOutside(v EntityCopies) []outsideCopy {
	var list []outsideCopy
	for _, p := range r.Outside {
		copies, err := v.Outside(p)
		if err != nil {
			continue
		}
		for i := range copies {
			list = append(list, outsideCopy{p.Name, copies[i].Key})
		}
	}
	return list
}

// nameOutside adds to m the keys of the outside copies that a change can touch, and records in w.Fresh which of
// them the change adds.
func (r *Engine) nameOutside(w *Work, m *intents.Member) error {
	w.Fresh = map[string]bool{}
	for _, p := range r.Outside {
		old := priorOf(w.Change.Old).outsideOf(p.Name)
		var names []string
		if w.Change.Kind != driver.ChangeDelete {
			copies, err := w.Change.Copies().Outside(p)
			if err != nil {
				return PatternError(p, err, entity.ErrInvalid)
			}
			for i := range copies {
				names = append(names, driver.JoinKey(copies[i].Key))
				w.Fresh[HeldName(p, driver.JoinKey(copies[i].Key))] = !slices.Contains(old, copies[i].Key)
			}
		}
		for _, key := range old {
			if name := driver.JoinKey(key); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			m.Outside[p.Name] = names
		}
	}
	return nil
}

// preflightOutside checks that the outside copies of a change can be stored.
func (r *Engine) preflightOutside(w *Work) error {
	for _, p := range r.Outside {
		copies, err := w.Change.Copies().Outside(p)
		if err != nil {
			return PatternError(p, err, entity.ErrInvalid)
		}
		for i := range copies {
			o := r.copyOperation(p, w.Change.Key, &copies[i], w.Change.Stored, tablerow.AnyWriteID, anyETag)
			if _, err := o.Check(); err != nil {
				return PatternError(p, err, entity.ErrInvalid)
			}
		}
	}
	return nil
}

// anyETag is as long as the service's ETags, to compute the size of rows that will contain one.
const anyETag = `W/"datetime'2026-01-01T00%3A00%3A00.0000000Z'"`

// OutsideSource returns a source that yields the rows of Outside.Copies in a table as entities. It sends no Schema.Where, which
// compares the keys and properties of an entity's own row, and leaves out copies of entities that the schema excludes by their keys.
func (r *Engine) OutsideSource(table *core.Table, span compoundkey.Span, keep []string) *core.Source {
	src, keep := r.Primary, r.keeps(keep)
	src.Table, src.Where, src.Kept = table, nil, keep
	src.Span = span
	if span.To() == "" && span.Err() == nil {
		src.Span = compoundkey.Range(span.From(), ClaimPrefix)
	}
	src.Skips = true // skip reserved keys
	src.System = append(slices.Clone(src.System), rows.Partition, rows.Version, rows.Reserved, rows.Term, rows.Claim)
	src.Load = func(ctx context.Context, row *tablerow.Row, selected []string) (any, error) {
		if !row.Own.Outside.Is || row.Own.Outside.IsClaim || row.Own.Outside.Reserved != "" || row.Own.IsShared {
			return nil, nil
		}
		if !r.Schema.Own.Keeps(entity.Key{Partition: row.Own.Outside.Partition, Row: row.Own.Primary}) {
			return nil, nil
		}
		return r.loadCopy(ctx, table, row, selected, keep)
	}
	return &src
}

// EntityCopies are the copies that patterns make of one entity value.
type EntityCopies struct {
	entity  any // nil for none
	near    map[*Pattern][]driver.Copy
	outside map[*Pattern][]driver.OutsideCopy
}

// CopiesOf returns the copies of an entity without caching: each call asks the pattern.
func CopiesOf(entity any) EntityCopies { return EntityCopies{entity: entity} }

// keptCopiesOf caches the copies of an entity during a change, so that a pattern's key function runs only
// once per entity. The program provides that function, and it may be slow.
func keptCopiesOf(entity any) EntityCopies {
	return EntityCopies{entity: entity, near: map[*Pattern][]driver.Copy{}, outside: map[*Pattern][]driver.OutsideCopy{}}
}

// Near returns a pattern's copies in the entity's partition.
func (e EntityCopies) Near(p *Pattern) ([]driver.Copy, error) {
	if made, known := e.near[p]; known {
		return made, nil
	}
	made, err := p.Copies(e.entity)
	if err == nil && e.near != nil {
		e.near[p] = made
	}
	return made, err
}

// Outside returns a pattern's copies outside of the entity's partition; without an entity it returns nil.
func (e EntityCopies) Outside(p *Pattern) ([]driver.OutsideCopy, error) {
	if e.entity == nil {
		return nil, nil
	}
	if made, known := e.outside[p]; known {
		return made, nil
	}
	made, err := p.Outside.Copies(e.entity)
	if err == nil {
		err = checkOutsideCopies(made)
	}
	if err != nil {
		return nil, err
	}
	if e.outside != nil {
		e.outside[p] = made
	}
	return made, nil
}

// has reports whether the entity has a copy of a pattern under a key outside of its partition.
func (e EntityCopies) has(p *Pattern, key entity.Key) (bool, error) {
	made, err := e.Outside(p)
	return slices.ContainsFunc(made, func(c driver.OutsideCopy) bool { return c.Key == key }), err
}

// checkOutsideCopies rejects copies that cannot be stored.
func checkOutsideCopies(copies []driver.OutsideCopy) error {
	for i := range copies {
		if err := rows.CheckKeys(copies[i].Key.Partition, copies[i].Key.Row); err != nil {
			return err
		}
		if strings.HasPrefix(copies[i].Key.Row, ClaimPrefix) {
			return errors.New("a copy's row key begins with U+FFFC, which is reserved for claims; use another row key")
		}
		for j := range copies[:i] {
			if copies[j].Key == copies[i].Key {
				return errors.New("two copies of the entity have the same key; return each key once")
			}
		}
	}
	return nil
}
