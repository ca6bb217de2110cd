package dataseries

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/tables"
)

// step is a change that rests on what was read: its write is refused once base is no longer what is stored.
type step struct {
	base  azcore.ETag // "" where nothing is there
	write func(ctx context.Context) error
}

// persist plans and writes until it is done, waiting longer each time that a rival was quicker.
//
// A write of unknown outcome may be tried once more on the same base: whichever of the two arrives first, the other is
// refused. But when that is refused, or the base is another by now, it is unknown whether it was ours or a rival's that
// came first, and to plan again could make the change twice. So that is the end, but for a change that leaves a mark of
// its own (once): planning again finds it.
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
		case !moved(err):
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

// lostTooOften is the error of a change whose last attempt was refused because of a rival, whichever way the rival was quicker.
func lostTooOften(err error) error {
	var e *tables.Error
	if !moved(err) || !errors.As(err, &e) {
		return err
	}
	lost := *e
	lost.Kind = tables.ErrConflict
	return &lost
}
