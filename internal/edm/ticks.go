package edm

import (
	"fmt"
	"time"
)

// A tick is 100 ns; ticks count from 0001-01-01T00:00:00Z, as .NET counts them.
const (
	ticksPerSecond   = 10_000_000
	unixEpochTicks   = 621_355_968_000_000_000
	minDateTimeTicks = 504_911_232_000_000_000   // 1601-01-01T00:00:00Z
	maxDateTimeTicks = 3_155_378_975_999_999_999 // 9999-12-31T23:59:59.9999999Z
	unixEpochDay     = unixEpochTicks / ticksPerSecond / 86400
)

// Ticks returns t in ticks, or an error for a time that is finer than a tick or outside of the years 1 to 9999.
func Ticks(t time.Time) (int64, error) {
	if t.Nanosecond()%100 != 0 {
		return 0, fmt.Errorf("the time has %d ns after the full second, and the service stores steps of 100 ns; use Truncate(100)", t.Nanosecond())
	}
	if year := t.UTC().Year(); year < 1 || year > 9999 {
		return 0, fmt.Errorf("the year is %d; it must be 1 to 9999", year)
	}
	return t.Unix()*ticksPerSecond + int64(t.Nanosecond())/100 + unixEpochTicks, nil
}

// TimeOfTicks is the inverse of Ticks; the result is in UTC.
func TimeOfTicks(ticks int64) time.Time {
	sinceUnix := ticks - unixEpochTicks
	seconds, rest := sinceUnix/ticksPerSecond, sinceUnix%ticksPerSecond
	if rest < 0 {
		seconds, rest = seconds-1, rest+ticksPerSecond
	}
	return time.Unix(seconds, rest*100).UTC()
}

// AppendDateTime appends ticks as the service writes them: 2014-08-22T00:50:32.1234567Z. The fraction has no trailing zeros, and is
// left out if it is zero.
func AppendDateTime(dst []byte, ticks int64) []byte {
	t := TimeOfTicks(ticks)
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	dst = appendPadded(dst, year, 4)
	dst = appendPadded(append(dst, '-'), int(month), 2)
	dst = appendPadded(append(dst, '-'), day, 2)
	dst = appendPadded(append(dst, 'T'), hour, 2)
	dst = appendPadded(append(dst, ':'), minute, 2)
	dst = appendPadded(append(dst, ':'), second, 2)
	if fraction := t.Nanosecond() / 100; fraction != 0 {
		dst = appendPadded(append(dst, '.'), fraction, 7)
		for dst[len(dst)-1] == '0' {
			dst = dst[:len(dst)-1]
		}
	}
	return append(dst, 'Z')
}

func appendPadded(dst []byte, n, width int) []byte {
	start := len(dst)
	for range width {
		dst = append(dst, '0')
	}
	for i := start + width - 1; i >= start && n > 0; i-- {
		dst[i] = byte('0' + n%10)
		n /= 10
	}
	return dst
}

// localDateTime is a date and time without an offset. The service interprets it as UTC.
const localDateTime = "2006-01-02T15:04:05.999999999"

// parseDateTime parses all forms that the service accepts and writes. It parses the common form by hand, since
// time.Parse takes as long as parsing the rest of an entity. Other forms have an offset, no Z, or a lower-case t.
func parseDateTime(text []byte) (int64, error) {
	if ticks, ok := parseCommonDateTime(text); ok {
		return ticks, nil
	}
	t, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		t, err = time.Parse(localDateTime, string(text))
	}
	if err != nil {
		return 0, fmt.Errorf("the text of %d characters is not a valid date and time", len(text))
	}
	return Ticks(t)
}

func parseCommonDateTime(b []byte) (int64, bool) {
	if len(b) < 20 || b[4] != '-' || b[7] != '-' || b[10] != 'T' || b[13] != ':' || b[16] != ':' || b[len(b)-1] != 'Z' {
		return 0, false
	}
	year, ok1 := digits(b[0:4])
	month, ok2 := digits(b[5:7])
	day, ok3 := digits(b[8:10])
	hour, ok4 := digits(b[11:13])
	minute, ok5 := digits(b[14:16])
	second, ok6 := digits(b[17:19])
	if !(ok1 && ok2 && ok3 && ok4 && ok5 && ok6) || year < 1 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) ||
		hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	ticks := ((daysBefore(year, month, day)*24+hour)*60+minute)*60 + second
	ticks *= ticksPerSecond
	if fraction := b[19 : len(b)-1]; len(fraction) > 0 {
		n, ok := digits(fraction[1:])
		if !ok || fraction[0] != '.' || len(fraction) > 8 || len(fraction) == 1 {
			return 0, false
		}
		for range 8 - len(fraction) {
			n *= 10
		}
		ticks += n
	}
	return ticks, true
}

func digits(b []byte) (int64, bool) {
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

func daysIn(year, month int64) int64 {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// daysBefore counts the days from 0001-01-01 to the given day of the proleptic Gregorian calendar.
func daysBefore(year, month, day int64) int64 {
	// Years begin in March here, so that the leap day is the last day of a year.
	if month <= 2 {
		year, month = year-1, month+12
	}
	return year*365 + year/4 - year/100 + year/400 + (153*(month-3)+2)/5 + day - 307
}
