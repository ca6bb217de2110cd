package backup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/tablescan"
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Copy copies the rows of a table into an existing table, of any account, with all properties unchanged but for the marks of index copies: see the
// package comment. Existing rows are treated as Options.Existing says. It is not a snapshot. It can be repeated, with or without Resume: rows that
// are there already count as Unchanged, or are written again with ReplaceExisting.
//
// Requests: 1 for each 1,000 rows that are read, and 1 for each transaction of up to 100 rows of a partition. If a row exists or a response is
// lost, usually up to 2 more for that transaction. If the destination then has over 1,000 rows between the transaction's first and last key, up to
// 5 more, and 1 for each row that these requests do not find.
func Copy(ctx context.Context, from, to *tables.Table, options *Options) (_ CopyReport, err error) {
	o, err := options.checked(opCopy)
	if err == nil {
		err = usable(opCopy, false, from, to)
	}
	if err != nil {
		return CopyReport{}, err
	}
	if from.Same(to) {
		return CopyReport{}, errs.Wiringf(opCopy, to.Name(), "source and destination are the same table; give another destination")
	}
	signals := (*core.Account)(from.Account()).Telemetry()
	ctx, span := signals.Begin(ctx, telemetry.Tables, opCopy, from.Name())
	defer func() { span.End(err) }()
	r := newRun(signals, opCopy, o, "%s %s %d %t", nameOf(from), nameOf(to), o.Existing, o.DryRun)
	ranges := o.ranges()
	at, err := parseToken(r, func(s tablescan.State) bool { return s.Valid(ranges) })
	if err != nil {
		return CopyReport{}, err
	}
	w := &writer{r, to}
	scan := tablescan.Scan[*copied]{
		Table: (*core.Table)(from), Ranges: ranges, Readers: o.Concurrency, Plain: true,
		New: func() *copied { return &copied{} },
		Row: func(_ context.Context, p *copied, row *tablerow.Row) error {
			if why := uncopied(row); why != nil {
				p.left = append(p.left, Difference{Kind: LeftOut, Table: from.Name(), Key: row.Key, Err: why})
				return nil
			}
			if isOutside(row) {
				p.outside++
			}
			p.writes = append(p.writes, w.row(marked(row)))
			return nil
		},
		Work: func(ctx context.Context, _ rangescan.Range, p *copied) error {
			slices.SortFunc(p.writes, byKey) // Azure Cosmos DB returns rows in no order
			for some := range transactions(p.writes) {
				if err := w.commit(ctx, some); err != nil {
					return err
				}
			}
			return nil
		},
	}
	for p, err := range scan.Pages(pace.With(ctx, o.RowsPerSecond), at) {
		if err != nil {
			return tally.Of[CopyReport](r.end(false), err)
		}
		if err := r.leaveOut(ctx, p.Content.left...); err != nil {
			return tally.Of[CopyReport](r.end(false), err)
		}
		r.progress(func(t *counts) {
			t.Read += int64(len(p.Content.writes))
			t.Outside += p.Content.outside
			t.Resume = encodeToken(r, p.Rest)
		})
	}
	return tally.Of[CopyReport](r.end(true), nil)
}

type copied struct {
	writes  []tablerow.Row
	outside int64
	left    []Difference // rows that cannot be copied
}

// usable refuses a table to which no request can be made and, with ordered, one whose rows come in no order.
func usable(op string, ordered bool, all ...*tables.Table) error {
	for _, t := range all {
		if t == nil {
			return errs.Wiringf(op, "", "a table is nil; make it with Account.Table")
		}
		if err := (*core.Table)(t).Usable(); err != nil {
			return errs.Wiringf(op, "", "%w", err)
		}
		if ordered && t.Account().IsCosmos() {
			return errs.Wiringf(op, t.Name(), "the table is on Azure Cosmos DB, which returns rows in no order of keys; use Copy")
		}
	}
	return nil
}

func nameOf(t *tables.Table) string {
	return t.Account().Endpoints().Table + "/" + strings.ToLower(t.Name())
}

