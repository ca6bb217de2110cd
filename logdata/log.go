package logdata

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/internal/blobio"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	defaultPeriod = 10 * time.Minute
	// disorder is how much older than the latest record of its blob a record may be. An older record goes to
	// another blob. So a reader can sort a blob's records with little memory, and the first record gives a
	// lower bound of all times in the blob.
	disorder = 2 * time.Second
)

// Options are the options of New; nil is the same as the zero value.
type Options struct {
	// Period is the time range whose records share blobs: a divisor of an hour in whole minutes (default 10
	// minutes). Writers may use different periods, and you may change the period: readers do not need to know
	// it.
	Period time.Duration
}

// Log is the set of log records under one prefix of a container. It is safe for concurrent use.
type Log struct {
	container *container.Client
	prefix    string
	period    time.Duration
}

// New makes a Log. The container must be made by Account.Container, and must exist. The names of the blobs begin with
// prefix, such as "web/frontend"; other blobs may share it. It makes no request.
func New(c *container.Client, prefix string, options *Options) (*Log, error) {
	const op = "New"
	period := defaultPeriod
	if options != nil && options.Period != 0 {
		period = options.Period
	}
	if c == nil {
		return nil, tables.Wiringf(op, "", "the container is nil; make it with Account.Container of an account with a blob endpoint")
	}
	if err := checkPrefix(prefix); err != nil {
		return nil, tables.Wiringf(op, "", "%w", err)
	}
	if period < time.Minute || period%time.Minute != 0 || time.Hour%period != 0 {
		return nil, tables.Wiringf(op, "", "Options.Period is %v; it must be in whole minutes and divide an hour, such as 5m or 10m", period)
	}
	return &Log{container: c, prefix: prefix, period: period}, nil
}

// Blob is a blob of a log, as its name and metadata describe it.
type Blob struct {
	Name string
	// Start and End are the bounds of the period: all records have Start <= Time < End.
	Start, End time.Time
	// First is a lower bound of the records' times: the time of the first record if Final.
	First time.Time
	// Last is the time of the last record, if Final.
	Last time.Time
	// Records is the number of records, if Final.
	Records int64
	// Final says that no more records will be appended. If it is false, the blob is still being written, or
	// its writer has died or could not write the final metadata.
	Final bool
	// Size is the size of the blob in bytes.
	Size int64

	disorder time.Duration
	format   string
}

// mayHold reports whether the blob can hold a record with from <= time < to.
func (b *Blob) mayHold(from, to time.Time) bool {
	if b.Size == 0 || !b.First.Before(to) {
		return false
	}
	if b.Final {
		return !b.Last.Before(from)
	}
	return b.End.After(from)
}

// Blobs yields the blobs that can hold records with from <= Time < to, in the order of their names, which is
// also the order of their periods. Query reads the same blobs. Empty blobs are skipped. An error is yielded
// once, as the last element. Requests: 1 for each whole year, month or day within the range, 1 for each
// further hour, and 1 more for each 5,000 blobs in one of them. A range of more than ten years lists all
// blobs of the log.
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

// checkRange refuses a range with a zero time, and limits it to the times that blob names can express.
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

// list yields all blobs of the hours in the range.
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

// under yields the log's blobs whose names begin with prefix.
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
