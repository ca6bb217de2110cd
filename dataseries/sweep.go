package dataseries

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/continuation"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

// SweepOptions are the options of SweepMarkers; nil is the same as the zero value.
type SweepOptions struct {
	// Partitions are the partitions of the series; nil means the whole table, which is scanned, or all blobs of the
	// series.
	Partitions []string
	// DryRun counts what would be removed, and removes nothing.
	DryRun bool
	// RowsPerSecond limits how many rows the sweep reads and writes in tables in a second, on average (default 0: no limit), to
	// leave the throughput of the tables to other programs.
	RowsPerSecond int
	// Progress is called after each transaction, or blob.
	Progress func(tables.Progress)
	// Resume is Report.Resume of an earlier run, to continue it. With other partitions or another series,
	// SweepMarkers returns tables.ErrInvalid. On Cosmos DB, Report.Resume is always "" and a run starts
	// again: deleted markers cost it nothing.
	Resume string
}

// callTerm less a sixth, 50 minutes, is the time limit of a call of AddOnce: after a lost response it looks for its own
// marker, which no sweep may have removed by then. So a sweep keeps markers up to the age of callTerm and a sixth.
const callTerm = time.Hour

// leastAge, 70 minutes, is the shortest age at which markers are swept.
const leastAge = callTerm + callTerm/6

const errLateCall = "AddOnce does not know whether it has counted; repeat the call with the same operation ID"

// SweepReport says what a SweepMarkers has done, with the runs that it resumes.
type SweepReport struct {
	tables.Run
	Read    int64 // markers that were old enough
	Deleted int64 // markers removed
	Failed  int64 // blobs that the service refused to read or write
}

// String formats the counts that are not 0, without Resume.
func (r SweepReport) String() string { return tally.Text(r) }

// SweepMarkers removes the markers of AddOnce that are older than olderThan, at least 70 minutes, by the service's
// clock. A call of AddOnce ends within 50 minutes, so no sweep removes the marker of a running call. An operation
// counts again if it is repeated after its marker was removed. So choose olderThan longer than any retry can be
// delayed: longer than a message stays on its queue, including the poison queue, and longer than any outage of the
// program that counts. Several days cost little: a marker takes about 500 bytes.
//
// In rows, it removes the markers of all series in the partitions, with any prefix. A sweep can be
// interrupted anywhere and run again, and several may run at once. If the service refuses to read or write a blob, for
// example because of its access tier, the sweep counts it as Failed, goes on, and returns the error at its end.
//
// Requests in rows: 1 for the service's time, 1 for each page of at most 1,000 old markers, and 1 for each
// transaction of at most 100 markers of a partition. Requests in blobs: 1 to list each 5,000 blobs, 1 to read
// each blob, and 1 to rewrite each blob with old markers.
func (c *Counter[V]) SweepMarkers(ctx context.Context, olderThan time.Duration, options *SweepOptions) (SweepReport, error) {
	const op = "SweepMarkers"
	if options == nil {
		options = &SweepOptions{}
	}
	s := &sweeping{SweepOptions: *options, olderThan: olderThan, began: time.Now()}
	if olderThan < leastAge {
		return s.report, c.failed(op, tables.Key{}, errs.Invalidf("", "olderThan is %v; it must be %v or more, since a call of AddOnce may read its marker until then", olderThan, leastAge))
	}
	if err := pace.Check("SweepOptions", options.RowsPerSecond); err != nil {
		return s.report, c.failed(op, tables.Key{}, errs.Wiringf("", "", "%w", err))
	}
	for _, partition := range options.Partitions {
		if err := checkKeys(tables.Key{Partition: partition}); err != nil {
			return s.report, c.failed(op, tables.Key{}, err)
		}
	}
	if err := s.resume(c.table.Name(), c.layout.prefix); err != nil {
		return s.report, c.failed(op, tables.Key{}, err)
	}
	err := c.failed(op, tables.Key{}, c.shelf.sweep(pace.With(ctx, options.RowsPerSecond), s))
	if s.report.Elapsed = time.Since(s.began); err == nil {
		s.report.Resume = ""
	}
	return s.report, err
}

// sweeping is one run of SweepMarkers.
type sweeping struct {
	SweepOptions
	olderThan time.Duration
	began     time.Time
	unordered bool // the service returns rows in no order, so the run cannot be resumed
	at        sweepMark
	report    SweepReport
}

// sweepMark is the position of a run, as stored in its token.
type sweepMark struct {
	Version   int    `json:"v"`
	Of        string `json:"q"` // fingerprint of the counter and the partitions
	Part      int    `json:"i"` // index in Partitions
	Partition string `json:"p"` // partition key of the last processed row
	Row       string `json:"r"`
	Old       int64  `json:"o"`
	Removed   int64  `json:"d"`
}

const sweepVersion = 1

