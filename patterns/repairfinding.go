package patterns

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/sets"
	"github.com/tablepatterns/tablepatterns/tables"
)

// fatal returns an error that ends the run, or nil if err concerns only one entity.
func fatal(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, kind := range []error{tables.ErrDenied, tables.ErrMissingResource, tables.ErrBeingDeleted} {
		if errors.Is(err, kind) {
			return err
		}
	}
	return nil
}

// repairAlone runs repairFinding while no other worker of the run writes a row that the finding's entity shares with others.
func (v *verifier) repairAlone(ctx context.Context, f *finding) error {
	names := v.r.SharedBy(f.Entity, nil)
	if a := v.areas[f.site.area].auditor; a != nil {
		names = append(names, engine.HeldName(a, f.Location))
	}
	release, err := v.locks.Acquire(ctx, names)
	if err != nil {
		return err
	}
	defer release()
	return v.repairFinding(ctx, f)
}

// repairFinding repairs one finding.
func (v *verifier) repairFinding(ctx context.Context, f *finding) error {
	a := &v.areas[f.site.area]
	removes, intends := a.auditor != nil && a.auditor.Audit.Remove != nil, a.auditor != nil && a.auditor.OutsideKeys != nil
	switch {
	case f.Kind == Spurious && a.auditor == nil:
		return v.removeSpurious(ctx, f)
	case f.Kind == Spurious && removes:
		return v.removeHeld(ctx, a.auditor, f)
	case f.site.area == nearArea, a.auditor != nil && (removes || !intends && f.Kind != Spurious):
		return v.rewrite(ctx, f)
	case a.auditor == nil:
		return v.repairOutside(ctx, f)
	case intends:
		return reconcileOne(ctx, v.r, "", &engine.Again{Key: f.Entity, Named: map[string][]string{f.Pattern: {f.Location}}})
	}
	return &tables.Error{Op: v.op, Table: v.r.Table.Name(), Key: f.Entity, Pattern: f.Pattern, Kind: tables.ErrInvalid,
		Err: errors.New("no entity requires what the pattern has stored, and its Implementation has neither Audit.Remove nor OutsideKeys; remove it by hand")}
}

