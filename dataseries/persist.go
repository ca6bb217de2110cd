package dataseries

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/tables"
)

// step is a change that was planned from a read: the service refuses its write if the stored ETag is no
// longer base.
type step struct {
	base  azcore.ETag // "" if nothing is stored
	write func(ctx context.Context) error
}

// persist plans and writes, and retries with growing delays on conflict.
//
// persist retries a write with unknown outcome once with the same base, since the service applies at most one
// of the two. But if the retry is refused, or the base has changed, either the first write or a concurrent
// writer's was applied, and a new plan could make the change twice. Then persist returns an error, unless the
// change leaves a mark (once), which the next plan finds.
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

// lostTooOften returns the error of a change all of whose attempts were refused because of conflicts.
func lostTooOften(err error) error {
	var e *tables.Error
	if !isLost(err) || !errors.As(err, &e) {
		return err
	}
	lost := *e
	lost.Kind = tables.ErrConflict
	return &lost
}
