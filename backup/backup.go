package backup

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/tablescan"
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	// storers limits concurrent blobs, and concurrent chunks to read.
	storers = 4
	// tableStorers limits the chunks of a table in work: each takes memory for its lines.
	tableStorers = 2
)

// Backup backs up tables under a new name. It returns tables.ErrExists if the vault has a complete or unfinished backup of that name, and
// tables.ErrWiring for a table on Azure Cosmos DB. It reads each chunk back after it has stored it. Only after Backup has returned nil do Manifest,
// Verify and Restore see the backup. It is not a snapshot: see the package comment.
//
// With Options.Resume, an interrupted backup continues after the chunks that the vault has recorded, however old the token is; after a crash,
// Unfinished returns the token. A row that Restore could not write is left out, and passed to Options.Found with the reason: see LeftOut.
//
// Report.Read counts the rows that this run has read: Unchanged in chunks that Options.Base already has, Written in new chunks.
//
// Requests, without those for Options.Blobs: 1 for each 1,000 rows; if the vault is a container, 4 for each chunk of about Options.ChunkBytes, and
// 5 more.
func (v *Vault) Backup(ctx context.Context, name string, all []*tables.Table, options *Options) (_ Report, err error) {
	o, err := options.checked(opBackup)
	if err == nil {
		err = usable(opBackup, true, all...)
	}
	if err == nil {
		err = checkName(opBackup, "the backup", name)
	}
	if err != nil {
		return Report{}, err
	}
	if len(all) == 0 {
		return Report{}, errs.Wiringf(opBackup, "", "there are no tables to back up; give at least one")
	}
	signals := (*core.Account)(all[0].Account()).Telemetry()
	ctx, operation := signals.Begin(ctx, telemetry.Tables, opBackup, all[0].Name())
	defer func() { operation.End(err) }()
	b := &backing{vault: v, name: name, tables: all}
	var sources, sets []string // each with the address of its account
	for i, t := range all {
		if b.has(t.Name()) {
			return Report{}, errs.Wiringf(opBackup, t.Name(), "table %d has the same name as another table of this backup; put it into a backup of its own", i+1)
		}
		b.journal.Tables = append(b.journal.Tables, t.Name())
		sources = append(sources, nameOf(t))
	}
	for _, s := range o.Blobs {
		b.journal.Blobs = append(b.journal.Blobs, s.Name)
		address, _, _ := strings.Cut(s.Container.URL(), "?") // omit the signature, which differs in the next run
		sets = append(sets, s.Name+" "+address+" "+s.Prefix)
	}
	b.run = newRun(signals, opBackup, o, "%q %q %q %s", sources, sets, name, o.Base)
	err = b.all(pace.With(ctx, o.RowsPerSecond))
	return tally.Of[Report](b.end(err == nil), err)
}

type backing struct {
	*run
	vault   *Vault
	name    string
	tables  []*tables.Table
	journal header
	base    *contents // nil for none
	read    int       // bytes of the journal that were read

	number  atomic.Int64 // of the last entry in the journal
	entries []entry      // under run.mu
	blobs   []blobEntry  // under run.mu
}

func (b *backing) has(name string) bool {
	return slices.ContainsFunc(b.journal.Tables, func(t string) bool { return strings.EqualFold(t, name) })
}

func (b *backing) all(ctx context.Context) error {
	if complete, err := b.begin(ctx); complete || err != nil {
		return err
	}
	// A writer may delete a blob after a row that names it was saved, and a saved row may name a blob that is newer than the first listing: save
	// the blobs before and after the tables.
	if err := b.saveBlobs(ctx); err != nil {
		return err
	}
	for i := range b.tables {
		if err := b.table(ctx, i); err != nil {
			return err
		}
	}
	if err := b.saveBlobs(ctx); err != nil {
		return err
	}
	return b.finish(ctx)
}

// begin starts or resumes a journal. complete means that the earlier run has written the manifest.
func (b *backing) begin(ctx context.Context) (complete bool, err error) {
	resumed, err := parseToken(b.run, func(run string) bool { return run != "" })
	if err != nil {
		return false, err
	}
	if b.options.Base != "" {
		if b.base, err = b.vault.read(ctx, b.op, b.options.Base); err != nil {
			return false, err
		}
	}
	if complete, err := b.taken(ctx, resumed); complete || err != nil {
		return complete, err
	}
	if resumed != "" {
		return false, b.resume(ctx, resumed)
	}
	b.journal.Version, b.journal.Run, b.journal.Print = formatVersion, rand.Text(), b.print
	b.journal.Base, b.journal.Began = b.options.Base, time.Now().UTC()
	b.journal.Partitions, b.journal.From, b.journal.Before = b.options.Partitions, rangescan.Key(b.options.From), rangescan.Key(b.options.Before)
	text, err := json.Marshal(&b.journal)
	if err != nil {
		return false, errs.Invalid(b.op, err)
	}
	err = b.vault.create(ctx, b.op, journalName(b.name)+begunName, seal(text))
	if errors.Is(err, tables.ErrExists) {
		return false, &tables.Error{Op: b.op, Table: b.name, Kind: tables.ErrExists,
			Err: errors.New("the vault has an unfinished backup of this name; resume it with the token of Vault.Unfinished, or choose another name")}
	}
	if err == nil {
		b.remember()
	}
	return false, err
}

