package denormalization

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// holder is the pattern of a link's holders.
type holder[H any] struct{ *relation }

// holderEnd is the holder pattern together with its repository.
type holderEnd struct {
	*relation
	host driver.Host
}

func (h holderEnd) ready() (*linked, error) { return h.relation.ready(nil, h.host) }

// holderName returns the name of the Holder pattern. It differs from the name of the Source pattern, since one
// repository can have both.
func (r *relation) holderName() string { return r.name + ".holder" }

// Attach implements patterns.Pattern; NewRepository of the holders calls it.
func (h holder[H]) Attach(host driver.Host, _ *H) (driver.Implementation, error) {
	end := holderEnd{h.relation, host}
	implementation := driver.Implementation{Name: h.holderName(), Binding: &h.ofHolder, Prior: end.prior, Complete: end.complete}
	if h.inPartition {
		implementation.Companions = end.companions
	} else {
		implementation.Intents = eventual.IntentQueue(nil, nil)
		implementation.Effect = driver.Effect{OutsideKeys: end.outsideKeys, Reconcile: driver.ReconcileEach(end.reconcile)}
	}
	if err := h.check(); err != nil {
		return implementation, err
	}
	if known := host.PropertyNames(); known != nil {
		for _, name := range h.link.Properties {
			if !slices.Contains(known, name) {
				return implementation, fmt.Errorf("Link.Properties names property %s, but %s has no such property; use the name under which the field is stored", name, h.holderType)
			}
		}
	}
	if l, err := end.ready(); err == nil {
		return implementation, h.checkTables(l.sources.Table(), host.Table())
	}
	return implementation, nil
}

// prior returns the key of a holder's source, and the digest of its copy. A change that leaves both as they
// were needs no work.
func (h holderEnd) prior(entity any, _ tables.Properties) ([]string, error) {
	place := ""
	if source, is := h.link.SourceOf(entity); is {
		place = driver.JoinKey(source)
	}
	digest, err := h.digest(entity)
	if err != nil {
		return []string{place}, nil
	}
	return []string{place, hex.EncodeToString(digest[:])}, nil
}

// completion is what complete passes to outsideKeys and companions, by Change.Note.
type completion struct {
	places  []string // keys of the sources whose copy the holder may get
	sources []any    // those of these sources that exist
}

// complete writes the copy into a holder that is inserted, or whose source or copy differs from its prior state.
func (h holderEnd) complete(ctx context.Context, c *driver.Change) error {
	c.Note(nil)
	if isBy(ctx, bySource, h.relation) {
		return nil // the source has written the copy
	}
	l, err := h.ready()
	if err != nil {
		return err
	}
	if now, err := h.prior(c.Entity, nil); err != nil || c.Kind != driver.ChangeInsert && slices.Equal(now, c.Prior) {
		return err
	}
	keys, err := l.candidates(c.Key, c.Entity, c.Prior)
	if err != nil {
		return err
	}
	done := &completion{}
	var chosen any
	for i, key := range keys {
		source, err := l.read(ctx, key)
		if err != nil {
			return err
		}
		if source == nil && i == 0 && h.holds(c.Entity, key) && (h.link.Required || h.inPartition) {
			return &tables.Error{Pattern: h.holderName(), Kind: tables.ErrMissingReference,
				Err: fmt.Errorf("the source (%q, %q) does not exist; insert it first, or let the holder refer to another one", key.Partition, key.Row)}
		}
		done.places = append(done.places, driver.JoinKey(key))
		if source != nil {
			done.sources = append(done.sources, source)
		}
		if chosen == nil && l.names(source, c.Key) {
			chosen = source
		}
	}
	c.Note(done)
	return l.fill(c.Entity, chosen)
}