const (
	// maxTransaction limits the estimated bytes of a transaction.
	maxTransaction = tables.MaxTransactionSize - 64<<10
	// operationOverhead is what an operation adds besides its row: headers, boundaries and the account's address.
	operationOverhead = 1024
	// maxRounds limits the attempts for a transaction or a blob if writers or lost responses interfere.
	maxRounds = 8
	// maxLook limits the pages that writer.there reads.
	maxLook = 4
)

type writer struct {
	*run
	table *tables.Table
}

func (w *writer) row(row *tablerow.Row) tablerow.Row {
	verb := wire.VerbInsert
	if w.options.Existing == ReplaceExisting {
		verb = wire.VerbReplace // without an ETag, it inserts the row or overwrites any version
	}
	return tablerow.Row{Verb: verb, Key: row.Key, Properties: slices.Clone(row.Properties), Plain: true}
}

func byKey(a, b tablerow.Row) int {
	return cmp.Or(compoundkey.Compare(a.Key.Partition, b.Key.Partition), compoundkey.Compare(a.Key.Row, b.Key.Row))
}

// transactions splits sorted writes into transactions.
func transactions(all []tablerow.Row) iter.Seq[[]tablerow.Row] {
	return func(yield func([]tablerow.Row) bool) {
		var line []byte
		begin, size := 0, 0
		for i := range all {
			key := all[i].Key
			line = appendLine(line[:0], key.Partition, key.Row, all[i].Properties)
			more := len(line) + operationOverhead + 3*(len(key.Partition)+len(key.Row))
			if i > begin && (key.Partition != all[begin].Key.Partition || i-begin == tables.MaxTransactionOperations || size+more > maxTransaction) {
				if !yield(all[begin:i:i]) {
					return
				}
				begin, size = i, 0
			}
			size += more
		}
		if begin < len(all) {
			yield(all[begin:])
		}
	}
}

// ofContent are the codes with which the service refuses a row for its content.
var ofContent = []string{"EntityTooLarge", "PropertyValueTooLarge", "TooManyProperties", "KeyValueTooLarge", "PropertyNameInvalid", "PropertyNameTooLong",
	"InvalidValueType", "OutOfRangeInput", "PropertiesNeedValue", "DuplicatePropertiesSpecified", "InvalidInput", "RequestBodyTooLarge"}

// refusedRow returns the index of the write that the service has refused for its content, and why; or -1.
func refusedRow(err error, n int) (at int, why error) {
	e, ok := errors.AsType[*tables.Error](err)
	if !ok || !slices.Contains(ofContent, e.Code) || !errors.Is(err, tables.ErrInvalid) && !errors.Is(err, tables.ErrTooLarge) {
		return -1, nil // also if an earlier attempt may have written the rows
	}
	if at = e.Change - 1; n == 1 {
		at = 0
	}
	return at, fmt.Errorf("the service refuses the row with the code %s; correct it with the program that wrote it", e.Code)
}

// commit writes the rows of one transaction. After a lost response it reads the rows: one with the same content counts as written. A row that the
// service refuses for its content is left out, for one more request.
//
// Requests: 1. If a row exists or the response is lost: 1 for each 1,000 rows of the destination between the first and the last key, at most 4;
// then 1 for each row not found by these; and 1 for the remaining writes.
func (w *writer) commit(ctx context.Context, writes []tablerow.Row) (err error) {
	for round := range maxRounds {
		if round > 0 || w.options.DryRun {
			if writes, err = w.left(ctx, writes); err != nil || len(writes) == 0 {
				return err
			}
			if w.options.DryRun {
				w.count(func(r *counts) { r.Written += int64(len(writes)) })
				return nil
			}
		}
		_, _, err = (*core.Table)(w.table).Commit(ctx, w.op, writes...)
		switch {
		case err == nil:
			w.count(func(r *counts) {
				r.Transactions++
				r.Rows += int64(len(writes))
				r.Written += int64(len(writes))
			})
			return nil
		case errors.Is(err, tables.ErrTooLarge) && len(writes) > 1: // the estimate was too low
			middle := len(writes) / 2
			if err := w.commit(ctx, writes[:middle]); err != nil {
				return err
			}
			return w.commit(ctx, writes[middle:])
		}
		if at, why := refusedRow(err, len(writes)); at >= 0 {
			if err := w.leaveOut(ctx, Difference{Kind: LeftOut, Table: w.table.Name(), Key: writes[at].Key, Err: why}); err != nil || len(writes) == 1 {
				return err
			}
			return w.commit(ctx, slices.Concat(writes[:at], writes[at+1:]))
		}
		switch {
		case !errors.Is(err, tables.ErrExists) && !errors.Is(err, tables.ErrConflict) && !errors.Is(err, tables.ErrUnknownOutcome):
			return err
		case ctx.Err() != nil: // the next run finds out which rows exist
			return &tables.Error{Op: w.op, Table: w.table.Name(), Err: ctx.Err()}
		}
		w.count(func(r *counts) { r.Conflicts++ })
	}
	return err
}

