package backup

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/internal/continuation"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/tablescan"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/tables"
)

// storers is the number of chunks that are compressed and stored concurrently.
const storers = 4

// Backup backs up tables under a new name: if the vault already has a complete or unfinished backup of that
// name, Backup returns tables.ErrExists. Manifest, Verify and Restore see the backup only after Backup has
// returned nil. Backup reads each chunk back after it has stored it. For a table on Azure Cosmos DB it
// returns tables.ErrWiring.
//
// Every finished chunk is recorded in the vault. With Options.Resume, an interrupted backup continues after
// the recorded chunks, however old the token is; after a crash, Unfinished returns the token. A backup that
// runs concurrently with writers is not a snapshot: see the package comment.
//
// Report.Read counts the rows that this run has read. Of these, Unchanged counts the rows in chunks that the
// backup Options.Base already has, and Written the rows in new chunks.
//
// Requests: 1 for each 1,000 rows, and 4 for each chunk of about Options.ChunkBytes if the vault is a container; 5 more.
func (v *Vault) Backup(ctx context.Context, name string, all []*tables.Table, options *Options) (_ tables.Report, err error) {
	o, err := options.checked(opBackup)
	if err == nil {
		err = usable(opBackup, true, all...)
	}
	if err == nil {
		err = checkName(opBackup, "the backup", name)
	}
	if err != nil {
		return tables.Report{}, err
	}
	if len(all) == 0 {
		return tables.Report{}, tables.Wiringf(opBackup, "", "there are no tables to back up; give at least one")
	}
	ctx, operation := tables.TelemetryOf(rows.Open, all[0].Account()).Begin(ctx, telemetry.Tables, opBackup, all[0].Name())
	defer func() { operation.End(err) }()
	b := &backing{vault: v, name: name, tables: all}
	var sources, sets []string // of all accounts
	for i, t := range all {
		if b.has(t.Name()) {
			return tables.Report{}, tables.Wiringf(opBackup, t.Name(), "table %d has the same name as another table of this backup; put it into a backup of its own", i+1)
		}
		b.journal.Tables = append(b.journal.Tables, t.Name())
		sources = append(sources, nameOf(t))
	}
	for _, s := range o.Blobs {
		b.journal.Blobs = append(b.journal.Blobs, s.Name)
		address, _, _ := strings.Cut(s.Container.URL(), "?") // omit the signature, which differs in the next run
		sets = append(sets, s.Name+" "+address+" "+s.Prefix)
	}
	b.run = newRun(opBackup, o, "%q %q %q %s", sources, sets, name, o.Base)
	err = b.all(pace.With(ctx, o.RowsPerSecond))
	return b.end(err == nil).Report, err
}

// Unfinished returns the token with which Options.Resume continues an interrupted backup, or "" if the vault has no unfinished backup of
// the name. A complete backup whose journal is still there also has a token: Backup with that token removes the journal. Requests: 2.
func (v *Vault) Unfinished(ctx context.Context, backup string) (string, error) {
	const op = "Unfinished"
	if err := checkName(op, "the backup", backup); err != nil {
		return "", err
	}
	c, err := v.read(ctx, op, backup)
	if err != nil && !errors.Is(err, tables.ErrNotFound) {
		return "", err
	}
	h, err := v.begun(ctx, op, backup)
	if err != nil || h == nil || c != nil && c.Run != h.Run {
		return "", err
	}
	return continuation.Encode(token[string]{tokenVersion, h.Print, h.Run}), nil
}

// begun reads the header of a journal, nil if there is none.
func (v *Vault) begun(ctx context.Context, op, backup string) (*header, error) {
	name := journalName(backup) + begunName
	sealed, err := v.objects.get(ctx, name, maxEntry)
	if errors.Is(err, tables.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, v.failed(op, name, err)
	}
	h := &header{}
	text, err := unseal(sealed)
	if err == nil {
		err = json.Unmarshal(text, h)
	}
	if err != nil {
		return nil, damaged(op, name, "the journal is damaged: %v", err)
	}
	return h, nil
}

// backing is one backup.
type backing struct {
	*run
	vault   *Vault
	name    string
	tables  []*tables.Table
	journal header
	base    *contents // nil for none

	complete bool // an earlier run has written the manifest

	number  atomic.Int64 // number of the last entry in the journal
	entries []entry      // under run.mu
	blobs   []blobEntry  // under run.mu
}

