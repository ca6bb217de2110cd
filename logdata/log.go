package logdata

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/internal/blobio"
	"github.com/tablepatterns/tablepatterns/internal/blobowner"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	defaultPeriod = 10 * time.Minute
	// disorder limits how much older than the latest record of its blob a record may be; an older one goes to another blob. So a reader sorts a
	// blob in little memory, and knows a lower bound of its times.
	disorder = 2 * time.Second
)

// Options are the options of New; nil is the same as the zero value.
type Options struct {
	// Period is the time range whose records share blobs: a divisor of an hour in whole minutes (default 10 minutes). Writers may use different
	// periods, and it may change: readers need not know it.
	Period time.Duration
}

// Log is the set of log records under a prefix of a container. It is safe for concurrent use.
type Log struct {
	container *container.Client
	prefix    string
	period    time.Duration
}

// New makes a Log. The container is of blobstorage.Container, and must exist. The blobs' names begin with prefix, such as "web/frontend"; other
// blobs may share it. Requests: none.
func New(c *container.Client, prefix string, options *Options) (*Log, error) {
	const op = "New"
	period := defaultPeriod
	if options != nil && options.Period != 0 {
		period = options.Period
	}
	if c == nil {
		return nil, errs.Wiringf(op, "", "the container is nil; make it with blobstorage.Container of an account with a blob endpoint")
	}
	if err := checkPrefix(prefix); err != nil {
		return nil, errs.Wiringf(op, "", "%w", err)
	}
	if period < time.Minute || period%time.Minute != 0 || time.Hour%period != 0 {
		return nil, errs.Wiringf(op, "", "Options.Period is %v; it must be in whole minutes and divide an hour, such as 5m or 10m", period)
	}
	return &Log{container: c, prefix: prefix, period: period}, nil
}

// Blob is a blob of a log, by its name and metadata.
type Blob struct {
	Name string
	// Start and End bound the period: all records have Start <= Time < End.
	Start, End time.Time
	// First is a lower bound of the records' times; exact if Final.
	First time.Time
	// Last is the time of the last record, if Final.
	Last time.Time
	// Records is the number of records, if Final.
	Records int64
	// Final says that no more records will be appended. Otherwise the blob is being written, or its writer has died or could not write the final
	// metadata.
	Final bool
	// Size is in bytes.
	Size int64

	disorder time.Duration
	format   string
}

func (b *Blob) mayHold(from, to time.Time) bool {
	if b.Size == 0 || !b.First.Before(to) {
		return false
	}
	if b.Final {
		return !b.Last.Before(from)
	}
	return b.End.After(from)
}

// Blobs yields the blobs that can hold records with from <= Time < to, in the order of their names and periods, without empty ones. An error is
// yielded once, as the last element. Requests: 1 for each whole year, month or day within the range, 1 for each further hour, and 1 more for each
// 5,000 blobs in one of them. A range of more than ten years lists all blobs of the log.
func (l *Log) Blobs(ctx context.Context, from, to time.Time) iter.Seq2[Blob, error] {
	return func(yield func(Blob, error) bool) {
		from, to, err := checkRange("Blobs", from, to)
		if err != nil {
			yield(Blob{}, err)
			return
		}
		for b, err := range l.list(ctx, from, to) {
			if err != nil {
				yield(Blob{}, failure("Blobs", l.prefix, err, false))
				return
			}
			if b.mayHold(from, to) && !yield(b, nil) {
				return
			}
		}
	}
}

// checkRange refuses an empty range, and cuts it to the times that blob names can express.
func checkRange(op string, from, to time.Time) (time.Time, time.Time, error) {
	if from, to = from.UTC(), to.UTC(); from.Before(minTime()) {
		from = minTime()
	}
	if to.After(maxTime()) {
		to = maxTime()
	}
	if !from.Before(to) {
		return from, to, &tables.Error{Op: op, Kind: tables.ErrInvalid,
			Err: fmt.Errorf("the range from %v up to %v is empty; from must be before to", from, to)}
	}
	return from, to, nil
}

func (l *Log) list(ctx context.Context, from, to time.Time) iter.Seq2[Blob, error] {
	return func(yield func(Blob, error) bool) {
		for prefix := range l.prefixes(from, to) {
			for b, err := range l.under(ctx, prefix) {
				if !yield(b, err) || err != nil {
					return
				}
			}
		}
	}
}

