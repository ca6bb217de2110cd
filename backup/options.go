package backup

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/internal/continuation"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/tablescan"
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Existing says what Copy and Restore do with a row whose key exists with other content. A row with the same content counts as Unchanged, so that a
// job can be repeated; ReplaceExisting writes it again.
type Existing uint8

// The values of Existing.
const (
	// RefuseExisting ends the job with tables.ErrExists and the row's Key. Other rows may have been written.
	RefuseExisting Existing = iota
	// SkipExisting leaves the existing row, counts it in Report.Unchanged and Report.Findings, and gives it to Options.Found.
	SkipExisting
	// ReplaceExisting overwrites the existing row, whatever its version and content, and counts it in Report.Written.
	ReplaceExisting
)

// Options are the options of all jobs; nil is the same as the zero value. A job returns tables.ErrWiring for a field that it does not use.
type Options struct {
	// Partitions are the partitions to process (default all).
	Partitions []string
	// From and Before limit the job to the rows from From and before Before, in the order of partition key and row key; the zero Key is no limit.
	// With Partitions they cause tables.ErrWiring.
	From, Before tables.Key
	// Concurrency limits the requests that read a source, and those that write to a table (default 8 each). A table on Azure Cosmos DB is read by
	// one request at a time; blobs, and the chunks of Verify, 4 at a time.
	Concurrency int
	// RowsPerSecond limits the rows that the job reads and writes in tables in a second, on average (default 0: no limit).
	RowsPerSecond int
	// Existing is for rows that exist with other content (default RefuseExisting). Only Copy and Restore use it.
	Existing Existing
	// DryRun makes Copy and Restore report what they would do without writing. Whatever Existing is, Found gets each row that exists with other
	// content. Only Copy and Restore use it.
	DryRun bool
	// Found gets each difference, one call at a time. Its error ends the job.
	Found func(Difference) error
	// Progress is called after each page or chunk, one call at a time.
	Progress func(tables.Progress)
	// Resume continues an earlier run from its last Report.Resume; after a crash, Vault.Unfinished returns that of a Backup. tables.ErrInvalid
	// means that the token is of other tables, or of options that select other rows. Found gets the differences after the token's position again.
	// Verify does not use it.
	Resume string
	// Base is an earlier backup in the same vault: Backup reads all rows, and stores only chunks whose rows differ. Only Backup uses it.
	Base string
	// ChunkBytes is about how many bytes of rows a chunk has before compression: 1 KiB to 32 MiB (default 4 MiB). Only Backup uses it.
	ChunkBytes int
	// Blobs are the sets of blobs that belong to the tables, such as those of large properties; Partitions, From and Before do not apply to them.
	// Only Backup and Restore use it.
	Blobs []BlobSet
}

const (
	defaultConcurrency = 8
	defaultChunk       = 4 << 20
	leastChunk         = 1 << 10
	maxChunk           = 32 << 20
)

const (
	opCopy    = "Copy"
	opCompare = "Compare"
	opBackup  = "Backup"
	opRestore = "Restore"
	opVerify  = "Verify"
)

// unused refuses a field that the job does not use.
func (o *Options) unused(op string) error {
	writes, backs := op == opCopy || op == opRestore, op == opBackup
	for _, f := range []struct {
		name      string
		set, used bool
	}{
		{"Existing", o.Existing != RefuseExisting, writes}, {"DryRun", o.DryRun, writes}, {"Resume", o.Resume != "", op != opVerify},
		{"Base", o.Base != "", backs}, {"ChunkBytes", o.ChunkBytes != 0, backs}, {"Blobs", o.Blobs != nil, backs || op == opRestore},
		{"Partitions", o.Partitions != nil, op != opVerify}, {"From or Before", o.From != tables.Key{} || o.Before != tables.Key{}, op != opVerify},
		{"RowsPerSecond", o.RowsPerSecond != 0, op != opVerify}, {"Concurrency", o.Concurrency != 0, op != opVerify},
	} {
		if f.set && !f.used {
			return fmt.Errorf("option %s is set, and %s does not use it; leave it out", f.name, op)
		}
	}
	return nil
}

