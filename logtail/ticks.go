package logtail

import (
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/tables"
)

const tick = 100 * time.Nanosecond

// lastTick is .NET's DateTime.MaxValue, whose inverted ticks are zero.
func lastTick() time.Time { return time.Date(9999, 12, 31, 23, 59, 59, 999_999_900, time.UTC) }

// InvertedTicks returns the guide's key for a time: 19 digits that sort newest first. The time must be in the
// years 1 to 9999 and a multiple of 100 ns; otherwise it returns tables.ErrInvalid. The text is the same as
// that of compoundkey.TimeDesc.
func InvertedTicks(t time.Time) (string, error) {
	key, err := compoundkey.Encode("", compoundkey.TimeDesc(t))
	if err != nil {
		return "", tables.InvalidIn("InvertedTicks", "", "%w", err)
	}
	return key, nil
}

// ParseInvertedTicks is the inverse of InvertedTicks; the time is in UTC.
func ParseInvertedTicks(text string) (time.Time, error) {
	var t time.Time
	if err := compoundkey.Parse(text, "", compoundkey.ToTimeDesc(&t)); err != nil {
		return time.Time{}, tables.InvalidIn("ParseInvertedTicks", "", "%w", err)
	}
	return t, nil
}

// ceil returns the first tick that is not before t.
func ceil(t time.Time) time.Time {
	floor := t.UTC().Truncate(tick)
	if floor.Before(t) {
		return floor.Add(tick)
	}
	return floor
}
