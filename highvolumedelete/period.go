package highvolumedelete

import (
	"fmt"
	"time"
)

// Unit is the length of a period.
type Unit uint8

// The units.
const (
	Day   Unit = iota // a day of Schema.Location
	Hour              // an hour of UTC, since local hours can occur twice
	Week              // Monday to Sunday, of Schema.Location
	Month             // a month of Schema.Location
)

// String returns the unit's name.
func (u Unit) String() string {
	if int(u) < len(unitNames) {
		return unitNames[u]
	}
	return fmt.Sprintf("Unit(%d)", uint8(u))
}

var unitNames = [...]string{Day: "Day", Hour: "Hour", Week: "Week", Month: "Month"}

// layouts are the time layouts of labels. The letter distinguishes units, and the digits sort by time.
var layouts = [...]string{Day: "D20060102", Hour: "H2006010215", Week: "W20060102", Month: "M200601"}

const labelLength = len("H2006010215")

// period is one period: the calendar's date, or hour, at which it begins, written as if it were UTC.
type period struct {
	unit Unit
	at   time.Time
}

// label returns the end of the table's name, such as D20140822.
func (p period) label() string { return p.at.Format(layouts[p.unit]) }

func (p period) before(q period) bool { return p.at.Before(q.at) }

func (p period) next() period {
	switch p.unit {
	case Hour:
		p.at = p.at.Add(time.Hour)
	case Day:
		p.at = p.at.AddDate(0, 0, 1)
	case Week:
		p.at = p.at.AddDate(0, 0, 7)
	case Month:
		p.at = p.at.AddDate(0, 1, 0)
	}
	return p
}

// calendar maps times to periods.
type calendar struct {
	unit     Unit
	location *time.Location
}

// periodOf returns the period of the date that the location's clock shows at t, even if the clock shows that date twice.
func (c calendar) periodOf(t time.Time) (period, error) {
	if c.unit == Hour {
		t = t.UTC()
	} else {
		t = t.In(c.location)
	}
	year, month, day := t.Date()
	if year < 1 || year > 9999 {
		return period{}, fmt.Errorf("the year is %d; a period must be within the years 1 to 9999", year)
	}
	at := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	switch c.unit {
	case Hour:
		at = at.Add(time.Duration(t.Hour()) * time.Hour)
	case Week:
		at = at.AddDate(0, 0, -(int(at.Weekday())+6)%7)
	case Month:
		at = at.AddDate(0, 0, 1-day)
	}
	return period{c.unit, at}, nil
}

// rewind is a moment at which a location's clock was set back into the period before, as in America/St_Johns from 00:01 to 23:01
// until 2011.
type rewind struct {
	at            time.Time
	before, after period
}

// longestRewind is more than any clock was ever set back: at most a day, on islands that changed the side of the date line.
const longestRewind = 48 * time.Hour

func (c calendar) rewinds(from, to time.Time) []rewind {
	if c.unit == Hour {
		return nil
	}
	var all []rewind
	for at := from; ; {
		_, at = at.In(c.location).ZoneBounds()
		if at.IsZero() || at.After(to) {
			return all
		}
		before, err1 := c.periodOf(at.Add(-1))
		after, err2 := c.periodOf(at)
		if err1 == nil && err2 == nil && after.before(before) {
			all = append(all, rewind{at, before, after})
		}
	}
}

// mixed reports whether the times of a period and the next one overlap.
func (c calendar) mixed(p period) bool {
	for _, r := range c.rewinds(c.end(p).Add(-longestRewind), c.end(p).Add(longestRewind)) {
		if !p.before(r.after) && !r.before.before(p.next()) {
			return true
		}
	}
	return false
}

// start returns the first moment at which the clock shows the period's first date or a later one. time.Date does not specify which
// moment it returns if a change of the clock skips or repeats midnight.
func (c calendar) start(p period) time.Time {
	if c.unit == Hour {
		return p.at
	}
	for at := p.at.Add(-longestRewind).In(c.location); ; {
		_, offset := at.Zone()
		midnight := p.at.Add(-time.Duration(offset) * time.Second).In(c.location)
		if midnight.Before(at) {
			midnight = at // the clock skipped midnight at this transition
		}
		if _, at = at.ZoneBounds(); at.IsZero() || midnight.Before(at) {
			return midnight
		}
	}
}

func (c calendar) end(p period) time.Time { return c.start(p.next()) }

// parse is the inverse of label; it accepts no other form.
func (c calendar) parse(label string) (period, bool) {
	at, err := time.Parse(layouts[c.unit], label)
	if err != nil {
		return period{}, false
	}
	p, err := calendar{c.unit, time.UTC}.periodOf(at)
	return p, err == nil && p.label() == label
}
