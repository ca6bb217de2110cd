package denormalization

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// source is the pattern of a link's sources.
type source[S, H any] struct{ *relation[S, H] }

// sourceEnd is that pattern in its repository.
type sourceEnd[S, H any] struct {
	*relation[S, H]
	host driver.Host[S]
}

func (s sourceEnd[S, H]) ready() (*linked[S, H], error) { return s.relation.ready(s.host, nil) }

// Attach implements patterns.Pattern; NewRepository of the sources calls it.
func (s source[S, H]) Attach(host driver.Host[S]) (driver.Implementation[S], error) {
	end := sourceEnd[S, H]{s.relation, host}
	implementation := driver.Implementation[S]{Name: s.name, Binding: &s.ofSource, Prior: end.prior,
		Audit: &driver.Audit[S]{Expected: end.facts, List: end.held, Read: driver.ReadEach(end.read)}}
	if s.inPartition {
		implementation.Companions, implementation.Audit.Remove = end.companions, end.remove
	} else {
		implementation.OutsideKeys, implementation.Reconcile = end.outsideKeys, driver.ReconcileEach(end.reconcile)
	}
	if err := s.check(); err != nil {
		return implementation, err
	}
	if l, err := end.ready(); err == nil {
		return implementation, s.checkTables(host.Table(), l.holders.Table())
	}
	return implementation, nil
}

// prior returns the keys of the holders of a source as it was read. For a source that the link refuses it
// returns none, since such a source never had holders.
func (s sourceEnd[S, H]) prior(entity *S, _ tables.Properties) ([]string, error) {
	l, err := s.ready()
	if err != nil {
		return nil, nil // each change of a source returns this error
	}
	keys, err := l.holdersOf(entity)
	if err != nil {
		return nil, nil
	}
	var places []string
	for _, key := range keys {
		places = append(places, driver.JoinKey(key))
	}
	return places, nil
}

// touched returns the holders that a change concerns: now has the holders that the source will have, before
// the holders that it had.
func (s *linked[S, H]) touched(c *driver.Change[S]) (now, before []tables.Key, err error) {
	named := map[tables.Key]bool{}
	if c.Kind != driver.ChangeDelete {
		if now, err = s.holdersOf(c.Entity); err != nil {
			return nil, nil, err
		}
		for _, key := range now {
			named[key] = true
		}
	}
	for _, place := range c.Prior {
		key, err := driver.SplitKey(place)
		if err != nil {
			return nil, nil, err
		}
		if !named[key] {
			before = append(before, key)
		}
	}
	return now, before, nil
}

// allHolders is the key in an intent that stands for all holders that Find yields.
const allHolders = "*"

// newlyNamed is the suffix of a holder that the change begins to name. Such a holder is rewritten even if already
// correct: the new ETag makes a concurrent writer that read it earlier, on behalf of a previous source, fail.
const newlyNamed = "\tnew"

// outsideKeys is for links made by New. It names the holders that the change concerns.
func (s sourceEnd[S, H]) outsideKeys(_ context.Context, c *driver.Change[S]) ([]string, error) {
	l, err := s.ready()
	if err != nil || c.Kind == driver.ChangeTouch {
		return nil, err // a touch changes no copy
	}
	places := []string{allHolders}
	if s.link.Find == nil {
		now, before, err := l.touched(c)
		if err != nil {
			return nil, err
		}
		places = placesOf(c, now, before)
	}
	if len(places) > 0 && c.Kind != driver.ChangeDelete {
		if _, err := s.copyOf(c.Entity); err != nil {
			return nil, err // return the error before anything is written
		}
	}
	return places, nil
}

// placesOf returns the keys of holders in the form that an intent stores.
func placesOf[S any](c *driver.Change[S], now, before []tables.Key) []string {
	had := map[string]bool{}
	for _, place := range c.Prior {
		had[place] = true
	}
	var places []string
	for _, key := range now {
		place := driver.JoinKey(key)
		if !had[place] {
			place += newlyNamed
		}
		places = append(places, place)
	}
	for _, key := range before {
		places = append(places, driver.JoinKey(key))
	}
	return places
}

