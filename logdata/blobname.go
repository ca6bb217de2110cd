package logdata

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	periodLayout = "2006/01/02/1504"
	nameEnding   = ".log"
	numberDigits = 6
	maxNumber    = 999999
	maxPrefix    = 900 // characters; the service allows 1,024 for the whole name
)

// minTime and maxTime bound the times that a year of four digits can express: minTime is included, maxTime is not.
func minTime() time.Time { return time.Time{} }
func maxTime() time.Time { return time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }

// checkPrefix returns an error if a blob name cannot begin with the prefix.
func checkPrefix(prefix string) error {
	if prefix == "" || utf8.RuneCountInString(prefix) > maxPrefix || !utf8.ValidString(prefix) {
		return fmt.Errorf("the prefix has %d characters; it must have 1 to %d, in valid UTF-8", utf8.RuneCountInString(prefix), maxPrefix)
	}
	if strings.ContainsFunc(prefix, unicode.IsControl) || strings.Contains(prefix, `\`) {
		return fmt.Errorf("prefix %q has a control character or a backslash, which a blob name must not have", prefix)
	}
	for segment := range strings.SplitSeq(prefix, "/") {
		if segment == "" || strings.HasSuffix(segment, ".") {
			return fmt.Errorf("prefix %q has a part between slashes that is empty or ends with a dot, which a blob name must not have", prefix)
		}
	}
	return nil
}

// periodOf returns the start of the period that contains t. The length of a period divides an hour, so a
// period begins with each hour.
func (l *Log) periodOf(t time.Time) time.Time { return t.UTC().Truncate(l.period) }

func hourEnd(t time.Time) time.Time { return t.Truncate(time.Hour).Add(time.Hour) }

// periodPrefix returns the common prefix of the names of all blobs of a period.
func (l *Log) periodPrefix(period time.Time) string {
	return l.prefix + "/" + period.Format(periodLayout) + "/"
}

func (l *Log) blobName(period time.Time, number int) string {
	return fmt.Sprintf("%s%0*d%s", l.periodPrefix(period), numberDigits, number, nameEnding)
}

// parseName reads the name of a blob of this log; other blobs may share its prefix.
func (l *Log) parseName(name string) (period time.Time, number int, ok bool) {
	rest, ok := strings.CutPrefix(name, l.prefix+"/")
	if !ok || len(rest) != len(periodLayout)+1+numberDigits+len(nameEnding) {
		return time.Time{}, 0, false
	}
	period, err := time.Parse(periodLayout, rest[:len(periodLayout)])
	if err != nil {
		return time.Time{}, 0, false
	}
	number, err = strconv.Atoi(rest[len(periodLayout)+1 : len(rest)-len(nameEnding)])
	if err != nil || number < 1 || l.blobName(period, number) != name {
		return time.Time{}, 0, false
	}
	return period, number, true
}

// manyYears is the length of a range, in years, from which Blobs lists all blobs of the log and skips those
// outside of the range.
const manyYears = 10

// prefixes yields the name prefixes of all blobs that can hold records with from <= time < to, in the order
// of the times: one prefix for each whole year, month or day in the range, and one for each remaining hour.
func (l *Log) prefixes(from, to time.Time) iter.Seq[string] {
	return func(yield func(string) bool) {
		h := from.Truncate(time.Hour)
		if to.Year()-h.Year() > manyYears {
			yield(l.prefix + "/")
			return
		}
		// List all of an hour that is only partly in the range.
		end := to.Add(time.Hour - 1).Truncate(time.Hour)
		for h.Before(end) {
			next, layout := h.Add(time.Hour), "2006/01/02/15"
			first := h.Hour() == 0
			if day := h.AddDate(0, 0, 1); first && !day.After(end) {
				next, layout = day, "2006/01/02/"
			}
			first = first && h.Day() == 1
			if month := h.AddDate(0, 1, 0); first && !month.After(end) {
				next, layout = month, "2006/01/"
			}
			first = first && h.Month() == time.January
			if year := h.AddDate(1, 0, 0); first && !year.After(end) {
				next, layout = year, "2006/"
			}
			if !yield(l.prefix + "/" + h.Format(layout)) {
				return
			}
			h = next
		}
	}
}