func (s *sweeping) resume(table, prefix string) error {
	of := append([]string{table, prefix, fmt.Sprint(s.DryRun, s.Partitions == nil)}, s.Partitions...)
	s.at = sweepMark{Version: sweepVersion, Of: rows.Hash(of...)}
	if s.Resume == "" {
		return nil
	}
	var at sweepMark
	if continuation.Decode(s.Resume, &at) != nil || at.Version != sweepVersion || at.Of != s.at.Of || at.Part < 0 || at.Part > len(s.Partitions) {
		return errs.Invalid("", errors.New("SweepOptions.Resume is not Report.Resume of a sweep with the same table, series, Partitions and DryRun; repeat the options of that sweep, or give \"\" to begin"))
	}
	s.at = at
	s.report = SweepReport{Run: tables.Run{Resume: s.Resume}, Read: at.Old, Deleted: at.Removed}
	return nil
}

// passed records that the run has dealt with the markers up to a key.
func (s *sweeping) passed(key tables.Key, old, removed int) {
	s.report.Read, s.report.Deleted, s.report.Elapsed = s.report.Read+int64(old), s.report.Deleted+int64(removed), time.Since(s.began)
	s.at.Partition, s.at.Row, s.at.Old, s.at.Removed = key.Partition, key.Row, s.report.Read, s.report.Deleted
	if !s.unordered {
		s.report.Resume = continuation.Encode(s.at)
	}
	if s.Progress != nil {
		s.Progress(tables.Progress{Run: s.report.Run, Read: s.report.Read, Failed: s.report.Failed})
	}
}

// sweep removes markers in transactions of one partition each.
func (r *rowShelf) sweep(ctx context.Context, s *sweeping) error {
	now, err := r.clock(ctx)
	if err != nil {
		return err
	}
	s.unordered = r.table.Account().IsCosmos()
	q := r.rows.Query().Where(tables.Lt("Timestamp", now.Add(-s.olderThan).Truncate(100)))
	if s.Partitions == nil {
		if s.Resume != "" {
			q = q.Where(tables.Or(tables.Gt("PartitionKey", s.at.Partition),
				tables.And(tables.Eq("PartitionKey", s.at.Partition), tables.Gt("RowKey", s.at.Row))))
		}
		return r.sweepRows(ctx, s, q.Rows(compoundkey.Range(markerPrefix, behindPrefix)).AllowTableScan())
	}
	for ; s.at.Part < len(s.Partitions); s.at.Part, s.at.Row = s.at.Part+1, "" {
		of := q.Partition(s.Partitions[s.at.Part]).Rows(compoundkey.Range(markerPrefix, behindPrefix))
		if s.at.Row != "" {
			of = of.Where(tables.Gt("RowKey", s.at.Row))
		}
		if err := r.sweepRows(ctx, s, of); err != nil {
			return err
		}
	}
	return nil
}

func (r *rowShelf) sweepRows(ctx context.Context, s *sweeping, q tables.Query[tables.Entity]) error {
	var group []*tables.Entity
	flush := func() error {
		if len(group) == 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		removed := 0
		if !s.DryRun {
			var err error
			if removed, err = r.removeMarkers(ctx, group); err != nil {
				return err
			}
		}
		s.passed(group[len(group)-1].Key, len(group), removed)
		group = nil
		return nil
	}
	for row, err := range q.Select(markerSeries).All(ctx) {
		if err != nil {
			return err
		}
		if len(group) == tables.MaxTransactionOperations || len(group) > 0 && group[0].Key.Partition != row.Key.Partition {
			if err := flush(); err != nil {
				return err
			}
		}
		group = append(group, row)
	}
	return flush()
}

// removeMarkers removes markers of one partition, and returns how many. It deletes under their ETags: a marker that another
// sweep has removed, and an operation has inserted again, stays.
func (r *rowShelf) removeMarkers(ctx context.Context, group []*tables.Entity) (removed int, err error) {
	x := r.table.NewTransaction()
	for _, row := range group {
		x.Delete(row)
	}
	if _, err = x.Commit(ctx); err == nil {
		return len(group), nil
	}
	if !isLost(err) {
		return 0, err
	}
	for _, row := range group {
		switch err := r.rows.Delete(ctx, row); {
		case err == nil:
			removed++
		case !isLost(err):
			return removed, err
		}
	}
	return removed, nil
}

// clock returns the service's time, by which the age of markers is measured. Requests: 1.
func (r *rowShelf) clock(ctx context.Context) (time.Time, error) {
	ex := wire.Exchange{Entity: &wire.Address{Table: r.table.Name(), RowKey: markerPrefix}}
	_, err := r.table.Client().GetEntity(wire.With(ctx, &ex), wire.StubKey, wire.StubKey, nil)
	if err != nil && !wire.HasCode(err, "ResourceNotFound", "EntityNotFound", "EntityDoesNotExist") {
		return time.Time{}, core.ServiceError("", "", err)
	}
	return dateOf(ex.Header)
}

func dateOf(h http.Header) (time.Time, error) {
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return now, garbled(tables.Key{}, errors.New("the response has no Date header, which gives the service's time; repeat the operation"))
	}
	return now.UTC(), nil
}
