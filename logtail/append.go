package logtail

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/tables"
)

// maxLead is how far a Log's stamps may run ahead of its clock, so that they rise while the clock stands or goes back a
// little. A clock that is set back further is followed.
const maxLead = time.Second

// Stamp gives an entry its time and id, if it has none yet: from then on it is the same entry, however often it is appended.
// It makes no request.
func (l *Log[T]) Stamp(v *T) error {
	if v == nil {
		return tables.InvalidIn("Stamp", l.Table().Name(), "the entry is nil")
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

// nextTime is the present, or a tick after the stamp before.
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

// Append adds an entry, and stamps it first if that was not done. An entry that is there already is left as it is and is no
// error: the Append that wrote it was this one, before. One with the same time and id and other properties is
// tables.ErrExists. It is ErrOutsideWindow where the entry's time is further away than half of Schema.Window; the context of
// the request ends then, too. Requests: 1, and 1 more for an entry that is there.
func (l *Log[T]) Append(ctx context.Context, v *T) error {
	if err := l.Stamp(v); err != nil {
		return err
	}
	at, half := entryOf(v).LoggedAt, l.schema.Window/2
	left := at.Sub(l.schema.Now()) + half
	if left <= 0 || left > 2*half {
		return l.recognize(ctx, v, &tables.Error{Op: "Append", Table: l.Table().Name(), Key: l.keyOf(v), Kind: tables.ErrInvalid,
			Err: fmt.Errorf("%w: it is %v from the present, and %v are allowed", ErrOutsideWindow, (left - half).Round(time.Millisecond), half)})
	}
	bounded, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	err := l.repo.Insert(bounded, v)
	if errors.Is(err, tables.ErrExists) {
		return l.recognize(ctx, v, err)
	}
	return err
}

// recognize returns nil where the entry is there as it is to be written, with its Meta as read, and refusal where it is not.
func (l *Log[T]) recognize(ctx context.Context, v *T, refusal error) error {
	there, err := l.repo.Get(ctx, l.keyOf(v))
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
	// As it is read: not every value comes back as it was given, such as a struct in an any of JSON, whose fields have an order.
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
		return &tables.Error{Op: "Append", Table: l.Table().Name(), Key: l.keyOf(v), Kind: tables.ErrExists,
			Err: errors.New("an entry with this time and id has other properties")}
	}
	*l.host.MetaOf(v) = *l.host.MetaOf(there)
	return nil
}