func (o *Options) checked(op string) (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	if err := c.unused(op); err != nil {
		return c, errs.Wiringf(op, "", "%w", err)
	}
	if err := pace.Check("Options", c.RowsPerSecond); err != nil {
		return c, errs.Wiringf(op, "", "%w", err)
	}
	c.Concurrency, c.ChunkBytes = cmp.Or(c.Concurrency, defaultConcurrency), cmp.Or(c.ChunkBytes, defaultChunk)
	switch {
	case c.Concurrency < 0:
		return c, errs.Wiringf(op, "", "Options.Concurrency is %d; it must be 0 (meaning %d) or more", c.Concurrency, defaultConcurrency)
	case c.Existing > ReplaceExisting:
		return c, errs.Wiringf(op, "", "Options.Existing is %d; it must be RefuseExisting, SkipExisting or ReplaceExisting", c.Existing)
	case c.ChunkBytes < leastChunk || c.ChunkBytes > maxChunk:
		return c, errs.Wiringf(op, "", "Options.ChunkBytes is %d; it must be 0 (meaning %d), or %d to %d", c.ChunkBytes, defaultChunk, leastChunk, maxChunk)
	case c.Partitions != nil && (c.From != tables.Key{} || c.Before != tables.Key{}):
		return c, errs.Wiringf(op, "", "Options.Partitions is set together with From or Before; give one of them")
	}
	if err := checkBlobs(op, c.Blobs); err != nil {
		return c, err
	}
	for _, key := range append([]string{c.From.Partition, c.From.Row, c.Before.Partition, c.Before.Row}, c.Partitions...) {
		if err := rows.CheckKey("key of Options", key); err != nil {
			return c, errs.Invalid(op, err)
		}
	}
	if c.Partitions != nil {
		c.Partitions = append([]string{}, slices.Compact(slices.Sorted(slices.Values(c.Partitions)))...)
	}
	return c, nil
}

// ranges returns the ranges to process, in order.
func (o *Options) ranges() []rangescan.Range {
	if o.Partitions != nil {
		return tablescan.Partitions(o.Partitions)
	}
	all := rangescan.Range{From: rangescan.Point{Partition: o.From.Partition, Row: o.From.Row}}
	if o.Before != (tables.Key{}) {
		all.To = &rangescan.Point{Partition: o.Before.Partition, Row: o.Before.Row}
	}
	if all.To != nil && all.From.Compare(*all.To) >= 0 {
		return nil
	}
	return []rangescan.Range{all}
}

// scope identifies which rows the options select: a run can be resumed only with the same.
func (o *Options) scope() string { return fmt.Sprintf("%q %q %q", o.Partitions, o.From, o.Before) }

// DifferenceKind says how two rows, or a backup and its manifest, differ.
type DifferenceKind uint8

// The kinds of difference.
const (
	// Missing: the first table, or the backup, has the row and the second table does not.
	Missing DifferenceKind = iota
	// Additional: only the second table has the row.
	Additional
	// Different: both have the row, with different properties; or a blob to restore exists with other content.
	Different
	// Damaged: an object of the backup is missing, or differs from what was stored. Only Verify finds it.
	Damaged
	// LeftOut: a row cannot be read as it is stored, since a value is damaged or half of a surrogate pair, which no Go string can hold; or only an
	// emulator stores such a row, for example a date before 1601. Copy, Backup, Restore and Verify count it in Report.Failed; correct it with the
	// program that wrote it. Compare leaves out only what cannot be read.
	LeftOut
)

// String returns the kind's name.
func (k DifferenceKind) String() string {
	return [...]string{"missing", "additional", "different", "damaged", "left out"}[k]
}

// Difference is one row in which two tables differ, one damaged object, or one blob that Restore finds with other content.
type Difference struct {
	Kind       DifferenceKind
	Table      string     // the second table, or the destination; for Damaged, the table in the backup; for a blob, its BlobSet
	Key        tables.Key // for Damaged, the first key that the object can contain
	Properties []string   // for Different, the names, sorted
	Object     string     // for Damaged, the file or blob in the vault; for a blob that Restore finds, its name
	Err        error      // for Damaged and LeftOut, the cause
}

