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

// minTime and maxTime are the times that four digits of a year can say: from the first up to the second.
func minTime() time.Time { return time.Time{} }
func maxTime() time.Time { return time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }

// checkPrefix holds the beginning of the blobs' names to what a name can be.
func checkPrefix(prefix string) error {
	if prefix == "" || utf8.RuneCountInString(prefix) > maxPrefix || !utf8.ValidString(prefix) {
		return fmt.Errorf("the prefix has %d characters; it has 1 to %d, of UTF-8", utf8.RuneCountInString(prefix), maxPrefix)
	}
	if strings.ContainsFunc(prefix, unicode.IsControl) || strings.Contains(prefix, `\`) {
		return fmt.Errorf("prefix %q has a control character or a backslash", prefix)
	}
	for segment := range strings.SplitSeq(prefix, "/") {
		if segment == "" || strings.HasSuffix(segment, ".") {
			return fmt.Errorf("prefix %q has a segment that is empty or ends in a dot", prefix)
		}
	}
	return nil
}

// periodOf is the beginning of the period that a time is in. Periods divide the hour, so that they begin with it.
func (l *Log) periodOf(t time.Time) time.Time { return t.UTC().Truncate(l.period) }

func hourEnd(t time.Time) time.Time { return t.Truncate(time.Hour).Add(time.Hour) }

// periodPrefix begins the names of all blobs of a period.
func (l *Log) periodPrefix(period time.Time) string {
	return l.prefix + "/" + period.Format(periodLayout) + "/"
}

func (l *Log) blobName(period time.Time, number int) string {
	return fmt.Sprintf("%s%0*d%s", l.periodPrefix(period), numberDigits, number, nameEnding)
}

// parseName reads the name of a blob of this log; others may share its prefix.
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

// manyYears is from how many years on all blobs are listed, and those of other times passed over.
const manyYears = 10

// prefixes yields the beginnings of the names of all blobs that can hold records of the times from up to to: whole years,
// months and days in one, and hours. Their order is that of the times.
func (l *Log) prefixes(from, to time.Time) iter.Seq[string] {
	return func(yield func(string) bool) {
		h := from.Truncate(time.Hour)
		if to.Year()-h.Year() > manyYears {
			yield(l.prefix + "/")
			return
		}
		// A whole hour is listed where a part of it is asked for.
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
