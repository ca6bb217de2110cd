package denormalization

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// holderEnd is what both kinds of Holder share.
type holderEnd[S, H any] struct{ *relation[S, H] }

// holderSuffix ends the name of a link's Holder: both ends may be in one repository, where names differ.
const holderSuffix = ".holder"

// PatternName returns the name of the link with a suffix.
func (h *holderEnd[S, H]) PatternName() string { return h.name + holderSuffix }

// Attach is called by NewRepository of the holders, with nil where the link is free again.
func (h *holderEnd[S, H]) Attach(host driver.Host) error {
	if host == nil {
		h.holders = nil
		return nil
	}
	holders, err := attachTo(h.relation, host, h.holders, h.inPartition)
	if err == nil && h.sources != nil {
		err = h.checkTables(h.sources.Table(), holders.Table())
	}
	if err != nil {
		return err
	}
	if known := holders.PropertyNames(); known != nil {
		for _, name := range h.link.Properties {
			if !slices.Contains(known, name) {
				return fmt.Errorf("Link.Properties names property %s, which %s does not have", name, holders.EntityType())
			}
		}
	}
	codec, err := tables.NewCodec[H]()
	if err != nil {
		return err
	}
	h.codec, h.holders = codec, holders
	return nil
}

// Remember notes the source and the copy of a holder as it was read: a change that leaves both as they are needs nothing.
func (h *holderEnd[S, H]) Remember(entity any, _ tables.Properties) ([]string, error) {
	holder := entity.(*H)
	place := ""
	if source, is := h.link.SourceOf(holder); is {
		place = placeOf(source)
	}
	digest, err := h.digest(holder)
	if err != nil {
		return []string{place}, nil
	}
	return []string{place, hex.EncodeToString(digest[:])}, nil
}

// completion is what a change of a holder has learned about its sources.
type completion[S any] struct {
	places  []string // of the sources that the holder may belong to
	sources []*S     // those of them that exist
}

// Complete implements driver.Completer: it fills in the copy of a holder that is inserted, or that a change gives another
// source or other properties of the copy.
func (h *holderEnd[S, H]) Complete(ctx context.Context, c *driver.Change) error {
	c.Note(h.PatternName(), nil)
	if isBy(ctx, bySource, h.relation) {
		return nil // the source has written the copy
	}
	if err := h.ready(); err != nil {
		return err
	}
	holder := c.Entity.(*H)
	before := c.Remembered(h.PatternName())
	if now, err := h.Remember(holder, nil); err != nil || c.Kind != driver.ChangeInsert && slices.Equal(now, before) {
		return err
	}
	keys, err := h.candidates(c.Key, holder, before)
	if err != nil {
		return err
	}
	done := &completion[S]{}
	var chosen *S
	for i, key := range keys {
		source, err := h.read(ctx, key)
		if err != nil {
			return err
		}
		if source == nil && i == 0 && h.holds(holder, key) && (h.link.Required || h.inPartition) {
			return &tables.Error{Pattern: h.PatternName(), Kind: tables.ErrMissingReference,
				Err: fmt.Errorf("the source (%q, %q) does not exist; insert it first, or let the holder refer to another one", key.Partition, key.Row)}
		}
		done.places = append(done.places, placeOf(key))
		if source != nil {
			done.sources = append(done.sources, source)
		}
		if chosen == nil && h.names(source, c.Key) {
			chosen = source
		}
	}
	c.Note(h.PatternName(), done)
	return h.fill(holder, chosen)
}

// candidates returns the sources that a holder may belong to: the one that it refers to, and with Holders also the one whose copy
// it had, which may still name it.
func (h *holderEnd[S, H]) candidates(key tables.Key, holder *H, before []string) ([]tables.Key, error) {
	var keys []tables.Key
	if source, is := h.link.SourceOf(holder); is {
		keys = append(keys, source)
	}
	if h.link.Find == nil && len(before) > 0 && before[0] != "" {
		source, err := parsePlace(before[0])
		if err != nil {
			return nil, err
		}
		if !slices.Contains(keys, source) {
			keys = append(keys, source)
		}
	}
	for _, source := range keys {
		if err := checkKey(source); err != nil {
			return nil, fmt.Errorf("the key of the source: %w", err)
		}
		if err := h.checkSelf(source, key); err != nil {
			return nil, err
		}
		if h.inPartition && source.Partition != key.Partition {
			return nil, fmt.Errorf("the source (%q, %q) is not in the partition of its holder; a link of New reaches it, one of NewInPartition does not", source.Partition, source.Row)
		}
	}
	return keys, nil
}