// String formats the difference in one line, without values.
func (d Difference) String() string {
	if d.Kind == Damaged {
		return fmt.Sprintf("damaged: %s of %s: %v", d.Object, d.Table, d.Err)
	}
	if d.Object != "" {
		return fmt.Sprintf("%s: blob %q of %s", d.Kind, d.Object, d.Table)
	}
	text := fmt.Sprintf("%s: (%q, %q) in %s", d.Kind, d.Key.Partition, d.Key.Row, d.Table)
	if d.Kind == LeftOut {
		text += ": " + d.Err.Error()
	}
	if len(d.Properties) > 0 {
		names := slices.Clone(d.Properties)
		for i, name := range names {
			if !edm.IsPlainName(name) { // on an emulator, another program can have written control characters
				names[i] = strconv.Quote(name)
			}
		}
		text += ": " + strings.Join(names, ", ")
	}
	return text
}

// run holds what all jobs share.
type run struct {
	op      string
	options Options
	signals *telemetry.Telemetry // nil for Verify, which has no account
	print   string               // only a run with the same fingerprint of the options can resume this run
	began   time.Time

	mu      sync.Mutex // guards counts
	counts  counts
	calling sync.Mutex // held during calls of options.Found and options.Progress
}

func newRun(signals *telemetry.Telemetry, op string, options Options, format string, args ...any) *run {
	r := &run{op: op, options: options, signals: signals, began: time.Now()}
	r.print = continuation.Hash("%s %s %s", op, options.scope(), fmt.Sprintf(format, args...))
	r.counts.Resume = options.Resume
	return r
}

func (r *run) count(change func(*counts)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.counts)
}

func (r *run) found(all ...Difference) error {
	if len(all) == 0 {
		return nil
	}
	r.calling.Lock()
	defer r.calling.Unlock()
	for _, d := range all {
		r.count(func(t *counts) { t.Findings++ })
		if r.options.Found != nil {
			if err := r.options.Found(d); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) leaveOut(ctx context.Context, all ...Difference) error {
	r.count(func(t *counts) { t.Failed += int64(len(all)) })
	for _, d := range all {
		row := &tables.Error{Op: r.op, Table: d.Table, Key: d.Key, Kind: tables.ErrInvalid, Err: d.Err}
		r.signals.Log(ctx, telemetry.LineRowLeftOut, d.Table, slog.String("table", d.Table), r.signals.Error(row))
	}
	return r.found(all...)
}

func (r *run) progress(change func(*counts)) {
	r.calling.Lock()
	defer r.calling.Unlock()
	r.count(change)
	if r.options.Progress != nil {
		var p tables.Progress
		tally.Into(r.end(false), &p)
		r.options.Progress(p)
	}
}

// end returns the result, without a token if the run is complete.
func (r *run) end(complete bool) counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts.Elapsed = time.Since(r.began); complete {
		r.counts.Resume = ""
	}
	return r.counts
}

type token[P any] struct {
	Version int    `json:"v"`
	Run     string `json:"q"`
	At      P      `json:"p"`
}

const tokenVersion = 1

func encodeToken[P any](r *run, at P) string {
	return continuation.Encode(token[P]{tokenVersion, r.print, at})
}

func parseToken[P any](r *run, valid func(P) bool) (at P, err error) {
	if r.options.Resume == "" {
		return at, nil
	}
	var t token[P]
	switch {
	case continuation.Decode(r.options.Resume, &t) != nil:
		return at, errs.Invalidf(r.op, "Options.Resume, of %d characters, is not Report.Resume of an earlier %s", len(r.options.Resume), r.op)
	case t.Version != tokenVersion:
		return at, errs.Invalidf(r.op, "Options.Resume has version %d, and this build reads version %d; begin again without it", t.Version, tokenVersion)
	case t.Run != r.print:
		return at, errs.Invalidf(r.op, "Options.Resume is the token of a run with other options or tables; repeat those of that run")
	case !valid(t.At):
		return at, errs.Invalidf(r.op, "Options.Resume is damaged: it has no position; begin again without it")
	}
	return t.At, nil
}

// each limits concurrent calls for 0 to n-1, and returns the first error.
func each(ctx context.Context, concurrency, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for i := range n {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return do(ctx, i)
		})
	}
	return group.Wait()
}
