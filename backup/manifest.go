package backup

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Manifest describes a backup. It is untrusted: anybody who can write to the vault can write any manifest.
type Manifest struct {
	Name   string    // as the caller gave it
	Base   string    // Options.Base, "" for none
	Began  time.Time // by the program's clock; of the first run
	Ended  time.Time
	Tables []TableSummary
	Blobs  []BlobSummary

	// Partitions, From and Before are those of Options: only the rows that they select are in the backup.
	Partitions   []string
	From, Before tables.Key
}

// BlobSummary is one BlobSet in a backup.
type BlobSummary struct {
	Name          string
	Blobs         int
	Bytes, Stored int64 // contents, and their chunks
}

// TableSummary is one table in a backup.
type TableSummary struct {
	Name   string
	Rows   int64
	Chunks int
	Bytes  int64 // of the rows as JSON
	Stored int64 // of the chunks, which several backups may share
	// First and Last are the earliest and the latest Timestamp, zero without rows.
	First, Last time.Time
	// LeftOut counts the rows that Backup has left out; LeftOutKeys has the keys of the first 100.
	LeftOut     int64
	LeftOutKeys []tables.Key
}

const (
	formatVersion = 1
	magic         = "tablepatterns backup 1 "
	// maxManifest limits the bytes, and maxLines the lines, of a manifest: enough for about a million chunks.
	maxManifest = 512 << 20
	maxLines    = 2 << 20
	// maxLeft limits the keys of left out rows in an entry of the journal, and for a table of a manifest.
	maxLeft = 100
	// maxEntry limits the bytes of an entry or line, and maxObjects its JSON objects: a small object takes much more memory than its text.
	maxEntry   = 8 << 20
	maxObjects = 4 * maxBlobParts
	// minLine is a row with empty keys and no properties.
	minLine = 32
	// maxLine exceeds a row of 1 MiB whose characters are all escaped.
	maxLine = 8 << 20
	// maxDecoded limits a chunk before compression, maxStored after it.
	maxDecoded = maxChunk + maxLine
	maxStored  = maxDecoded + 1<<20
)

// header is the first line of a manifest, and the first object of a journal.
type header struct {
	Version int       `json:"v"`
	Run     string    `json:"run"`
	Print   string    `json:"q"` // of tables and options
	Tables  []string  `json:"tables"`
	Base    string    `json:"base,omitempty"`
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended,omitzero"`
	Entries int       `json:"entries,omitempty"`
	Blobs   []string  `json:"blobs,omitempty"` // names of the sets

	Partitions []string      `json:"partitions,omitzero"` // as From and Before, of the options
	From       rangescan.Key `json:"from,omitzero"`
	Before     rangescan.Key `json:"before,omitzero"`
}

func (h *header) ranges() []rangescan.Range {
	all := (&Options{Partitions: h.Partitions, From: tables.Key(h.From), Before: tables.Key(h.Before)}).ranges()
	slices.SortFunc(all, func(a, b rangescan.Range) int { return a.From.Compare(b.From) })
	return all
}

// has refuses ranges that the backup does not contain completely.
func (h *header) has(op string, wanted []rangescan.Range) error {
	mine := h.ranges()
	for _, r := range wanted {
		if !slices.ContainsFunc(mine, func(m rangescan.Range) bool { return r.Within(m) }) {
			return errs.Invalidf(op, "the backup has only a part of its tables, and the options ask for more; set Partitions, or From and Before, to what Vault.Manifest says that it has")
		}
	}
	return nil
}

// complete reports whether the entries cover the ranges without a gap.
func (c *contents) complete() bool {
	i := 0
	ranges := c.ranges()
	for table := range c.Tables {
		for _, r := range ranges {
			for at, whole := r.From, false; !whole; i++ {
				if i == len(c.entries) || c.entries[i].Table != table || c.entries[i].At.From.Compare(at) != 0 {
					return false
				}
				to := c.entries[i].At.To
				if whole = same(to, r.To); !whole && to == nil {
					return false
				} else if !whole {
					at = *to
				}
			}
		}
	}
	return i == len(c.entries)
}

type entry struct {
	Table  int             `json:"i"` // index in header.Tables
	At     rangescan.Range `json:"k"` // with all its rows
	Rows   int64           `json:"n"`
	Bytes  int64           `json:"b,omitempty"` // of the lines
	Lines  string          `json:"h,omitempty"` // SHA-256
	Stored int64           `json:"s,omitempty"` // of the chunk
	Chunk  string          `json:"c,omitempty"` // SHA-256 and name of the chunk
	Times  span            `json:"t,omitzero"`
	Left   int64           `json:"l,omitempty"` // rows that were left out
	Keys   []rangescan.Key `json:"x,omitempty"` // of the first of these
}

