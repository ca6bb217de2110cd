package patterns

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/patterns/driver"

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/tables"

	"github.com/tablepatterns/tablepatterns/compoundkey"
)

// outsideFacts are the system properties of a row outside of its entity's partition: a copy, or the claim beside it.
type outsideFacts struct {
	is        bool
	partition string        // of the entity
	version   string        // on a copy: the ETag of the entity's own row that it was made of
	reserved  string        // id of the change that reserved the key and has not filled it yet
	term      time.Duration // of the reservation, whole seconds; 0 for none that is known, which never ends
	isClaim   bool
	claim     string // on a claim: the row key of the copy
}

func (f *outsideFacts) append(row tables.Properties) tables.Properties {
	if !f.is {
		return row
	}
	row = append(row, tables.Property{Name: rows.Partition, Value: tables.String(f.partition)})
	if f.version != "" {
		row = append(row, tables.Property{Name: rows.Version, Value: tables.String(f.version)})
	}
	if f.reserved != "" {
		row = append(row, tables.Property{Name: rows.Reserved, Value: tables.String(f.reserved)})
	}
	if f.term > 0 {
		row = append(row, tables.Property{Name: rows.Term, Value: tables.Int32(int32(f.term / time.Second))})
	}
	if f.isClaim {
		row = append(row, tables.Property{Name: rows.Claim, Value: tables.String(f.claim)})
	}
	return row
}

// claimPrefix begins the row keys of claims. compoundkey writes U+FFFC nowhere but behind a '.', so no index key begins
// with it, and all of them sort below.
const claimPrefix = "\uFFFC"

// claimKey is the key of the row that says that a copy is an entity's. It is named after copy, entity and reservation, so
// that who may touch the copy is checked by the service, in the transaction that touches it.
func claimKey(copied, entity tables.Key, reserved string) tables.Key {
	h := sha256.New()
	for _, s := range []string{copied.Row, entity.Partition, entity.Row, reserved} {
		fmt.Fprintf(h, "%d %s", len(s), s)
	}
	return tables.Key{Partition: copied.Partition, Row: claimPrefix + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil)[:20])}
}

// keySeparator stands between the parts of an outside key in an intent; no key has it in it.
const keySeparator = "\t"

func outsideName(k tables.Key) string { return k.Partition + keySeparator + k.Row }

func parseOutsideName(name string) (tables.Key, error) {
	partition, row, ok := strings.Cut(name, keySeparator)
	if !ok {
		return tables.Key{}, errors.New("an intent names an outside copy without a key")
	}
	return tables.Key{Partition: partition, Row: row}, nil
}

// outsideCopies returns a pattern's copies of an entity, nil for no entity.
func outsideCopies(p driver.OutsideCopyContributor, v any) ([]driver.OutsideCopy, error) {
	if v == nil {
		return nil, nil
	}
	copies, err := p.OutsideCopies(v)
	if err != nil {
		return nil, err
	}
	for i := range copies {
		if err := tables.CheckKey(pass, copies[i].Key); err != nil {
			return nil, err
		}
		if strings.HasPrefix(copies[i].Key.Row, claimPrefix) {
			return nil, errors.New("a copy's row key begins with U+FFFC")
		}
		for j := range copies[:i] {
			if copies[j].Key == copies[i].Key {
				return nil, errors.New("two copies of the entity have one key")
			}
		}
	}
	return copies, nil
}

// rememberOutside lists the keys of an entity's outside copies. A key function that refuses the entity made none.
func (r *engine) rememberOutside(v any) []outsideCopy {
	var list []outsideCopy
	for _, p := range r.outside {
		copies, err := outsideCopies(p, v)
		if err != nil {
			continue
		}
		for i := range copies {
			list = append(list, outsideCopy{p.PatternName(), copies[i].Key})
		}
	}
	return list
}

// nameOutside names the outside copies that a change can touch in its intent, and notes which of them it adds.
func (r *engine) nameOutside(w *work, intent *driver.Intent) error {
	w.fresh = map[string]bool{}
	for _, p := range r.outside {
		old := priorOf(w.change.old).outsideOf(p.PatternName())
		var names []string
		if w.change.Kind != driver.ChangeDelete {
			copies, err := outsideCopies(p, w.change.Entity)
			if err != nil {
				return patternError(p, err, tables.ErrInvalid)
			}
			for i := range copies {
				names = append(names, outsideName(copies[i].Key))
				w.fresh[freshName(p, copies[i].Key)] = !slices.Contains(old, copies[i].Key)
			}
		}
		for _, key := range old {
			if name := outsideName(key); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			intent.Outside[p.PatternName()] = names
		}
	}
	return nil
}

func freshName(p driver.Pattern, key tables.Key) string {
	return p.PatternName() + keySeparator + outsideName(key)
}

// rehearseOutside checks that the outside copies of a change can be stored.
func (r *engine) rehearseOutside(w *work) error {
	for _, p := range r.outside {
		copies, err := outsideCopies(p, w.change.Entity)
		if err != nil {
			return patternError(p, err, tables.ErrInvalid)
		}
		for i := range copies {
			o := r.copyOperation(p, w.change.Key, &copies[i], w.change.Stored, anyWriteID, anyETag)
			if err := o.check(); err != nil {
				return patternError(p, err, tables.ErrInvalid)
			}
		}
	}
	return nil
}

// anyETag is as long as the service's ETags, for the size of rows that will hold one.
const anyETag = `W/"datetime'2026-01-01T00%3A00%3A00.0000000Z'"`

// checkOutsideMirror is checkMirror for the outside copies.
func (r *engine) checkOutsideMirror(given, mirror any) error {
	for _, p := range r.outside {
		a, err := outsideCopies(p, given)
		if err != nil {
			return patternError(p, err, tables.ErrInvalid)
		}
		b, err := outsideCopies(p, mirror)
		if err != nil || !slices.EqualFunc(a, b, func(a, b driver.OutsideCopy) bool { return a.Key == b.Key }) {
			return patternError(p, errUnstoredKeys, tables.ErrInvalid)
		}
	}
	return nil
}

func (r *engine) outsideSource(table *tables.Table, span compoundkey.Span, keep []string) *tables.Source {
	src := r.primary
	src.Table, src.Kept = table, keep
	src.Span = span
	if span.To() == "" && span.Err() == nil {
		src.Span = compoundkey.Range(span.From(), claimPrefix)
	}
	src.Skips = true // reserved keys
	src.System = append(slices.Clone(src.System), rows.Partition, rows.Version, rows.Reserved, rows.Term, rows.Claim)
	src.Load = loads(func(ctx context.Context, row *storedRow, selected []string) (any, error) {
		if !row.outside.is || row.outside.isClaim || row.outside.reserved != "" || row.shared {
			return nil, nil
		}
		return r.loadCopy(ctx, table, row, selected, keep)
	})
	return &src
}
