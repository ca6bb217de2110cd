package denormalization

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// source is the pattern of a link's sources.
type source[S any] struct{ *relation }

// sourceEnd is the source pattern together with its repository.
type sourceEnd struct {
	*relation
	host driver.Host
}

func (end sourceEnd) ready() (*linked, error) { return end.relation.ready(end.host, nil) }

// Attach implements patterns.Pattern; NewRepository of the sources calls it.
func (s source[S]) Attach(host driver.Host, _ *S) (driver.Implementation, error) {
	end := sourceEnd{s.relation, host}
	implementation := driver.Implementation{Name: s.name, Binding: &s.ofSource, Prior: end.prior,
		Effect: driver.Effect{Expected: end.facts, List: end.held, Read: driver.ReadEach(end.read)}}
	if s.inPartition {
		implementation.Companions, implementation.Effect.Remove = end.companions, end.remove
	} else {
		implementation.Intents, implementation.Effect.OutsideKeys, implementation.Effect.Reconcile = eventual.IntentQueue(nil, nil), end.outsideKeys, driver.ReconcileEach(end.reconcile)
	}
	if err := s.check(); err != nil {
		return implementation, err
	}
	if l, err := end.ready(); err == nil {
		return implementation, s.checkTables(host.Table(), l.holders.Table())
	}
	return implementation, nil
}