func (e *entry) leave(count int64, keys ...rangescan.Key) {
	e.Left += count
	e.Keys = append(slices.Clip(e.Keys), keys[:min(len(keys), maxLeft-len(e.Keys))]...)
}

// check refuses an entry that Backup cannot have written.
func (e *entry) check(count int) error {
	switch {
	case e.Table < 0 || e.Table >= count:
		return fmt.Errorf("an entry is for table %d, counted from 0, of %d", e.Table, count)
	case e.At.To != nil && e.At.From.Compare(*e.At.To) > 0 || e.At.From.Side > rangescan.Behind || e.At.To != nil && e.At.To.Side > rangescan.Behind:
		return errors.New("an entry's range is empty or illegal")
	case e.Left < 0 || int64(len(e.Keys)) > e.Left || len(e.Keys) > maxLeft:
		return fmt.Errorf("an entry has %d keys of %d rows that were left out", len(e.Keys), e.Left)
	case e.Rows == 0 && (e.Bytes != 0 || e.Stored != 0 || e.Chunk != "" || e.Lines != ""):
		return errors.New("an entry without rows has a chunk")
	case e.Rows == 0:
		return nil
	case e.Rows < 0 || e.Rows > e.Bytes/minLine || e.Bytes > maxDecoded || e.Stored <= 0 || e.Stored > maxStored:
		return fmt.Errorf("an entry has %d rows, %d bytes and %d stored bytes", e.Rows, e.Bytes, e.Stored)
	case !isSum(e.Chunk) || !isSum(e.Lines):
		return errors.New("an entry has no checksum")
	}
	return nil
}

// seal puts the checksum before a text.
func seal(text []byte) []byte {
	return slices.Concat([]byte(magic), []byte(sum(text)), []byte("\n"), text)
}

// unseal checks and removes it.
func unseal(sealed []byte) ([]byte, error) {
	first, text, ok := bytes.Cut(sealed, []byte("\n"))
	checksum, begins := strings.CutPrefix(string(first), magic)
	switch {
	case !ok || !begins:
		return nil, errors.New("its first line is not the one that this version writes")
	case checksum != sum(text):
		return nil, errors.New("its content does not have the SHA-256 in its first line")
	}
	return text, nil
}

type contents struct {
	header
	entries []entry     // in the order of tables and keys
	blobs   []blobEntry // in the order of sets and names
}

// encode returns the manifest with its checksum: the header, the entries and the blobs, each on a line.
func (c *contents) encode() ([]byte, error) {
	var text bytes.Buffer
	c.Entries = len(c.entries)
	lines := json.NewEncoder(&text)
	lines.SetEscapeHTML(false)
	if err := lines.Encode(&c.header); err != nil {
		return nil, err
	}
	for i := range c.entries {
		if err := lines.Encode(&c.entries[i]); err != nil {
			return nil, err
		}
	}
	for i := range c.blobs {
		if err := lines.Encode(&c.blobs[i]); err != nil {
			return nil, err
		}
	}
	return seal(text.Bytes()), nil
}

// checkLines refuses a text that would take much more memory when decoded.
func checkLines(text []byte) error {
	n := 0
	for line := range bytes.Lines(text) {
		if n++; n > maxLines {
			return fmt.Errorf("it has more than %d lines", maxLines)
		}
		if objects := bytes.Count(line, []byte("{")); n > 1 && (len(line) > maxEntry || objects > maxObjects) {
			return fmt.Errorf("its line %d has %d bytes and %d objects, over the limit of %d or %d", n, len(line), objects, maxEntry, maxObjects)
		}
	}
	return nil
}