// read reads a source as it is now, nil for none.
func (r *relation[S, H]) read(ctx context.Context, key tables.Key) (*S, error) {
	source, err := r.sources.Get(ctx, key)
	if tables.IsAbsent(err) {
		return nil, nil
	}
	return source, err
}

// fill writes the copy of a source into a holder that is about to be stored, nil for none.
func (h *holderEnd[S, H]) fill(holder *H, source *S) error {
	if source != nil {
		_, err := h.bring(holder, h.sources.KeyOf(source), source, true)
		return err
	}
	if key, is := h.link.SourceOf(holder); is {
		_, err := h.bring(holder, key, nil, false)
		return err
	}
	_, err := h.write(holder, nil)
	return err
}

// holder is the Holder of a link whose holders are anywhere.
type holder[S, H any] struct{ holderEnd[S, H] }

// OutsideKeys implements driver.IntentContributor: the intent of a holder names the sources that it may belong to.
func (h *holder[S, H]) OutsideKeys(_ context.Context, c *driver.Change) ([]string, error) {
	if done, _ := c.Noted(h.PatternName()).(*completion[S]); done != nil {
		return done.places, nil
	}
	return nil, nil
}

// Reconcile implements driver.IntentContributor. It reads the sources again, since a source that was written after the holder
// was completed and before the holder was committed has not found the holder.
func (h *holder[S, H]) Reconcile(ctx context.Context, r *driver.Reconciliation) error {
	if err := h.ready(); err != nil {
		return err
	}
	held, _ := r.Entity.(*H)
	if held == nil {
		return nil
	}
	for _, place := range r.Keys {
		key, err := parsePlace(place)
		if err != nil {
			return err
		}
		source, err := h.read(ctx, key)
		if err != nil {
			return h.sourceError(key, err)
		}
		right, err := h.isAsAsked(held, key, source, h.names(source, r.Key))
		if err != nil {
			return err
		}
		if right {
			continue
		}
		if err := h.agree(ctx, r.Key, key); err != nil {
			return err
		}
	}
	return nil
}

// agree makes a holder as a source asks. Each attempt reads the holder, then the source, and writes under the holder's ETag. The
// repository goes round again after a write, and reads the source again then.
func (h *holder[S, H]) agree(ctx context.Context, key, source tables.Key) error {
	_, err := h.holders.Update(by(ctx, bySource, h.relation), key, func(held *H) error {
		entity, err := h.read(ctx, source)
		if err != nil {
			return h.sourceError(source, err)
		}
		f, err := h.newFanOut(&driver.Reconciliation{Key: source, Entity: entityOf(entity)})
		if err != nil {
			return err
		}
		return unlessChanged(f.give(ctx, key, held))
	})
	if err = passed(err); err != nil {
		return h.holderError(key, err)
	}
	return nil
}

// entityOf is a source as patterns see it: nil for one that does not exist.
func entityOf[S any](source *S) any {
	if source == nil {
		return nil
	}
	return source
}

// sourceError says of which source an error is: what is reported of an intent names the holder.
func (r *relation[S, H]) sourceError(key tables.Key, err error) error {
	where := fmt.Errorf("the source (%q, %q) in %s: %w", key.Partition, key.Row, r.sources.Table().Name(), err)
	var e *tables.Error
	if !errors.As(err, &e) {
		return where
	}
	return &tables.Error{Pattern: r.name, Code: e.Code, Kind: e.Kind, Err: where}
}

// holderInPartition is the Holder of a link whose holders are in their sources' partitions.
type holderInPartition[S, H any] struct{ holderEnd[S, H] }

// Companions implements driver.CompanionContributor: it stages the sources that were read for the copy, unchanged. A source
// that has changed since, or that is being changed without having seen the holder, refuses one of the two transactions.
func (h *holderInPartition[S, H]) Companions(ctx context.Context, c *driver.Change, x *tables.Transaction) error {
	done, _ := c.Noted(h.PatternName()).(*completion[S])
	if done == nil || c.Kind == driver.ChangeDelete {
		return nil
	}
	for _, source := range done.sources {
		if err := h.sources.StageReplace(by(ctx, byHolder, h.relation), x, source); err != nil {
			return err
		}
	}
	return nil
}