// left returns the writes that are still to be sent.
func (w *writer) left(ctx context.Context, writes []tablerow.Row) ([]tablerow.Row, error) {
	there, err := w.there(ctx, writes)
	if err != nil {
		return nil, err
	}
	var left []tablerow.Row
	var scratch []byte
	var differ []Difference
	unchanged := 0
	for _, write := range writes {
		scratch = appendLine(scratch[:0], write.Key.Partition, write.Key.Row, write.Properties)
		text, exists := there[write.Key.Row]
		switch {
		case !exists:
			left = append(left, write)
			continue
		case bytes.Equal(text, scratch):
			unchanged++
			continue
		}
		var names []string
		if text != nil { // the destination's row exists and can be read
			names = differing(scratch, text)
		}
		if w.options.DryRun || w.options.Existing == SkipExisting {
			differ = append(differ, Difference{Kind: Different, Table: w.table.Name(), Key: write.Key, Properties: names})
		}
		switch w.options.Existing {
		case ReplaceExisting:
			left = append(left, write)
		case SkipExisting:
			unchanged++
		default:
			if !w.options.DryRun {
				return nil, &tables.Error{Op: w.op, Table: w.table.Name(), Key: write.Key, Kind: tables.ErrExists,
					Err: errors.New("the destination has a row with this key and other properties; set Options.Existing to SkipExisting or ReplaceExisting, or use an empty table")}
			}
		}
	}
	w.count(func(r *counts) { r.Unchanged += int64(unchanged) })
	return left, w.found(differ...)
}

// there returns the destination's lines under the keys of writes, by row key; nil for a row that cannot be read. If many other rows lie between, it
// reads each row by itself.
func (w *writer) there(ctx context.Context, writes []tablerow.Row) (map[string][]byte, error) {
	wanted := make(map[string]bool, len(writes))
	for i := range writes {
		wanted[writes[i].Key.Row] = true
	}
	there := map[string][]byte{}
	pages := 0
	read := func(first, last tables.Key) error {
		between := rangescan.Range{
			From: rangescan.Point{Partition: first.Partition, Row: first.Row},
			To:   &rangescan.Point{Partition: last.Partition, Row: last.Row, Side: rangescan.After},
		}
		for p, err := range readRange(ctx, w.table, between) {
			if err != nil {
				return err
			}
			for _, l := range p.lines {
				if wanted[l.key.Row] {
					there[l.key.Row] = l.text
				}
			}
			for _, d := range p.left {
				if wanted[d.Key.Row] {
					there[d.Key.Row] = nil
				}
			}
			if pages++; pages == maxLook {
				break
			}
		}
		return nil
	}
	if err := read(writes[0].Key, writes[len(writes)-1].Key); err != nil || pages < maxLook {
		return there, err
	}
	for i := range writes {
		key := writes[i].Key
		if _, known := there[key.Row]; known {
			continue
		}
		pages = 0
		if err := read(key, key); err != nil {
			return nil, err
		}
	}
	return there, nil
}
