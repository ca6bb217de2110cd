package engine

import (
	"context"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/marks"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
)

// A transform of StageSpill stores something outside of the partition before the transaction, such as a blob: under a new name each time, and with a
// deadline for the transaction. What no row refers to afterwards is removed once the outcome is known. What is left of a process that dies, or
// of a transaction with an unknown outcome, the pattern's own sweep removes. Package internal/models/blobs explores this protocol.

// commitBounded does what commit does, and ends at the first deadline of what transforms have stored. Then it collects what they have left to
// do: nothing if the outcome of the transaction is unknown.
func (s *Set) commitBounded(ctx context.Context, intent *intents.Intent) error {
	bounded, done := lease.Bounded(ctx)
	defer done()
	s.bounded = true
	err := s.commit(bounded, intent)
	late := context.Cause(bounded)
	s.bounded = false
	for _, w := range s.members {
		if s.outcome != marks.Unknown {
			w.resolved(ctx, w.Change.Stored, s.outcome == marks.Committed)
		}
		s.rest, w.rest = append(s.rest, w.rest...), nil
	}
	if late != nil && ctx.Err() == nil && s.outcome == marks.Refused {
		return s.located(&entity.Error{Kind: entity.ErrUnavailable, Err: late})
	}
	return err
}

// finishSpills does what transforms have left to do, in the background.
func (s *Set) finishSpills(ctx context.Context) {
	rest := s.rest
	s.rest = nil
	s.own[0].engine.Schema.Rest.Do(ctx, func(ctx context.Context) {
		for _, do := range rest {
			do(ctx)
		}
	})
}

// resolved calls Transform.After for a change with these stored properties.
func (w *Work) resolved(ctx context.Context, stored entity.Properties, committed bool) {
	if !w.engine.spills || stored == nil && w.Change.Kind != driver.ChangeDelete {
		return
	}
	for _, t := range w.engine.Transformers {
		if t.Transform.After == nil {
			continue
		}
		change := w.seenBy(t)
		change.Stored = stored
		if rest := t.Transform.After(ctx, change, committed); rest != nil {
			w.rest = append(w.rest, rest)
		}
	}
}

// Spilled returns what transforms store outside of the partition for the planned change, as "pattern: name", and how many removals follow the
// commit.
func (s *Set) Spilled(ctx context.Context) (stored []string, removals int) {
	for _, w := range s.members {
		w.resolved(ctx, w.Change.Stored, true)
		stored, removals = append(stored, w.State.Outside...), removals+len(w.rest)
	}
	return stored, removals
}

// forget discards the stored form of the entity, which is computed again.
func (w *Work) forget(ctx context.Context) {
	w.resolved(ctx, w.Change.Stored, false)
	w.Change.Stored, w.merged = nil, nil
}