func (l *Log) under(ctx context.Context, prefix string) iter.Seq2[Blob, error] {
	return func(yield func(Blob, error) bool) {
		for item, err := range blobio.List(ctx, l.container, prefix, container.ListBlobsInclude{Metadata: true}) {
			if err != nil {
				yield(Blob{}, err)
				return
			}
			start, _, ok := l.parseName(*item.Name)
			if !ok {
				continue
			}
			b := Blob{Name: *item.Name, Start: start}
			if item.Properties != nil && item.Properties.ContentLength != nil {
				b.Size = *item.Properties.ContentLength
			}
			b.describe(item.Metadata)
			if !yield(b, nil) {
				return
			}
		}
	}
}

const (
	periodLayout = "2006/01/02/1504"
	nameEnding   = ".log"
	numberDigits = 6
	maxNumber    = 999999
	maxPrefix    = 900 // the service allows 1,024 characters for the whole name
)

// minTime (included) and maxTime (excluded) bound the times that a year of four digits can express.
func minTime() time.Time { return time.Time{} }
func maxTime() time.Time { return time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }

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

// periodOf returns the start of t's period. Periods divide an hour.
func (l *Log) periodOf(t time.Time) time.Time { return t.UTC().Truncate(l.period) }

func (l *Log) periodPrefix(period time.Time) string {
	return l.prefix + "/" + period.Format(periodLayout) + "/"
}

func (l *Log) blobName(period time.Time, number int) string {
	return fmt.Sprintf("%s%0*d%s", l.periodPrefix(period), numberDigits, number, nameEnding)
}

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

// manyYears limits the years that are listed by prefixes; for more, Blobs lists all blobs of the log.
const manyYears = 10

// prefixes yields the name prefixes of the blobs of a range, in order: one for each whole year, month or day, and each remaining hour.
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

// Metadata, in lower case, since the service ignores case.
const (
	metaFormat   = "tpformat"
	metaWriter   = "tpwriter"   // random for each blob
	metaPeriod   = "tpperiod"   // minutes
	metaDisorder = "tpdisorder" // milliseconds by which a record may be older than one before it
	metaFirst    = "tpfirst"    // no record is older
	metaLast     = "tplast"     // no record is newer, or will be appended
	metaRecords  = "tprecords"  // set together with tplast

	formatVersion = 1
)

// openMetadata is for a new blob. bound is below the first time, since a record that is older by up to disorder may follow.
func (l *Log) openMetadata(token string, bound time.Time) map[string]*string {
	return blobowner.Owner{}.Metadata(map[string]string{
		metaFormat: strconv.Itoa(formatVersion), metaWriter: token,
		metaPeriod:   strconv.Itoa(int(l.period / time.Minute)),
		metaDisorder: strconv.Itoa(int(disorder / time.Millisecond)),
		metaFirst:    bound.Format(timeLayout),
	})
}

func (l *Log) finalMetadata(s *segment) map[string]*string {
	all := l.openMetadata(s.token, s.first)
	maps.Copy(all, blobowner.Owner{}.Metadata(map[string]string{metaLast: s.last.Format(timeLayout), metaRecords: strconv.FormatInt(s.records, 10)}))
	return all
}

// describe reads the blob's metadata. Missing or invalid ones mean the widest bounds that the name allows.
func (b *Blob) describe(metadata map[string]*string) {
	b.End = b.Start.Truncate(time.Hour).Add(time.Hour)
	if minutes, err := strconv.Atoi(blobowner.Label(metadata, metaPeriod)); err == nil && minutes > 0 {
		if end := b.Start.Add(time.Duration(minutes) * time.Minute); minutes <= 60 && !end.After(b.End) {
			b.End = end
		}
	}
	b.disorder = time.Hour
	if n, err := strconv.Atoi(blobowner.Label(metadata, metaDisorder)); err == nil && n >= 0 && n < int(time.Hour/time.Millisecond) {
		b.disorder = time.Duration(n) * time.Millisecond
	}
	b.format = blobowner.Label(metadata, metaFormat)
	b.First = b.Start
	if t, err := time.Parse(timeLayout, blobowner.Label(metadata, metaFirst)); err == nil && t.After(b.Start) && t.Before(b.End) {
		b.First = t
	}
	last, err := time.Parse(timeLayout, blobowner.Label(metadata, metaLast))
	if err != nil || last.Before(b.First) {
		return
	}
	b.Last, b.Final = last, true
	b.Records, _ = strconv.ParseInt(blobowner.Label(metadata, metaRecords), 10, 64)
}
