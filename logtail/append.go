package logtail

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/tables"
)

// maxLead limits how far a Log's stamps may be ahead of its clock: up to it they increase even if the clock stands still or
// steps back. If the clock steps back further, so do the stamps.
const maxLead = time.Second

// Stamp gives an entry its time and id, if it has none yet. After that, every Append of it writes the same
// entry. Stamp makes no request.
func (l *Log[T]) Stamp(v *T) error {
	if v == nil {
		return errs.InvalidIn("Stamp", l.Table().Name(), "the entry is nil; give a pointer to one")
	}
	e := entryOf(v)
	if e.LoggedAt.IsZero() {
		e.LoggedAt = l.nextTime()
	}
	if e.LogID == "" {
		e.LogID = rand.Text()
	}
	return nil
}

// nextTime returns the current time, or one tick after the previous stamp if that is later.
func (l *Log[T]) nextTime() time.Time {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !now.After(l.last) && l.last.Sub(now) < maxLead {
		now = l.last.Add(tick)
	}
	l.last = now
	return now
}

// Append adds an entry, and stamps it first if necessary. If the log already has the same entry, Append leaves it
// unchanged and returns nil, because an earlier attempt wrote it. Append returns tables.ErrExists if the log has an
// entry with the same time and id but other properties. It returns ErrOutsideWindow if the entry's time is further
// from now than half of Schema.Window, and cancels a request that is still running when that limit is reached.
// Requests: 1, and 1 more if the entry exists or the outcome is unknown.
func (l *Log[T]) Append(ctx context.Context, v *T) error {
	if err := l.Stamp(v); err != nil {
		return err
	}
	at, half := entryOf(v).LoggedAt, l.schema.Window/2
	left := at.Sub(l.schema.Now()) + half
	if left <= 0 || left > 2*half {
		return l.recognize(ctx, v, &tables.Error{Op: "Append", Table: l.Table().Name(), Key: l.Key(v), Kind: tables.ErrInvalid,
			Err: fmt.Errorf("%w: it is %v from now, and at most %v (half of Schema.Window) are allowed", ErrOutsideWindow, (left - half).Round(time.Millisecond), half)})
	}
	bounded, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	return l.insert(bounded, ctx, v)
}

// AppendLate does what Append does, but never returns ErrOutsideWindow: it is for an entry of any time, such
// as one that waited in a file while the service could not be reached. A follower that has passed the entry's
// time never yields it; Latest and Between do. Use it for logs without followers, and for imports. Requests:
// those of Append.
func (l *Log[T]) AppendLate(ctx context.Context, v *T) error {
	if err := l.Stamp(v); err != nil {
		return err
	}
	return l.insert(ctx, ctx, v)
}

// insert inserts an entry within the context bounded. If the outcome is unknown or the key exists, it reads, within ctx, whether
// the log has the entry.
func (l *Log[T]) insert(bounded, ctx context.Context, v *T) error {
	err := l.repo.Insert(bounded, v)
	if errors.Is(err, tables.ErrExists) || errors.Is(err, tables.ErrUnknownOutcome) {
		return l.recognize(ctx, v, err)
	}
	return err
}

// recognize returns nil, and sets v's Meta, if the log has the same entry; otherwise it returns refusal or its own error.
func (l *Log[T]) recognize(ctx context.Context, v *T, refusal error) error {
	there, err := l.repo.Get(ctx, l.Key(v))
	switch {
	case errors.Is(err, tables.ErrNotFound), errors.Is(err, tables.ErrMissingResource), errors.Is(err, tables.ErrInvalid):
		return refusal
	case err != nil:
		return err
	}
	ours, err := l.codec.Encode(v)
	if err != nil {
		return err
	}
	// Some values change when they are stored and read: a struct in a field of type any, tagged json, becomes a map. So decode
	// and encode v, too.
	mirror := new(T)
	if err := l.codec.Decode(ours, mirror); err != nil {
		return err
	}
	if ours, err = l.codec.Encode(mirror); err != nil {
		return err
	}
	theirs, err := l.codec.Encode(there)
	if err != nil {
		return err
	}
	if !slices.Equal(ours, theirs) {
		return &tables.Error{Op: "Append", Table: l.Table().Name(), Key: l.Key(v), Kind: tables.ErrExists,
			Err: errors.New("the log has an entry with the same time and id but other properties; give the new entry another LogID")}
	}
	*l.host.MetaOf(v) = *l.host.MetaOf(there)
	return nil
}

// Entry makes a struct an entry of a log. Embed it, next to tables.Meta, in the type that a Log stores. Both fields are
// stored as properties of their names and make the row key; they never change after the entry was stamped. If you must
// not append twice even after a crash, call Stamp and save both fields before Append.
type Entry struct {
	// LoggedAt is the time by which entries are sorted, to 100 ns; Stamp sets it to the current time if it is zero.
	LoggedAt time.Time
	// LogID distinguishes the entries of one tick; if it is empty, Stamp generates an id of 26 characters.
	// You can set an id of your own, such as that of a message: entries with the same time and id are the
	// same entry.
	LogID string
}

func (e *Entry) logEntry() *Entry { return e }

// entered has the method that a type gets by embedding Entry.
type entered interface{ logEntry() *Entry }

// entryOf returns v's Entry, or nil if T does not embed an Entry.
func entryOf[T any](v *T) *Entry {
	if e, ok := any(v).(entered); ok {
		return e.logEntry()
	}
	return nil
}