// taken returns an error if another complete backup has the name. complete is as for begin.
func (b *backing) taken(ctx context.Context, resumed string) (complete bool, err error) {
	c, err := b.vault.read(ctx, b.op, b.name)
	switch {
	case errors.Is(err, tables.ErrNotFound):
		return false, nil
	case err == nil && resumed != "" && c.Run == resumed:
		if err := b.leftBefore(c.entries); err != nil {
			return false, err
		}
		_ = b.vault.objects.clear(ctx, journalName(b.name)) // of a run that died after it wrote the manifest
		return true, nil
	case err == nil || errors.Is(err, tables.ErrGarbled):
		return false, &tables.Error{Op: b.op, Table: b.name, Kind: tables.ErrExists, Err: errors.New("the vault has a backup of this name; choose another name")}
	}
	return false, err
}

func (b *backing) table(ctx context.Context, index int) error {
	group, storing := errgroup.WithContext(ctx)
	group.SetLimit(tableStorers)
	a := &assembly{target: b.options.ChunkBytes, bounds: b.bounds(index), flush: func(p *piece) {
		group.Go(func() error { return b.store(storing, index, p) })
	}}
	ranges := make([]rangescan.Range, len(a.bounds))
	for i := range a.bounds {
		ranges[i] = a.bounds[i].at
	}
	var failed error
	for p, err := range scanLines(b.tables[index], ranges, b.options.Concurrency, asStored).Pages(storing, tablescan.State{}) {
		if err != nil {
			failed = err
			break
		}
		if failed = b.leaveOut(ctx, p.Content.left...); failed != nil {
			break
		}
		b.count(func(r *counts) { r.Read += int64(len(p.Content.lines)) })
		a.add(p.At, b.vault.codecs.pack(p.Content))
	}
	if failed == nil {
		a.close()
	}
	if err := group.Wait(); err != nil {
		return err // if the scan has failed, too, this is the cause
	}
	return failed
}

// bounds returns the ranges of a table that the journal lacks, in order: those of the base's chunks, if any, and those between them.
func (b *backing) bounds(index int) []bound {
	var all []bound
	ofBase := -1
	if b.base != nil {
		ofBase = b.base.table(b.tables[index].Name())
	}
	for _, r := range b.options.ranges() {
		rest := []rangescan.Range{r}
		for _, e := range b.base.of(ofBase) {
			if e.Rows == 0 || len(rest) == 0 || !e.At.Within(rest[len(rest)-1]) {
				continue
			}
			last := rest[len(rest)-1]
			rest = rest[:len(rest)-1]
			all = appendRange(all, rangescan.Range{From: last.From, To: &e.At.From}, nil)
			all = append(all, bound{e.At, e})
			if e.At.To != nil && (last.To == nil || e.At.To.Compare(*last.To) < 0) {
				rest = append(rest, rangescan.Range{From: *e.At.To, To: last.To})
			}
		}
		for _, r := range rest {
			all = appendRange(all, r, nil)
		}
	}
	return without(all, b.entries, index)
}

func (b *backing) store(ctx context.Context, table int, p *piece) error {
	if p.base != nil {
		if unchanged, err := b.keep(ctx, table, p); unchanged || err != nil {
			return err
		}
	}
	e := entry{Table: table, At: rangescan.Range{From: p.at.From}}
	unread := p.left()
	next := b.vault.codecs.begin()
	defer b.vault.codecs.encoders.Put(next.encoder)
	left := p.rows
	for i, k := range p.packs {
		lines, err := b.vault.codecs.decompress(k.lines, int64(k.bytes))
		if err != nil {
			return errs.Invalid(b.op, err)
		}
		p.packs[i] = nil
		e.Times = e.Times.with(k.times) // a little too wide if some rows of the page go into the next chunk
		for text := range bytes.Lines(lines) {
			if err := next.add(text); err != nil {
				return errs.Invalid(b.op, err)
			}
			e.Rows++
			if left--; left > 0 && next.bytes >= int64(b.options.ChunkBytes) {
				end, err := afterLine(text)
				if err != nil {
					return errs.Invalid(b.op, err)
				}
				e.At.To = &end
				n := 0
				for n < len(unread) && e.At.Covers(unread[n]) {
					n++
				}
				e.leave(int64(n), unread[:n]...)
				unread = unread[n:]
				if err := b.put(ctx, e, next); err != nil {
					return err
				}
				e = entry{Table: table, At: rangescan.Range{From: end}, Times: k.times}
			}
		}
	}
	e.At.To = p.at.To
	e.leave(int64(len(unread)), unread...)
	return b.put(ctx, e, next)
}