// wrongStill checks a finding again, since another process may have repaired it, or Repair itself with
// another finding. It returns the finding as it is now, or nil if nothing is wrong. For a finding that needs
// no Lag this one check is exact. For any other finding, confirm has already waited for Lag.
func (v *verifier) wrongStill(ctx context.Context, f *finding) (*finding, *seenPlace, error) {
	s := &candidate{site: f.site, extraClaims: f.extraClaims}
	p, err := v.readPlace(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	e, err := v.readEntity(ctx, s.entity)
	if err != nil {
		return nil, nil, err
	}
	return v.compare(s, e, p), p, nil
}

// removeSpurious deletes the wrong rows under the ETags with which they were found wrong. A row that is wrong
// under an ETag stays wrong as long as it has that ETag, so a delayed delete is harmless.
func (v *verifier) removeSpurious(ctx context.Context, f *finding) error {
	if errors.Is(f.Err, errNoTerm) {
		return &tables.Error{Op: v.op, Table: v.areas[f.site.area].table.Name(), Key: f.Entity, Pattern: f.Pattern, Kind: tables.ErrConflict, Err: errNoTerm}
	}
	table := v.areas[f.site.area].table
	var operations []engine.Operation
	for _, e := range f.wrongRows {
		if e.misplaced {
			if err := v.removeMisplaced(ctx, table, e); err != nil {
				return err
			}
			continue
		}
		operations = append(operations, engine.Operation{Verb: wire.VerbDelete, Key: e.key, IfMatch: azcore.ETag(e.etag), Meaning: engine.Meaning{Pattern: f.Pattern}})
	}
	if len(operations) == 0 {
		return nil
	}
	_, err := engine.Commit(ctx, table, v.op, operations...)
	if err == nil {
		return nil
	}
	is, _, again := v.wrongStill(ctx, f)
	if again == nil && is == nil {
		return nil // another process deleted it
	}
	return err
}

// removeHeld makes a pattern with an Audit remove a fact that no entity requires.
func (v *verifier) removeHeld(ctx context.Context, p *engine.Pattern, f *finding) error {
	return p.Audit.Remove(ctx, f.Location, f.Entity, func(ctx context.Context) (bool, error) {
		e, err := v.readEntity(ctx, f.Entity)
		if err != nil {
			return false, err
		}
		wanted, refused := wantedHeld(p, e, f.Location)
		return wanted != nil || refused || !e.known(), nil // if unknown, the fact stays
	})
}

// rewrite writes the entity of a finding again with all its rows, unless the discrepancy has disappeared.
func (v *verifier) rewrite(ctx context.Context, f *finding) error {
	return backoff.Retry(ctx, v.r.Schema.MaxAttempts, func() (again bool, err error) {
		is, _, err := v.wrongStill(ctx, f)
		if err != nil || is == nil {
			return false, err
		}
		if is.Kind == Spurious {
			return false, v.repairFinding(ctx, is) // the entity was deleted or changed meanwhile
		}
		err = v.r.RewriteNow(ctx, v.op, f.Entity)
		return sets.Lost(err), err
	})
}

// repairOutside removes the spurious rows under the key of an outside copy, then writes the copy that the
// entity requires.
func (v *verifier) repairOutside(ctx context.Context, f *finding) error {
	is, p, err := v.wrongStill(ctx, f)
	if err != nil || is == nil {
		return err
	}
	if is.Kind == Spurious {
		return v.removeSpurious(ctx, f)
	}
	if p.occupant() != nil {
		if err := v.evict(ctx, f, p.row); err != nil {
			return err
		}
	}
	if junk := p.junk(); len(junk) > 0 {
		if err := v.removeSpurious(ctx, &finding{Finding: f.Finding, site: f.site, extraClaims: f.extraClaims, wrongRows: junk}); err != nil {
			return err
		}
	}
	if is.Err == errLeftOver {
		return nil
	}
	change := ""
	if own := p.own(); own != nil {
		change = own.Outside.Reserved
	}
	return reconcileOne(ctx, v.r, change, &engine.Again{Key: f.Entity, Named: map[string][]string{f.Pattern: {f.Location}}})
}

// junk returns the rows that block the required copy: claims of reservations. It leaves out the claim of the
// reserved row itself, since filling the row removes that claim. A reserved row stays even without its claim:
// if the key were free for a moment, another entity could take it.
func (p *seenPlace) junk() []rowVersion {
	var junk []rowVersion
	for _, extraClaim := range p.extraClaims {
		if p.reserved() && extraClaim.Key == engine.ClaimKey(p.row.Key, p.entity, p.row.Outside.Reserved) {
			continue
		}
		junk = append(junk, rowVersionOf(extraClaim))
	}
	return junk
}

// evict removes a row that blocks a copy, if it is a copy that its own entity does not require.
func (v *verifier) evict(ctx context.Context, f *finding, row *engine.StoredRow) error {
	taken := &tables.Error{Op: v.op, Table: v.areas[f.site.area].table.Name(), Key: row.Key, Pattern: f.Pattern, Kind: tables.ErrDuplicate, Err: engine.OwnerOf(row)}
	owner := tables.Key{Partition: row.Outside.Partition, Row: row.Primary}
	if !row.Outside.Is || row.Shared || row.Outside.IsClaim || !v.r.Schema.Own.Keeps(owner) {
		return taken
	}
	s := &candidate{site: site{f.site.area, f.Location, owner}}
	if err := v.inspectFirst(ctx, s); err != nil {
		return err
	}
	if err := backoff.Sleep(ctx, v.areas[s.area].lag); err != nil {
		return err
	}
	if err := v.inspectAgain(ctx, s); err != nil {
		return err
	}
	if s.is == nil || s.is.Kind != Spurious {
		return taken
	}
	return v.removeSpurious(ctx, s.is)
}