// prior returns the keys of a source's holders. It returns none if holdersOf fails.
func (end sourceEnd) prior(entity any, _ tables.Properties) ([]string, error) {
	l, err := end.ready()
	if err != nil {
		return nil, nil // each change of the source returns the error later
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

// touched returns the keys of the holders that a change concerns: now are the holders that the source will
// name, and before those that it no longer names.
func (r *linked) touched(c *driver.Change) (now, before []tables.Key, err error) {
	if c.Kind != driver.ChangeDelete {
		if now, err = r.holdersOf(c.Entity); err != nil {
			return nil, nil, err
		}
	}
	named := setOf(now)
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

// newlyNamed is the suffix of a holder's key in an intent, if the source begins to name the holder. Such a
// holder is written even if it is correct, so that it gets a new ETag: then a concurrent writer that has read
// it earlier, to give it the copy of a previous source, fails.
const newlyNamed = "\tnew"

// outsideKeys is for links made by New. It returns the holders that a change concerns.
func (end sourceEnd) outsideKeys(_ context.Context, c *driver.Change) ([]string, error) {
	l, err := end.ready()
	if err != nil || c.Kind == driver.ChangeTouch {
		return nil, err // a touch does not change the source, so no copy changes
	}
	places := []string{allHolders}
	if end.link.Find == nil {
		now, before, err := l.touched(c)
		if err != nil {
			return nil, err
		}
		places = placesOf(c, now, before)
	}
	if len(places) > 0 && c.Kind != driver.ChangeDelete {
		if _, err := end.copyOf(c.Entity); err != nil {
			return nil, err
		}
	}
	return places, nil
}

// placesOf returns the keys of holders in the form that an intent stores.
func placesOf(c *driver.Change, now, before []tables.Key) []string {
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

// reconcile is for links made by New. If a holder cannot be written, it continues with the others. At the end
// it returns the first error, so that the intent is retried.
func (end sourceEnd) reconcile(ctx context.Context, r *driver.Reconciliation) error {
	l, err := end.ready()
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

// companions is for links made by NewInPartition: it stages the holders of a source. It also writes holders
// that are already correct, except for a touch, so that a concurrent writer that has read one before fails.
func (end sourceEnd) companions(ctx context.Context, c *driver.Change, x *tables.Transaction) error {
	if isBy(ctx, byHolder, end.relation) {
		return nil // a holder's change writes the source unchanged
	}
	l, err := end.ready()
	if err != nil {
		return err
	}
	now, before, err := l.touched(c)
	if err != nil {
		return err
	}
	for i, key := range slices.Concat(now, before) {
		if err := l.stage(ctx, c, x, key, i < len(now)); err != nil {
			return err
		}
	}
	return nil
}

// stage stages one holder, if it exists and must be written.
func (r *linked) stage(ctx context.Context, c *driver.Change, x *tables.Transaction, key tables.Key, names bool) error {
	holder, err := r.holders.GetIn(ctx, x, key)
	if errors.Is(err, tables.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	changed, err := r.bring(holder, c.Key, c.Entity, names)
	if err != nil {
		return fmt.Errorf("the holder (%q, %q): %w", key.Partition, key.Row, err)
	}
	if !changed && (!names || c.Kind == driver.ChangeTouch) {
		return nil
	}
	r.holders.Stage(by(ctx, bySource, r.relation), driver.ChangeReplace, x, holder)
	return nil
}

// remove implements Effect.Remove for links made by NewInPartition. Requests: 2, and those of wanted; 2 more
// for each conflict.
func (end sourceEnd) remove(ctx context.Context, place string, entity tables.Key, wanted func(context.Context) (bool, error)) error {
	l, err := end.ready()
	if err != nil {
		return err
	}
	key, err := driver.SplitKey(place)
	if err != nil {
		return err
	}
	_, err = l.holders.Update(by(ctx, bySource, end.relation), key, func(holder any) error {
		if !end.holds(holder, entity) {
			return errCorrect
		}
		belongs, err := wanted(ctx)
		if err != nil {
			return err
		}
		if belongs {
			return errCorrect
		}
		return unlessChanged(end.bring(holder, entity, nil, false))
	})
	return passed(err)
}

// errCorrect ends an update of a holder that is already correct.
var errCorrect = errors.New("the holder is already correct")

// unlessChanged returns errCorrect if an update has nothing to write.
func unlessChanged(changed bool, err error) error {
	if err == nil && !changed {
		return errCorrect
	}
	return err
}

// passed returns the error of an update of a holder. It returns nil if the holder was already correct or does
// not exist.
func passed(err error) error {
	if errors.Is(err, errCorrect) || errors.Is(err, tables.ErrNotFound) {
		return nil
	}
	return err
}

// facts implements Effect.Expected for sources. With Find it returns none, since a source does not know its
// holders; then held compares each holder with its source.
func (end sourceEnd) facts(source any) ([]driver.Fact, error) {
	s, err := end.ready()
	if err != nil {
		return nil, err
	}
	keys, err := s.holdersOf(source)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	digest, err := s.copyOf(source)
	if err != nil {
		return nil, err
	}
	facts := make([]driver.Fact, len(keys))
	for i, key := range keys {
		facts[i] = driver.Fact{Place: driver.JoinKey(key), Entity: s.sources.KeyOf(source), Digest: digest}
	}
	return facts, nil
}

// held implements Effect.List for sources. With Find it yields only holders whose copy is wrong: since facts
// returns none, the audit reports each of them as a copy that no source requires. It keeps all sources that it
// reads in memory. Requests: 1 for each page of the holders' table; with Find 1 more for each source to which a
// holder refers.
func (end sourceEnd) held(ctx context.Context, scope driver.Scope) iter.Seq2[driver.Fact, error] {
	return func(yield func(driver.Fact, error) bool) {
		s, err := end.ready()
		if err != nil {
			yield(driver.Fact{}, err)
			return
		}
		seen := map[tables.Key]any{}
		for holder, err := range s.scan(ctx, scope) {
			if err != nil {
				yield(driver.Fact{}, err)
				return
			}
			source, is := s.link.SourceOf(holder)
			if !is || !scope.Contains(source) {
				continue
			}
			fact := s.fact(holder, source)
			if s.link.Find != nil {
				wrong, err := s.isWrong(ctx, seen, holder, source)
				if err != nil {
					yield(driver.Fact{}, err)
					return
				}
				if !wrong {
					continue
				}
			}
			if !yield(fact, nil) {
				return
			}
		}
	}
}

// scan yields the holders that may have copies of sources in the scope.
func (r *linked) scan(ctx context.Context, scope driver.Scope) iter.Seq2[any, error] {
	query := core.Query(r.holders.Query())
	if scope.Partitions != nil && r.inPartition {
		return query.AllPartitions(ctx, scope.Partitions, core.Parallel{})
	}
	return query.AllowTableScan().AllParallel(ctx, core.Parallel{Unordered: true})
}

// fact returns the fact that a holder has a copy of a source.
func (r *linked) fact(holder any, source tables.Key) driver.Fact {
	digest, err := r.digest(holder)
	return driver.Fact{Place: driver.JoinKey(r.holders.MetaOf(holder).Key()), Entity: source, Digest: digest, Err: err}
}

// isWrong reports whether a holder's copy differs from the source to which it refers. seen has the sources that
// were read before; the value is nil for a source that does not exist.
func (r *linked) isWrong(ctx context.Context, seen map[tables.Key]any, holder any, key tables.Key) (bool, error) {
	source, known := seen[key]
	if !known && checkKey(key) == nil {
		var err error
		if source, err = r.read(ctx, key); err != nil {
			return false, err
		}
		seen[key] = source
	}
	right, err := r.isAsAsked(holder, key, source, r.names(source, r.holders.MetaOf(holder).Key()))
	return !right, err
}

// read implements Effect.Read for sources: it returns the fact of the copy in a holder. With Find, it returns
// only that of a wrong copy.
func (end sourceEnd) read(ctx context.Context, place string, entity tables.Key) (driver.Fact, bool, error) {
	key, err := driver.SplitKey(place)
	s, readyErr := end.ready()
	if err = errors.Join(err, readyErr); err != nil {
		return driver.Fact{}, false, err
	}
	holder, err := s.holders.Get(ctx, key)
	if errors.Is(err, tables.ErrNotFound) {
		return s.readMissing(ctx, key, entity)
	}
	if err != nil {
		return driver.Fact{}, false, err
	}
	source, is := s.link.SourceOf(holder)
	if !is || source != entity {
		return driver.Fact{}, false, nil
	}
	fact := s.fact(holder, source)
	if s.link.Find == nil {
		return fact, true, nil
	}
	wrong, err := s.isWrong(ctx, map[tables.Key]any{}, holder, source)
	return fact, wrong, err
}

// readMissing is read for a holder that does not exist. It returns the fact that the source requires, since a
// holder that does not exist counts as correct.
func (r *linked) readMissing(ctx context.Context, holder, entity tables.Key) (driver.Fact, bool, error) {
	if r.link.Find != nil {
		return driver.Fact{}, false, nil
	}
	source, err := r.read(ctx, entity)
	if err != nil || !r.names(source, holder) {
		return driver.Fact{}, false, err
	}
	digest, err := r.copyOf(source)
	return driver.Fact{Place: driver.JoinKey(holder), Entity: entity, Digest: digest}, err == nil, err
}