// put stores the lines of an entry, if any, and then records the entry.
func (b *backing) put(ctx context.Context, e entry, lines *chunk) (err error) {
	if e.Rows > 0 {
		stored, err := lines.end(&e)
		if err != nil {
			return errs.Invalid(b.op, err)
		}
		if e.Chunk, err = b.vault.putChunk(ctx, b.op, stored); err != nil {
			return err
		}
	}
	return b.record(ctx, journaled{entry: &e}, func(r *counts) {
		b.entries = append(b.entries, e)
		r.Written += e.Rows
	})
}

// keep records the base's chunk if it has the rows of the piece; else, or if the chunk is damaged, unchanged is false and the caller stores the
// rows.
func (b *backing) keep(ctx context.Context, table int, p *piece) (unchanged bool, err error) {
	if int64(p.rows) != p.base.Rows {
		return false, nil
	}
	all := sha256.New()
	for _, k := range p.packs {
		lines, err := b.vault.codecs.decompress(k.lines, int64(k.bytes))
		if err != nil {
			return false, errs.Invalid(b.op, err)
		}
		all.Write(lines)
	}
	if hex.EncodeToString(all.Sum(nil)) != p.base.Lines {
		return false, nil
	}
	if _, err := b.vault.lines(ctx, b.op, p.base); err != nil { // it may be damaged, and the base's manifest forged
		return false, ctx.Err()
	}
	e := *p.base
	e.Table, e.At, e.Times, e.Left, e.Keys = table, p.at, span{}, 0, nil
	unread := p.left()
	e.leave(int64(len(unread)), unread...)
	for _, k := range p.packs {
		e.Times = e.Times.with(k.times)
	}
	return true, b.record(ctx, journaled{entry: &e}, func(r *counts) {
		b.entries = append(b.entries, e)
		r.Unchanged += e.Rows
	})
}

func (b *backing) finish(ctx context.Context) error {
	slices.SortFunc(b.entries, func(x, y entry) int {
		return cmp.Or(cmp.Compare(x.Table, y.Table), x.At.From.Compare(y.At.From))
	})
	m := &contents{header: b.journal}
	m.Ended = time.Now().UTC()
	m.blobs = newestBlobs(b.blobs)
	for i := range b.entries {
		e := b.entries[i]
		if n := len(m.entries); n > 0 {
			last := &m.entries[n-1]
			if order(last, &e) >= 0 {
				return &tables.Error{Op: b.op, Table: b.name, Kind: tables.ErrConflict, Err: errors.New("two processes have written this backup at the same time; begin again under another name")}
			}
			if touch := last.Table == e.Table && last.At.To != nil && last.At.To.Compare(e.At.From) == 0; touch && e.Rows == 0 {
				last.At.To = e.At.To // append a range without rows to the one before it
				last.leave(e.Left, e.Keys...)
				continue
			} else if touch && last.Rows == 0 {
				e.At.From = last.At.From
				after := e.Keys
				e.Left, e.Keys = e.Left+last.Left, last.Keys
				e.leave(0, after...)
				*last = e
				continue
			}
		}
		m.entries = append(m.entries, e)
	}
	keys := map[int]int{} // number of left out keys, by table
	for i := range m.entries {
		e := &m.entries[i]
		e.Keys = e.Keys[:min(len(e.Keys), maxLeft-keys[e.Table])]
		keys[e.Table] += len(e.Keys)
	}
	sealed, err := m.encode()
	if err != nil {
		return errs.Invalid(b.op, err)
	}
	if n := 1 + len(m.entries) + len(m.blobs); len(sealed) > maxManifest || n > maxLines {
		return errs.InvalidIn(b.op, b.name, "the manifest has %d bytes and %d lines, and at most %d and %d are allowed; set Options.ChunkBytes to more, or back up fewer tables at once", len(sealed), n, maxManifest, maxLines)
	}
	b.vault.objects.flush()
	if err := b.vault.create(ctx, b.op, manifestName(b.name), sealed); err != nil {
		return err
	}
	// The backup is complete, and a journal beside it is harmless: ignore an error.
	_ = b.vault.objects.clear(ctx, journalName(b.name))
	return nil
}
