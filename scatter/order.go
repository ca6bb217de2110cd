package scatter

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
)

// Order says by what row keys rise or fall. A row key is a prefix, "_", a time or number, and a suffix that
// distinguishes entities of the same time.
type Order struct {
	prefix  string
	name    string // as stored in the record
	width   int    // digits
	limit   int64  // all positions are below this limit
	step    int64  // how far the horizon moves at a time
	falling bool   // row keys fall with time: their digits are those of limit-1-position
	err     error
}

const (
	timeDigits = 19
	timeLimit  = 3155378976000000000 // ticks at the beginning of the year 10000
	ticksEpoch = 621355968000000000  // ticks at 1970-01-01
	tick       = 100 * time.Nanosecond

	defaultTimeStep   = time.Minute
	defaultNumberStep = 10_000
)

// ByTime is the Order of row keys such as compoundkey.Join("event", compoundkey.Time(at), ...). step is how far the
// horizon moves at a time (default 1 minute): with a longer step the record is read less often, and a new n applies
// later.
func ByTime(prefix string, step time.Duration) Order {
	step = cmp.Or(step, defaultTimeStep)
	o := Order{prefix: prefix, name: "time", width: timeDigits, limit: timeLimit, step: int64(step / tick)}
	return o.checked()
}

// ByTimeDesc is the Order of row keys that begin with compoundkey.TimeDesc, newest first. See [ByTime].
func ByTimeDesc(prefix string, step time.Duration) Order {
	o := ByTime(prefix, step)
	o.name, o.falling = "timedesc", true
	return o
}

// ByNumber is the Order of row keys such as compoundkey.Join("order", compoundkey.Int(number, 12)), of 1 to 18
// digits and not negative. step is how far the horizon moves at a time (default 10,000).
func ByNumber(prefix string, width int, step int64) Order {
	step = cmp.Or(step, defaultNumberStep)
	o := Order{prefix: prefix, name: "number:" + strconv.Itoa(width), width: width, limit: 1, step: step}
	if width < 1 || width > 18 {
		o.err = fmt.Errorf("ByNumber: width is %d; it must be 1 to 18", width)
		return o
	}
	for range width {
		o.limit *= 10
	}
	return o.checked()
}

func (o Order) checked() Order {
	if o.prefix == "" {
		o.err = errors.New("the Order has no prefix; give the prefix of the row keys to ByTime, ByTimeDesc or ByNumber")
	} else if _, err := compoundkey.Encode(o.prefix); err != nil {
		o.err = err
	} else if o.step <= 0 {
		o.err = errors.New("the Order's step is negative or below 100 ns; give 0 for the default")
	}
	return o
}

// isTime reports whether positions are ticks.
func (o Order) isTime() bool { return o.width == timeDigits }

func (o Order) position(row string) (int64, error) {
	if err := compoundkey.CheckKey(row); err != nil {
		return 0, err
	}
	rest, ok := strings.CutPrefix(row, o.prefix+"_")
	digits := len(rest) >= o.width && (len(rest) == o.width || rest[o.width] == '_') && strings.Trim(rest[:o.width], "0123456789") == ""
	if !ok || !digits {
		return 0, fmt.Errorf("the row key must begin with %q and %d digits, and then end or continue with \"_\"", o.prefix+"_", o.width)
	}
	// 19 digits may not fit into an int64.
	p, err := strconv.ParseInt(rest[:o.width], 10, 64)
	if err != nil || p >= o.limit {
		return 0, errors.New("the row key begins with a time after the year 9999; use an earlier one")
	}
	if o.falling {
		p = o.limit - 1 - p
	}
	return p, nil
}

// region returns the bounds of the row keys with from <= position < to; end is the first key after them.
func (o Order) region(from, to int64) (first, end string) {
	if from >= to {
		return "", ""
	}
	if o.falling {
		from, to = o.limit-to, o.limit-from
	}
	end = compoundkey.All().Under(o.prefix).To()
	if to < o.limit {
		end = o.key(to)
	}
	return o.key(from), end
}

// overlaps reports whether a span can contain row keys with from <= position < to.
func (o Order) overlaps(span compoundkey.Span, from, to int64) bool {
	first, end := o.region(from, to)
	return first != end && !span.Empty() && compoundkey.Compare(span.From(), end) < 0 && (span.To() == "" || compoundkey.Compare(first, span.To()) < 0)
}

func (o Order) key(digits int64) string { return fmt.Sprintf("%s_%0*d", o.prefix, o.width, digits) }

// behind returns the horizon to set for an entity at a position: the next multiple of step.
func (o Order) behind(position int64) int64 {
	if rest := o.limit - position; rest <= o.step {
		return o.limit
	}
	return min(o.limit, (position/o.step+1)*o.step)
}

func (o Order) time(position int64) time.Time {
	ticks := position - ticksEpoch
	return time.Unix(ticks/1e7, ticks%1e7*100).UTC()
}