func (b *backing) has(name string) bool {
	return slices.ContainsFunc(b.journal.Tables, func(t string) bool { return strings.EqualFold(t, name) })
}

func (b *backing) all(ctx context.Context) error {
	if err := b.begin(ctx); err != nil || b.complete {
		return err
	}
	// Blobs are listed and saved twice, before the tables and after them: the first listing finds blobs that
	// are deleted later although a saved row names them, and the second finds blobs that were created after
	// the first.
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

// begin writes the header of the journal, or reads the journal of the run that this one resumes.
func (b *backing) begin(ctx context.Context) error {
	resumed, err := parseToken(b.run, func(run string) bool { return run != "" })
	if err != nil {
		return err
	}
	if b.options.Base != "" {
		if b.base, err = b.vault.read(ctx, b.op, b.options.Base); err != nil {
			return err
		}
	}
	if complete, err := b.taken(ctx, resumed); complete || err != nil {
		b.complete = complete
		return err
	}
	if resumed != "" {
		return b.resume(ctx, resumed)
	}
	b.journal.Version, b.journal.Run, b.journal.Print = formatVersion, rand.Text(), b.print
	b.journal.Base, b.journal.Began = b.options.Base, time.Now().UTC()
	b.journal.Partitions, b.journal.From, b.journal.Before = b.options.Partitions, rangescan.Key(b.options.From), rangescan.Key(b.options.Before)
	text, err := json.Marshal(&b.journal)
	if err != nil {
		return tables.Invalid(b.op, err)
	}
	err = b.vault.create(ctx, b.op, journalName(b.name)+begunName, seal(text))
	if errors.Is(err, tables.ErrExists) {
		return &tables.Error{Op: b.op, Table: b.name, Kind: tables.ErrExists,
			Err: errors.New("the vault has an unfinished backup of this name; resume it with the token of Vault.Unfinished, or choose another name")}
	}
	if err != nil {
		return err
	}
	b.remember()
	return nil
}

// taken returns an error if another complete backup has the name. complete is true if the backup of the run
// to resume is already complete.
func (b *backing) taken(ctx context.Context, resumed string) (complete bool, err error) {
	c, err := b.vault.read(ctx, b.op, b.name)
	switch {
	case errors.Is(err, tables.ErrNotFound):
		return false, nil
	case err == nil && resumed != "" && c.Run == resumed:
		if err := b.leftBefore(c.entries); err != nil {
			return false, err
		}
		_ = b.vault.objects.clear(ctx, journalName(b.name)) // an earlier run wrote the manifest and then died before it removed the journal
		return true, nil
	case err == nil || errors.Is(err, tables.ErrGarbled):
		return false, &tables.Error{Op: b.op, Table: b.name, Kind: tables.ErrExists, Err: errors.New("the vault has a backup of this name; choose another name")}
	}
	return false, err
}

// remember puts the token of the run into the report.
func (b *backing) remember() {
	b.count(func(r *Result) { r.Resume = encodeToken(b.run, b.journal.Run) })
}

// resume reads the journal of an earlier run.
func (b *backing) resume(ctx context.Context, run string) error {
	h, err := b.vault.begun(ctx, b.op, b.name)
	switch {
	case err != nil:
		return err
	case h == nil:
		return &tables.Error{Op: b.op, Table: b.name, Kind: tables.ErrNotFound, Err: errors.New("the vault has no unfinished backup of this name; begin again without Options.Resume")}
	case h.Run != run || h.Print != b.print || !slices.Equal(h.Tables, b.journal.Tables):
		return tables.Invalidf(b.op, "Options.Resume is the token of another backup; give the one from Vault.Unfinished")
	}
	b.journal = *h
	b.remember()
	var names []string
	for name, err := range b.vault.objects.list(ctx, journalName(b.name)) {
		if err != nil {
			return b.vault.failed(b.op, b.name, err)
		}
		names = append(names, name)
	}
	slices.Sort(names) // if a blob has two entries, the later one counts
	for _, name := range names {
		// Entries are stored concurrently, so one number can be missing while a higher one exists. Its range is read again.
		n, err := strconv.Atoi(strings.TrimPrefix(name, journalName(b.name)))
		if err != nil || name != entryName(b.name, n) {
			continue
		}
		if err := b.readEntry(ctx, name); err != nil {
			return err
		}
		b.number.Store(max(b.number.Load(), int64(n)))
	}
	return b.leftBefore(b.entries)
}

// leftBefore counts the rows that earlier runs could not read, and passes them to Options.Found.
func (b *backing) leftBefore(entries []entry) error {
	for i := range entries {
		e := &entries[i]
		b.count(func(r *Result) { r.Failed += e.Left })
		for _, key := range e.Keys {
			if err := b.found(Difference{Kind: Unreadable, Table: b.journal.Tables[e.Table], Key: tables.Key(key), Err: errLeftBefore}); err != nil {
				return err
			}
		}
	}
	return nil
}

var errLeftBefore = errors.New("an earlier run of the backup could not read the row")

// journaled is an entry of the journal.
type journaled struct {
	*entry
	Blob *blobEntry `json:"blob,omitempty"`
}

func (b *backing) readEntry(ctx context.Context, name string) error {
	sealed, err := b.vault.objects.get(ctx, name, maxEntry)
	if err != nil {
		return b.vault.failed(b.op, name, err)
	}
	j := journaled{entry: &entry{}}
	text, err := unseal(sealed)
	if err == nil {
		err = json.Unmarshal(text, &j)
	}
	if err == nil && j.Blob != nil {
		b.blobs = append(b.blobs, *j.Blob)
		err = j.Blob.check(len(b.options.Blobs))
	} else if err == nil {
		b.entries = append(b.entries, *j.entry)
		err = j.check(len(b.tables))
	}
	if err != nil {
		return damaged(b.op, name, "the entry of the journal is damaged: %v", err)
	}
	return nil
}

// record adds an entry to the journal.
func (b *backing) record(ctx context.Context, e entry, counts ...func(*Result)) error {
	if err := b.add(ctx, journaled{entry: &e}); err != nil {
		return err
	}
	b.progress(func(r *Result) {
		b.entries = append(b.entries, e)
		for _, count := range counts {
			count(r)
		}
	})
	return nil
}

// recordBlob adds an entry of a blob to the journal.
func (b *backing) recordBlob(ctx context.Context, e blobEntry) error {
	if err := b.add(ctx, journaled{Blob: &e}); err != nil {
		return err
	}
	b.progress(func(*Result) { b.blobs = append(b.blobs, e) })
	return nil
}

func (b *backing) add(ctx context.Context, j journaled) error {
	text, err := json.Marshal(j)
	if err != nil {
		return tables.Invalid(b.op, err)
	}
	err = b.vault.create(ctx, b.op, entryName(b.name, int(b.number.Add(1))), seal(text))
	if errors.Is(err, tables.ErrExists) {
		return &tables.Error{Op: b.op, Table: b.name, Kind: tables.ErrConflict, Err: errors.New("another process writes this backup at the same time; let one of them finish it")}
	}
	return err
}

// table backs up the ranges of a table that the journal does not cover.
func (b *backing) table(ctx context.Context, index int) error {
	group, storing := errgroup.WithContext(ctx)
	group.SetLimit(storers)
	a := &assembly{target: b.options.ChunkBytes, bounds: b.bounds(index), flush: func(p *piece) {
		group.Go(func() error { return b.store(storing, index, p) })
	}}
	ranges := make([]rangescan.Range, len(a.bounds))
	for i := range a.bounds {
		ranges[i] = a.bounds[i].at
	}
	var failed error
	for p, err := range scanLines(b.tables[index], ranges, b.options.Concurrency).Pages(storing, tablescan.State{}) {
		if err != nil {
			failed = err
			break
		}
		if failed = b.leaveOut(p.Content.left); failed != nil {
			break
		}
		b.count(func(r *Result) { r.Read += int64(len(p.Content.lines)) })
		a.add(p.At, p.Content)
	}
	if failed == nil {
		a.close()
	}
	if err := group.Wait(); err != nil {
		return err // if the scan has failed, too, this error is the cause
	}
	return failed
}

// bounds returns the ranges of a table that the journal does not cover, in the order of their keys; with a
// base, each is the range of one of the base's chunks.
func (b *backing) bounds(index int) []bound {
	var all []bound
	ofBase := -1
	if b.base != nil {
		ofBase = b.base.table(b.tables[index].Name())
	}
	wanted := b.options.ranges()
	for _, r := range wanted {
		rest := []rangescan.Range{r}
		for _, e := range b.base.of(ofBase) {
			if e.Rows == 0 || len(rest) == 0 || !within(e.At, rest[len(rest)-1]) {
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

// store stores the rows of a piece in one chunk, or several if they are many.
func (b *backing) store(ctx context.Context, table int, p *piece) error {
	if p.base != nil {
		if unchanged, err := b.keep(ctx, table, p); unchanged || err != nil {
			return err
		}
	}
	e := entry{Table: table, At: rangescan.Range{From: p.at.From}}
	unread := p.left()
	content := make([]byte, 0, min(p.bytes, b.options.ChunkBytes+maxLine))
	left := p.rows
	for _, page := range p.pages {
		e.Times = e.Times.with(page.times) // this includes rows of the page that go into the next chunk
		for _, l := range page.lines {
			content = append(content, l.text...)
			e.Rows++
			if left--; left > 0 && len(content) >= b.options.ChunkBytes {
				end := rangescan.Point{Partition: l.key.Partition, Row: l.key.Row, Side: rangescan.After}
				e.At.To = &end
				n := 0
				for n < len(unread) && e.At.Covers(unread[n]) {
					n++
				}
				e.leave(int64(n), unread[:n]...)
				unread = unread[n:]
				if err := b.put(ctx, e, content); err != nil {
					return err
				}
				e = entry{Table: table, At: rangescan.Range{From: end}, Times: page.times}
				content = content[:0]
			}
		}
	}
	e.At.To = p.at.To
	e.leave(int64(len(unread)), unread...)
	return b.put(ctx, e, content)
}

// put stores the lines of an entry as a chunk, and records the entry in the journal.
func (b *backing) put(ctx context.Context, e entry, lines []byte) (err error) {
	if e.Rows == 0 {
		return b.record(ctx, e)
	}
	stored := b.vault.codecs.compress(lines)
	e.Bytes, e.Lines, e.Stored = int64(len(lines)), sum(lines), int64(len(stored))
	if e.Chunk, err = b.vault.putChunk(ctx, b.op, stored); err != nil {
		return err
	}
	return b.record(ctx, e, func(r *Result) { r.Written += e.Rows })
}

// If the base has a chunk with the same rows as the piece, keep records that chunk in the journal. unchanged
// is false if the base has no such chunk or the chunk is damaged; then the caller stores the rows.
func (b *backing) keep(ctx context.Context, table int, p *piece) (unchanged bool, err error) {
	lines := sha256.New()
	for _, page := range p.pages {
		for _, l := range page.lines {
			lines.Write(l.text)
		}
	}
	if int64(p.rows) != p.base.Rows || hex.EncodeToString(lines.Sum(nil)) != p.base.Lines {
		return false, nil
	}
	if _, err := b.vault.lines(ctx, b.op, p.base); err != nil { // check the chunk, since the base's manifest may be forged
		return false, ctx.Err()
	}
	e := *p.base
	e.Table, e.At, e.Times, e.Left, e.Keys = table, p.at, span{}, 0, nil
	unread := p.left()
	e.leave(int64(len(unread)), unread...)
	for _, page := range p.pages {
		e.Times = e.Times.with(page.times)
	}
	return true, b.record(ctx, e, func(r *Result) { r.Unchanged += e.Rows })
}

// finish writes the manifest, which makes the backup complete, and removes the journal.
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
	keys := map[int]int{} // number of keys of unreadable rows, by table
	for i := range m.entries {
		e := &m.entries[i]
		e.Keys = e.Keys[:min(len(e.Keys), maxLeft-keys[e.Table])]
		keys[e.Table] += len(e.Keys)
	}
	sealed, err := m.encode()
	if err != nil {
		return tables.Invalid(b.op, err)
	}
	if len(sealed) > maxManifest {
		return tables.InvalidIn(b.op, b.name, "the manifest has %d bytes, and at most %d are allowed; set Options.ChunkBytes to more, or back up fewer tables at once", len(sealed), maxManifest)
	}
	b.vault.objects.flush()
	if err := b.vault.create(ctx, b.op, manifestName(b.name), sealed); err != nil {
		return err
	}
	// The backup is complete from here on. A remaining journal is harmless, so an error of its removal is
	// ignored.
	_ = b.vault.objects.clear(ctx, journalName(b.name))
	return nil
}
