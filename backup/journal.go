package backup

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/continuation"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Unfinished returns the token with which Options.Resume continues a backup, or "" if it is not there or complete. A complete backup whose journal
// is still there has a token, too: Backup with it removes the journal. Requests: 2.
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

// begun reads the header of a journal; nil if there is none.
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

func (b *backing) remember() {
	b.count(func(r *counts) { r.Resume = encodeToken(b.run, b.journal.Run) })
}

func (b *backing) resume(ctx context.Context, run string) error {
	h, err := b.vault.begun(ctx, b.op, b.name)
	switch {
	case err != nil:
		return err
	case h == nil:
		return &tables.Error{Op: b.op, Table: b.name, Kind: tables.ErrNotFound, Err: errors.New("the vault has no unfinished backup of this name; begin again without Options.Resume")}
	case h.Run != run || h.Print != b.print || !slices.Equal(h.Tables, b.journal.Tables):
		return errs.Invalidf(b.op, "Options.Resume is the token of another backup; give the one from Vault.Unfinished")
	}
	b.journal = *h
	b.remember()
	var names []string
	for name, err := range b.vault.objects.list(ctx, journalName(b.name)) {
		if err != nil {
			return b.vault.failed(b.op, b.name, err)
		}
		if names = append(names, name); len(names) > maxLines {
			return damaged(b.op, journalName(b.name), "the journal has more than %d objects", maxLines)
		}
	}
	slices.Sort(names) // of two entries of a blob, the later counts
	for _, name := range names {
		// Entries are stored concurrently: after a crash a lower number can be missing. Its range is read again.
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

// leftBefore counts the rows that earlier runs have left out, and passes them to Options.Found.
func (b *backing) leftBefore(entries []entry) error {
	for i := range entries {
		e := &entries[i]
		b.count(func(r *counts) { r.Failed += e.Left })
		for _, key := range e.Keys {
			if err := b.found(Difference{Kind: LeftOut, Table: b.journal.Tables[e.Table], Key: tables.Key(key), Err: errLeftBefore}); err != nil {
				return err
			}
		}
	}
	return nil
}

var errLeftBefore = errors.New("an earlier run of the backup has left out the row")

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
	if b.read += len(sealed); b.read > maxManifest {
		return damaged(b.op, name, "the journal has more than %d bytes", maxManifest)
	}
	text, err := unseal(sealed)
	if err == nil {
		err = checkLines(slices.Concat([]byte("\n"), text)) // the first line of a manifest is its header
	}
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

// record adds an object to the journal, and then calls done under run.mu.
func (b *backing) record(ctx context.Context, j journaled, done func(*counts)) error {
	text, err := json.Marshal(j)
	if err != nil {
		return errs.Invalid(b.op, err)
	}
	err = b.vault.create(ctx, b.op, entryName(b.name, int(b.number.Add(1))), seal(text))
	if errors.Is(err, tables.ErrExists) {
		return &tables.Error{Op: b.op, Table: b.name, Kind: tables.ErrConflict, Err: errors.New("another process writes this backup at the same time; let one of them finish it")}
	}
	if err == nil {
		b.progress(done)
	}
	return err
}

func (b *backing) recordBlob(ctx context.Context, e blobEntry) error {
	return b.record(ctx, journaled{Blob: &e}, func(*counts) { b.blobs = append(b.blobs, e) })
}
