package dataseries

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/tables"
)

// step is the write of a change, planned from a read. The service refuses it if the stored ETag is no longer base.
type step struct {
	base  azcore.ETag // "" if nothing is stored
	write func(ctx context.Context) error
}

// persist plans and writes a change, and plans again on conflict, at most attempts times in all.
//
// After a write with unknown outcome, persist writes again only while the base is the same: of several writes with
// one base the service applies at most one. A refusal, or another base, can come from the first write or from a
// concurrent writer, so a new plan could make the change twice. Then persist returns an error, unless once says that
// the next plan finds out whether the change was made, for example by its mark.
func persist(ctx context.Context, attempts int, once bool, plan func(ctx context.Context) (step, error)) error {
	var unsure error
	var base azcore.ETag
	for n := 0; ; n++ {
		s, err := plan(ctx)
		if err != nil {
			return unknownBeside(unsure, err)
		}
		if unsure != nil && !once && s.base != base {
			return unsure
		}
		err = s.write(ctx)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, tables.ErrUnknownOutcome):
			if unsure == nil {
				unsure, base = err, s.base
			}
		case !isLost(err):
			return unknownBeside(unsure, err)
		case unsure != nil && !once:
			return unsure
		}
		if n+1 >= attempts {
			return unknownBeside(unsure, lostTooOften(err))
		}
		if err := backoff.Wait(ctx, n); err != nil {
			return unknownBeside(unsure, err)
		}
	}
}

// lostTooOften returns ErrConflict for a conflict in the last attempt, whatever its kind, and otherwise err.
func lostTooOften(err error) error {
	var e *tables.Error
	if !isLost(err) || !errors.As(err, &e) {
		return err
	}
	lost := *e
	lost.Kind = tables.ErrConflict
	return &lost
}

// ErrOverflow is the cause of an error of kind tables.ErrInvalid: the type of the slots cannot hold the sum.
// The slot is unchanged.
var ErrOverflow = errors.New("the sum overflows the type of the slots; the slot is unchanged, so use a larger type or a smaller delta")

// ErrOtherAddition is the cause of an error of kind tables.ErrExists: the operation's ID was counted before
// with another slot or delta. This call has counted nothing.
var ErrOtherAddition = errors.New("the operation's ID was counted before with another slot or delta; give each addition to a series an ID of its own")

func garbled(key tables.Key, err error) error {
	return &tables.Error{Key: key, Kind: tables.ErrGarbled, Err: err}
}

// checkKeys refuses keys that a row cannot have, also for series in blobs, so that they can be moved into rows later.
func checkKeys(key tables.Key) error {
	for _, k := range []string{key.Partition, key.Row} {
		err := compoundkey.CheckKey(k)
		if n := edm.Units(k); err != nil && compoundkey.Err(k) == nil && n > compoundkey.MaxUnits {
			err = &edm.SizeError{What: "a key", Size: n, Limit: compoundkey.MaxUnits, Unit: "UTF-16 units"}
		}
		if err != nil {
			return errs.Invalid("", err)
		}
	}
	return nil
}

// unknownBeside returns err, but as a cause of ErrUnknownOutcome if unsure is set: the error of an earlier attempt that may
// have been applied.
func unknownBeside(unsure, err error) error {
	if unsure == nil {
		return err
	}
	return &tables.Error{Kind: tables.ErrUnknownOutcome, Err: fmt.Errorf("an earlier attempt got no response and may have been applied; the next one failed: %w", err)}
}

// isLost reports whether the service has refused a write because a concurrent writer has changed, inserted or deleted the row.
func isLost(err error) bool {
	return slices.Contains([]error{tables.ErrConflict, tables.ErrExists, tables.ErrNotFound}, tables.KindOf(err))
}