// candidates returns the keys of the sources whose copy a holder may get: the source to which it refers and,
// with Holders, the source whose copy it had before, which may still name it.
func (r *linked) candidates(key tables.Key, holder any, before []string) ([]tables.Key, error) {
	var keys []tables.Key
	if source, is := r.link.SourceOf(holder); is {
		keys = append(keys, source)
	}
	if r.link.Find == nil && len(before) > 0 && before[0] != "" {
		source, err := driver.SplitKey(before[0])
		if err != nil {
			return nil, err
		}
		// A source that may not have the holder was stored by somebody else: it must not keep the holder from getting another one.
		if !slices.Contains(keys, source) && r.checkPair(source, key) == nil {
			keys = append(keys, source)
		}
	}
	for _, source := range keys {
		if err := checkKey(source); err != nil {
			return nil, fmt.Errorf("the key of the source: %w", err)
		}
		if err := r.checkPair(source, key); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// read reads a source, or returns nil if it does not exist.
func (r *linked) read(ctx context.Context, key tables.Key) (any, error) {
	source, err := r.sources.Get(ctx, key)
	if errors.Is(err, tables.ErrNotFound) {
		return nil, nil
	}
	return source, err
}

// fill writes the copy of a source into a holder that will be stored; if source is nil, it clears the copy.
func (r *linked) fill(holder any, source any) error {
	if source != nil {
		_, err := r.bring(holder, r.sources.KeyOf(source), source, true)
		return err
	}
	if key, is := r.link.SourceOf(holder); is {
		_, err := r.bring(holder, key, nil, false)
		return err
	}
	_, err := r.write(holder, nil)
	return err
}

// outsideKeys is for links made by New: the intent of a holder names the sources whose copy it may get.
func (h holderEnd) outsideKeys(_ context.Context, c *driver.Change) ([]string, error) {
	if done, _ := c.Noted().(*completion); done != nil {
		return done.places, nil
	}
	return nil, nil
}

// reconcile is for links made by New. It reads the sources again: a source that was written between complete and the holder's
// commit has not found the holder.
func (h holderEnd) reconcile(ctx context.Context, r *driver.Reconciliation) error {
	l, err := h.ready()
	if err != nil {
		return err
	}
	if r.Entity == nil {
		return nil
	}
	for _, place := range r.Keys {
		key, err := driver.SplitKey(place)
		if err != nil {
			return err
		}
		source, err := l.read(ctx, key)
		if err != nil {
			return l.sourceError(key, err)
		}
		right, err := h.isAsAsked(r.Entity, key, source, l.names(source, r.Key))
		if err != nil {
			return err
		}
		if right {
			continue
		}
		if err := l.reconcileHolder(ctx, r.Key, key); err != nil {
			return err
		}
	}
	return nil
}

// reconcileHolder reconciles a holder with a source. Each attempt reads the holder, then the source, and writes
// under the holder's ETag. After a write of the holder, the holders' repository calls reconcile again.
func (r *linked) reconcileHolder(ctx context.Context, key, source tables.Key) error {
	_, err := r.holders.Update(by(ctx, bySource, r.relation), key, func(held any) error {
		entity, err := r.read(ctx, source)
		if err != nil {
			return r.sourceError(source, err)
		}
		f, err := r.newFanOut(source, entity)
		if err != nil {
			return err
		}
		return unlessChanged(f.give(ctx, f.read, named{key: key}, held))
	})
	if err = passed(err); err != nil {
		return r.holderError(key, err)
	}
	return nil
}

// sourceError adds the source's key to an error, since an error of an intent names only the holder.
func (r *linked) sourceError(key tables.Key, err error) error {
	return r.errorAt("source", key, r.sources.Table(), err)
}

// companions is for links made by NewInPartition. It stages the sources that complete has read, unchanged,
// under their ETags. So if another writer changes a source concurrently, one of the two changes fails.
func (h holderEnd) companions(ctx context.Context, c *driver.Change, x *tables.Transaction) error {
	done, _ := c.Noted().(*completion)
	if done == nil || c.Kind == driver.ChangeDelete {
		return nil
	}
	l, err := h.ready()
	if err != nil {
		return err
	}
	for _, source := range done.sources {
		l.sources.StageUnchanged(by(ctx, byHolder, h.relation), x, source)
	}
	return nil
}
