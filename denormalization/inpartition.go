package denormalization

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/patterns"
)

// DetailsInPartition are details whose holders are all in their sources' own partitions. It belongs to the one Repository
// that it was given to.
type DetailsInPartition[S, T any] struct{ base[S, T] }

// NewInPartition makes details that are written in their sources' own transactions, so that no reader ever sees them out of
// step, and without a queue. A source that names a holder elsewhere is refused, and so is a Target with effects outside of
// the partition, whose changes no transaction can hold. name tells the link from the source's other patterns; it
// is given to NewRepository of the sources.
func NewInPartition[S, T any](name string, link Link[S, T]) *DetailsInPartition[S, T] {
	return &DetailsInPartition[S, T]{base[S, T]{name: name, link: link, inPartition: true}}
}

// Attach is called by NewRepository for the sources' repository, with nil where the link is free again.
func (d *DetailsInPartition[S, T]) Attach(host patterns.Host) error {
	if err := d.base.Attach(host); err != nil || host == nil {
		return err
	}
	err := func() error {
		switch {
		case d.link.Find != nil:
			return errors.New("details in the partition need Holders; with Find, New")
		case !d.shares:
			return fmt.Errorf("the holders are on table %s, so their copies are not in the sources' partitions; New", d.link.Target.Table().Name())
		case d.nested:
			return errors.New("changes of the holders have effects outside of the partition, which a transaction cannot hold; New")
		}
		return nil
	}()
	if err != nil {
		d.source = nil
	}
	return err
}

// Companions implements patterns.CompanionContributor.
func (d *DetailsInPartition[S, T]) Companions(ctx context.Context, c *patterns.Change, x *patterns.Transaction) error {
	_, all, err := d.touched(ctx, c)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(all, func(key patterns.Key) bool { return !d.isBeside(c.Key, key) }); i >= 0 {
		return fmt.Errorf("the holder (%q, %q) is in another partition; New makes details that reach it", all[i].Partition, all[i].Row)
	}
	return d.base.Companions(ctx, c, x)
}

// Mend implements patterns.Mender. Requests: 2, and those of wanted; 2 more for each rival.
func (d *DetailsInPartition[S, T]) Mend(ctx context.Context, place string, entity patterns.Key, wanted func(context.Context) (bool, error)) error {
	key, err := parsePlace(place)
	if err != nil {
		return err
	}
	_, err = d.link.Target.Update(ctx, key, func(holder *T) error {
		if held, is := d.link.Held(holder); !is || held != entity {
			return errInStep
		}
		belongs, err := wanted(ctx)
		if err != nil {
			return err
		}
		if belongs {
			return errInStep
		}
		changed, err := d.settle(holder, entity, nil, false)
		if err == nil && !changed {
			return errInStep
		}
		return err
	})
	return passed(err)
}

// errInStep ends an update of a holder that is right as it is.
var errInStep = errors.New("the holder is in step")

// passed makes nothing of the errors of a holder that needs no change, or is gone.
func passed(err error) error {
	if errors.Is(err, patterns.ErrUnknownOutcome) {
		return err
	}
	if errors.Is(err, errInStep) || patterns.IsAbsent(err) {
		return nil
	}
	return err
}