// decodeManifest refuses a manifest that Backup cannot have written.
func decodeManifest(sealed []byte) (*contents, error) {
	text, err := unseal(sealed)
	if err != nil {
		return nil, err
	}
	if err := checkLines(text); err != nil {
		return nil, err
	}
	c := &contents{}
	lines := json.NewDecoder(bytes.NewReader(text))
	if err := lines.Decode(&c.header); err != nil {
		return nil, err
	}
	if c.Version != formatVersion {
		return nil, fmt.Errorf("it has version %d, and this build reads only version %d", c.Version, formatVersion)
	}
	for _, name := range c.Tables {
		if rows.CheckTableName(name) != nil {
			return nil, errors.New("one of its table names is illegal")
		}
	}
	for _, name := range append(slices.Clone(c.Blobs), cmp.Or(c.Base, "none")) {
		if !legalName.MatchString(name) {
			return nil, errors.New("the name of its base or of one of its sets of blobs is illegal")
		}
	}
	for lines.More() && len(c.entries) < c.Entries {
		var e entry
		if err := lines.Decode(&e); err != nil {
			return nil, err
		}
		if err := e.check(len(c.Tables)); err != nil {
			return nil, err
		}
		if n := len(c.entries); n > 0 && order(&c.entries[n-1], &e) >= 0 {
			return nil, errors.New("its entries overlap, or are not in the order of their keys")
		}
		c.entries = append(c.entries, e)
	}
	if len(c.entries) != c.Entries {
		return nil, fmt.Errorf("it has %d entries, and its header says %d", len(c.entries), c.Entries)
	}
	if !c.complete() {
		return nil, errors.New("its entries do not cover the ranges of keys in its header")
	}
	for lines.More() {
		var e blobEntry
		if err := lines.Decode(&e); err != nil {
			return nil, err
		}
		if err := e.check(len(c.Blobs)); err != nil {
			return nil, err
		}
		if n := len(c.blobs); n > 0 && cmp.Or(cmp.Compare(c.blobs[n-1].Set, e.Set), strings.Compare(c.blobs[n-1].Name, e.Name)) >= 0 {
			return nil, errors.New("its blobs are not in the order of their names")
		}
		c.blobs = append(c.blobs, e)
	}
	return c, nil
}

// order is negative if a lies completely before b.
func order(a, b *entry) int {
	if c := cmp.Compare(a.Table, b.Table); c != 0 {
		return c
	}
	if a.At.To == nil || a.At.To.Compare(b.At.From) > 0 {
		return 1
	}
	return -1
}

func (v *Vault) read(ctx context.Context, op, backup string) (*contents, error) {
	if err := checkName(op, "the backup", backup); err != nil {
		return nil, err
	}
	name := manifestName(backup)
	sealed, err := v.objects.get(ctx, name, maxManifest)
	switch {
	case errors.Is(err, tables.ErrNotFound):
		return nil, &tables.Error{Op: op, Table: name, Kind: tables.ErrNotFound,
			Err: fmt.Errorf("the vault has no complete backup %s; if it was interrupted, resume Backup with the token of Vault.Unfinished", backup)}
	case errors.Is(err, errTooLong):
		return nil, damaged(op, name, "the manifest has more than %d bytes", maxManifest)
	case err != nil:
		return nil, v.failed(op, name, err)
	}
	c, err := decodeManifest(sealed)
	if err != nil {
		return nil, damaged(op, name, "the manifest is damaged: %v", err)
	}
	return c, nil
}

func (c *contents) table(name string) int {
	return slices.IndexFunc(c.Tables, func(t string) bool { return strings.EqualFold(t, name) })
}

func (c *contents) of(table int) []*entry {
	var all []*entry
	if c == nil || table < 0 {
		return nil
	}
	for i := range c.entries {
		if c.entries[i].Table == table {
			all = append(all, &c.entries[i])
		}
	}
	return all
}

// Manifest reads the manifest of a complete backup. It returns tables.ErrNotFound if there is none, and tables.ErrGarbled for a damaged one.
// Requests: 1.
func (v *Vault) Manifest(ctx context.Context, backup string) (*Manifest, error) {
	c, err := v.read(ctx, "Manifest", backup)
	if err != nil {
		return nil, err
	}
	m := &Manifest{Name: backup, Base: c.Base, Began: c.Began, Ended: c.Ended, Partitions: c.Partitions, From: tables.Key(c.From), Before: tables.Key(c.Before), Tables: make([]TableSummary, len(c.Tables))}
	times := make([]span, len(c.Tables))
	for i, name := range c.Tables {
		m.Tables[i].Name = name
	}
	for i := range c.entries {
		e := &c.entries[i]
		t := &m.Tables[e.Table]
		t.Rows, t.Bytes, t.Stored = t.Rows+e.Rows, t.Bytes+e.Bytes, t.Stored+e.Stored
		if e.Rows > 0 {
			t.Chunks++
		}
		t.LeftOut += e.Left
		for _, key := range e.Keys[:min(len(e.Keys), maxLeft-len(t.LeftOutKeys))] {
			t.LeftOutKeys = append(t.LeftOutKeys, tables.Key(key))
		}
		times[e.Table] = times[e.Table].with(e.Times)
	}
	for i := range m.Tables {
		m.Tables[i].First, m.Tables[i].Last = times[i].First, times[i].Last
	}
	m.Blobs = make([]BlobSummary, len(c.Blobs))
	for i, name := range c.Blobs {
		m.Blobs[i].Name = name
	}
	for i := range c.blobs {
		s := &m.Blobs[c.blobs[i].Set]
		s.Blobs++
		for _, p := range c.blobs[i].Parts {
			s.Bytes, s.Stored = s.Bytes+p.Bytes, s.Stored+p.Stored
		}
	}
	return m, nil
}
