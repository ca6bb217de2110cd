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

// sourceEnd is what both kinds of Source share.
type sourceEnd[S, H any] struct{ *relation[S, H] }

// PatternName returns the name of the link.
func (s *sourceEnd[S, H]) PatternName() string { return s.name }

// Attach is called by NewRepository of the sources, with nil where the link is free again.
func (s *sourceEnd[S, H]) Attach(host driver.Host) error {
	if host == nil {
		s.sources = nil
		return nil
	}
	sources, err := attachTo(s.relation, host, s.sources, s.inPartition)
	if err == nil && s.holders != nil {
		err = s.checkTables(sources.Table(), s.holders.Table())
	}
	if err != nil {
		return err
	}
	s.sources = sources
	return nil
}

// Remember notes the holders of a source as it was read. What the link refuses never had any.
func (s *sourceEnd[S, H]) Remember(entity any, _ tables.Properties) ([]string, error) {
	if s.ready() != nil {
		return nil, nil // each change of a source says so
	}
	keys, err := s.holdersOf(entity.(*S))
	if err != nil {
		return nil, nil
	}
	var places []string
	for _, key := range keys {
		places = append(places, placeOf(key))
	}
	return places, nil
}

// touched returns the holders that a change concerns: those that the source will have, then those that it had.
func (s *sourceEnd[S, H]) touched(c *driver.Change) (now, before []tables.Key, err error) {
	named := map[tables.Key]bool{}
	if c.Kind != driver.ChangeDelete {
		if now, err = s.holdersOf(c.Entity.(*S)); err != nil {
			return nil, nil, err
		}
		for _, key := range now {
			named[key] = true
		}
	}
	for _, place := range c.Remembered(s.name) {
		key, err := parsePlace(place)
		if err != nil {
			return nil, nil, err
		}
		if !named[key] {
			before = append(before, key)
		}
	}
	return now, before, nil
}

// source is the Source of a link whose holders are anywhere.
type source[S, H any] struct{ sourceEnd[S, H] }

// allHolders stands in an intent for all that Find yields.
const allHolders = "*"

// newlyNamed ends the place of a holder that the change begins to name. Such a holder is written also when it is right as it
// is: a writer that read it before, and is about to give it the copy of a source that this one follows, is refused then.
const newlyNamed = placeSeparator + "new"

// OutsideKeys implements driver.IntentContributor.
func (s *source[S, H]) OutsideKeys(_ context.Context, c *driver.Change) ([]string, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	places := []string{allHolders}
	if s.link.Find == nil {
		now, before, err := s.touched(c)
		if err != nil {
			return nil, err
		}
		places = s.placesOf(c, now, before)
	}
	if len(places) > 0 && c.Kind != driver.ChangeDelete {
		if _, err := s.copyOf(c.Entity.(*S)); err != nil {
			return nil, err // before anything is written
		}
	}
	return places, nil
}

// placesOf names holders in an intent.
func (s *source[S, H]) placesOf(c *driver.Change, now, before []tables.Key) []string {
	had := map[string]bool{}
	for _, place := range c.Remembered(s.name) {
		had[place] = true
	}
	var places []string
	for _, key := range now {
		place := placeOf(key)
		if !had[place] {
			place += newlyNamed
		}
		places = append(places, place)
	}
	for _, key := range before {
		places = append(places, placeOf(key))
	}
	return places
}

// Reconcile implements driver.IntentContributor. A holder that cannot be written does not keep the others from being
// written; the first such error is returned in the end, and the intent is carried out again.
func (s *source[S, H]) Reconcile(ctx context.Context, r *driver.Reconciliation) error {
	if err := s.ready(); err != nil {
		return err
	}
	f, err := s.newFanOut(r)
	if err != nil {
		return err
	}
	for _, place := range r.Keys {
		if place == allHolders {
			f.failed(f.all(ctx))
			continue
		}
		known, isNew := strings.CutSuffix(place, newlyNamed)
		key, err := parsePlace(known)
		if err != nil {
			f.failed(err)
			continue
		}
		if err := ctx.Err(); err != nil {
			f.failed(err)
			break
		}
		f.do(func() error { return f.one(ctx, key, isNew) })
	}
	return f.wait()
}

// sourceInPartition is the Source of a link whose holders are in their sources' partitions.
type sourceInPartition[S, H any] struct{ sourceEnd[S, H] }

// Companions implements driver.CompanionContributor: it stages the holders of the source. Each one that the source names is
// written, also when nothing in it changes: a writer that read it before is refused then.
func (s *sourceInPartition[S, H]) Companions(ctx context.Context, c *driver.Change, x *tables.Transaction) error {
	if isBy(ctx, byHolder, s.relation) {
		return nil // the source stays as it is
	}
	if err := s.ready(); err != nil {
		return err
	}
	now, before, err := s.touched(c)
	if err != nil {
		return err
	}
	for i, key := range slices.Concat(now, before) {
		if key.Partition != c.Key.Partition {
			return fmt.Errorf("the holder (%q, %q) is not in the partition of its source; a link of New reaches it, one of NewInPartition does not", key.Partition, key.Row)
		}
		if err := s.stage(ctx, c, x, key, i < len(now)); err != nil {
			return err
		}
	}
	return nil
}

// stage stages one holder, unless the change leaves it alone.
func (s *sourceInPartition[S, H]) stage(ctx context.Context, c *driver.Change, x *tables.Transaction, key tables.Key, names bool) error {
	holder, err := s.holders.Get(ctx, key)
	if tables.IsAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	source, _ := c.Entity.(*S)
	changed, err := s.bring(holder, c.Key, source, names)
	if err != nil {
		return fmt.Errorf("the holder (%q, %q): %w", key.Partition, key.Row, err)
	}
	if !changed && !names {
		return nil
	}
	return s.holders.StageReplace(by(ctx, bySource, s.relation), x, holder)
}

// Mend implements driver.Mender. Requests: 2, and those of wanted; 2 more for each conflict.
func (s *sourceInPartition[S, H]) Mend(ctx context.Context, place string, entity tables.Key, wanted func(context.Context) (bool, error)) error {
	if err := s.ready(); err != nil {
		return err
	}
	key, err := parsePlace(place)
	if err != nil {
		return err
	}
	_, err = s.holders.Update(by(ctx, bySource, s.relation), key, func(holder *H) error {
		if !s.holds(holder, entity) {
			return errInStep
		}
		belongs, err := wanted(ctx)
		if err != nil {
			return err
		}
		if belongs {
			return errInStep
		}
		return unlessChanged(s.bring(holder, entity, nil, false))
	})
	return passed(err)
}

// errInStep ends an update of a holder that is right as it is.
var errInStep = errors.New("the holder is in step")

// unlessChanged ends an update that has nothing to write.
func unlessChanged(changed bool, err error) error {
	if err == nil && !changed {
		return errInStep
	}
	return err
}

// passed makes nothing of the errors of a holder that needs no change, or does not exist.
func passed(err error) error {
	if errors.Is(err, tables.ErrUnknownOutcome) {
		return err
	}
	if errors.Is(err, errInStep) || tables.IsAbsent(err) {
		return nil
	}
	return err
}