// reconcile is for links made by New. It continues after a holder that cannot be written, and returns the
// first such error at the end, so that the intent is retried.
func (s sourceEnd[S, H]) reconcile(ctx context.Context, r *driver.Reconciliation[S]) error {
	l, err := s.ready()
	if err != nil {
		return err
	}
	f, err := l.newFanOut(r.Key, r.Entity)
	if err != nil {
		return err
	}
	var holders []named
	for _, place := range r.Keys {
		if place == allHolders {
			f.failed(f.all(ctx))
			continue
		}
		known, isNew := strings.CutSuffix(place, newlyNamed)
		key, err := driver.SplitKey(known)
		if err != nil {
			f.failed(err)
			continue
		}
		holders = append(holders, named{key, isNew})
	}
	f.each(ctx, holders)
	return f.wait()
}

// companions is for links made by NewInPartition: it stages the holders of the source. It writes each holder
// that the source names even if nothing in it changes, so that a concurrent writer that has read the holder
// before fails. A touch writes only the holders whose copy is wrong.
func (s sourceEnd[S, H]) companions(ctx context.Context, c *driver.Change[S], x *tables.Transaction) error {
	if isBy(ctx, byHolder, s.relation) {
		return nil // the change does not alter the source
	}
	l, err := s.ready()
	if err != nil {
		return err
	}
	now, before, err := l.touched(c)
	if err != nil {
		return err
	}
	for i, key := range slices.Concat(now, before) {
		if key.Partition != c.Key.Partition {
			return fmt.Errorf("the holder (%q, %q) is not in the partition of its source; a link of NewInPartition copies within a partition only, so use New", key.Partition, key.Row)
		}
		if err := l.stage(ctx, c, x, key, i < len(now)); err != nil {
			return err
		}
	}
	return nil
}

// stage stages one holder, unless the change does not affect it.
func (s *linked[S, H]) stage(ctx context.Context, c *driver.Change[S], x *tables.Transaction, key tables.Key, names bool) error {
	holder, err := s.holders.GetIn(ctx, x, key)
	if errors.Is(err, tables.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	changed, err := s.bring(holder, c.Key, c.Entity, names)
	if err != nil {
		return fmt.Errorf("the holder (%q, %q): %w", key.Partition, key.Row, err)
	}
	if !changed && (!names || c.Kind == driver.ChangeTouch) {
		return nil
	}
	s.holders.Stage(by(ctx, bySource, s.relation), driver.ChangeReplace, x, holder)
	return nil
}

// remove implements Audit.Remove for links made by NewInPartition. Requests: 2, and those of wanted; 2 more
// for each conflict.
func (s sourceEnd[S, H]) remove(ctx context.Context, place string, entity tables.Key, wanted func(context.Context) (bool, error)) error {
	l, err := s.ready()
	if err != nil {
		return err
	}
	key, err := driver.SplitKey(place)
	if err != nil {
		return err
	}
	_, err = l.holders.Update(by(ctx, bySource, s.relation), key, func(holder *H) error {
		if !s.holds(holder, entity) {
			return errCorrect
		}
		belongs, err := wanted(ctx)
		if err != nil {
			return err
		}
		if belongs {
			return errCorrect
		}
		return unlessChanged(s.bring(holder, entity, nil, false))
	})
	return passed(err)
}

// errCorrect ends an update of a holder that is already correct.
var errCorrect = errors.New("the holder is already correct")

// unlessChanged ends an update that has nothing to write.
func unlessChanged(changed bool, err error) error {
	if err == nil && !changed {
		return errCorrect
	}
	return err
}

// passed returns nil for an error that says that a holder needs no change or does not exist, and any other
// error unchanged.
func passed(err error) error {
	if errors.Is(err, errCorrect) || errors.Is(err, tables.ErrNotFound) {
		return nil
	}
	return err
}
