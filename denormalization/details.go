package denormalization

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/patterns"
)

// Details are details whose holders may be anywhere. It belongs to the one Repository that it was given to.
type Details[S, T any] struct{ base[S, T] }

// New makes details that are copied into holders wherever these are: in the source's own transaction where a holder is in
// its partition, by an intent elsewhere. So it needs Schema.Intents of the sources. name tells the link from the source's
// other patterns; intents that are under way name it, so it stays the same from one version of a program to the next. It
// is given to NewRepository of the sources.
func New[S, T any](name string, link Link[S, T]) *Details[S, T] {
	return &Details[S, T]{base[S, T]{name: name, link: link}}
}

// allHolders stands in an intent for all that Find yields.
const allHolders = "*"

// newlyNamed ends the place of a holder that the change begins to name. Such a holder is written also when it is right as it
// is: whoever read it before, and is about to give it to a source that this one follows, is refused then.
const newlyNamed = placeSeparator + "new"

// OutsideKeys implements patterns.IntentContributor.
func (d *Details[S, T]) OutsideKeys(ctx context.Context, c *patterns.Change) ([]string, error) {
	var places []string
	if d.link.Find != nil {
		if places = d.refreshed(ctx); places == nil {
			places = []string{allHolders}
		}
	} else {
		now, all, err := d.touched(ctx, c)
		if err != nil {
			return nil, err
		}
		for _, key := range all {
			switch {
			case d.isBeside(c.Key, key):
			case slices.Contains(now, key) && !slices.Contains(c.Remembered(d.name), placeOf(key)):
				places = append(places, placeOf(key)+newlyNamed)
			default:
				places = append(places, placeOf(key))
			}
		}
	}
	if len(places) > 0 && c.Kind != patterns.ChangeDelete {
		if _, err := d.copyOf(c.Entity.(*S)); err != nil {
			return nil, err // before anything is written
		}
	}
	return places, nil
}

// Reconcile implements patterns.IntentContributor. One holder that cannot be written does not keep the others from being
// written; its error is returned in the end, and the intent is carried out again.
func (d *Details[S, T]) Reconcile(ctx context.Context, r *patterns.Reconciliation) error {
	all := newCrew(d.link.Concurrency)
	for _, place := range r.Keys {
		if place == allHolders {
			all.failed(d.fanOut(ctx, r, all))
			continue
		}
		known, isNew := strings.CutSuffix(place, newlyNamed)
		key, err := parsePlace(known)
		if err != nil {
			all.failed(err)
			continue
		}
		if err := ctx.Err(); err != nil {
			all.failed(err)
			break
		}
		all.do(func() error { return d.agree(ctx, r, key, isNew) })
	}
	return all.wait()
}

// fanOut brings all holders that Find yields into agreement. Those that are right already cost nothing more, so that what
// was begun before goes on where it ended.
func (d *Details[S, T]) fanOut(ctx context.Context, r *patterns.Reconciliation, all *crew) error {
	if d.link.Find == nil {
		return errors.New("the intent is of a link with Find, and this program's has none")
	}
	found := 0
	for holder, err := range d.link.Find(ctx, r.Key) {
		if err != nil {
			return err
		}
		if found++; found > d.limit() {
			return d.tooMany(r.Key)
		}
		key, inStep, err := d.inStep(r, holder)
		if err != nil {
			return err
		}
		if !inStep {
			all.do(func() error { return d.agree(ctx, r, key, false) })
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// inStep reports whether a holder that Find yielded is right as it is. One that was read through an index may have changed.
func (d *Details[S, T]) inStep(r *patterns.Reconciliation, holder *T) (patterns.Key, bool, error) {
	meta := d.link.Target.MetaOf(holder)
	key := meta.Key()
	if key == (patterns.Key{}) {
		return key, false, errors.New("a holder that Find yields was not read from a table")
	}
	if meta.ReadRow() != key.Row {
		return key, false, nil
	}
	source, _ := r.Entity.(*S)
	changed, err := d.settle(holder, r.Key, source, true)
	return key, !changed, err
}

// agree brings one holder into agreement with the source as it was seen, under the holder's ETag. isNew says that the source
// has just begun to name it.
func (d *Details[S, T]) agree(ctx context.Context, r *patterns.Reconciliation, key patterns.Key, isNew bool) error {
	_, err := d.link.Target.Update(ctx, key, func(holder *T) error {
		changed, err := d.bring(ctx, r, key, holder)
		if held, is := d.link.Held(holder); err == nil && !changed && !(isNew && is && held == r.Key) {
			return errInStep
		}
		return err
	})
	if err = passed(err); err == nil {
		return nil
	}
	return d.holderError(key, err)
}

// bring decides about one holder, which was just read.
func (d *Details[S, T]) bring(ctx context.Context, r *patterns.Reconciliation, key patterns.Key, holder *T) (changed bool, err error) {
	source, _ := r.Entity.(*S)
	keys, err := d.holders(source)
	if err != nil {
		return false, err
	}
	names := slices.Contains(keys, key)
	if held, is := d.link.Held(holder); names && is && held != r.Key {
		if takes, err := d.takes(ctx, r.Key, held, key); err != nil || !takes {
			return false, err
		}
	}
	return d.settle(holder, r.Key, source, names)
}

// takes reports whether a source takes a holder from the one whose copy it has: if that does not name it any more, or was
// written before this one. A message that comes late cannot give the holder back to a source that was followed by another.
func (d *Details[S, T]) takes(ctx context.Context, source, rival, holder patterns.Key) (bool, error) {
	if checkKey(rival) != nil {
		return true, nil
	}
	theirs, err := d.naming(ctx, rival, holder)
	if err != nil || theirs == nil {
		return err == nil, err
	}
	ours, err := d.naming(ctx, source, holder)
	if err != nil || ours == nil {
		return false, err // it has changed since it was seen, and will be looked at again
	}
	return d.source.MetaOf(ours).Timestamp.After(d.source.MetaOf(theirs).Timestamp), nil
}

// naming reads a source as it is now, nil for one that does not name the holder.
func (d *Details[S, T]) naming(ctx context.Context, source, holder patterns.Key) (*S, error) {
	v, err := d.source.Get(ctx, source)
	if patterns.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if keys, err := d.holders(v); err != nil || !slices.Contains(keys, holder) {
		return nil, nil // what the link refuses names nobody
	}
	return v, nil
}

// holderError says of which holder an error is: what is reported of an intent names the source.
func (d *Details[S, T]) holderError(key patterns.Key, err error) error {
	where := fmt.Errorf("the holder (%q, %q) in %s: %w", key.Partition, key.Row, d.link.Target.Table().Name(), err)
	var e *patterns.Error
	if !errors.As(err, &e) {
		return where
	}
	return &patterns.Error{Index: -1, Pattern: d.name, Code: e.Code, Kind: e.Kind, Err: where}
}
