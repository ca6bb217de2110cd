package backup

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/internal/blobio"
	"github.com/tablepatterns/tablepatterns/internal/blobowner"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/tables"
)

// BlobSet is a set of blobs that belong to the rows of a table, such as those of one property of largeentities.
type BlobSet struct {
	// Name names the set in the backup. It follows the same rule as the name of a backup.
	Name string
	// Container is a client of blobstorage.Container. Restore can use another one than Backup; it must exist.
	Container *container.Client
	// Prefix begins the blobs' names, without the slash after it: Options.Prefix of largeentities, by default table/property. Rows name their
	// blobs, so Restore needs the Prefix of Backup.
	Prefix string
	// Table is the table whose rows name the blobs. Restore sets a blob's metadata tphome, which names account and table, to it.
	Table *tables.Table
}

type blobEntry struct {
	Set   int               `json:"i"`           // index in header.Blobs
	Name  string            `json:"k"`           // after the prefix and the slash
	ETag  string            `json:"e"`           // when it was read
	Type  string            `json:"y,omitempty"` // Content-Type
	Meta  map[string]string `json:"m,omitempty"` // names in lower case
	Parts []blobPart        `json:"p,omitempty"`
}

type blobPart struct {
	Bytes  int64  `json:"b"`
	Sum    string `json:"h"` // SHA-256
	Stored int64  `json:"s"`
	Chunk  string `json:"c"`
}

const (
	blobPartBytes = 8 << 20
	maxBlobParts  = 25_000 // of one blob: 195 GiB; also keeps an entry of the journal small
	maxMetadata   = 8 << 10
)

var metadataName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// check refuses an entry that Backup cannot have written.
func (e *blobEntry) check(sets int) error {
	if e.Set < 0 || e.Set >= sets || len(e.Parts) > maxBlobParts {
		return fmt.Errorf("a blob is in set %d, counted from 0, of %d, or its %d parts are too many", e.Set, sets, len(e.Parts))
	}
	if err := (blobowner.Owner{What: "the set", Prefix: "/"}).CheckName("/" + e.Name); err != nil || blobio.CheckName(e.Name) != nil {
		return errors.New("a blob has an illegal name")
	}
	size := len(e.Type)
	for name, value := range e.Meta {
		size += len(name) + len(value)
		if !metadataName.MatchString(name) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
			return errors.New("a blob has illegal metadata")
		}
	}
	if size > maxMetadata || strings.ContainsFunc(e.Type, func(r rune) bool { return r < ' ' || r > '~' }) {
		return errors.New("a blob has illegal metadata")
	}
	for _, p := range e.Parts {
		if p.Bytes <= 0 || p.Bytes > blobPartBytes || p.Stored <= 0 || p.Stored > maxStored || !isSum(p.Sum) || !isSum(p.Chunk) {
			return errors.New("a part of a blob has an illegal size or no checksum")
		}
	}
	return nil
}

func checkBlobs(op string, sets []BlobSet) error {
	for i, s := range sets {
		if err := checkName(op, "a set of blobs", s.Name); err != nil {
			return err
		}
		switch {
		case s.Container == nil || s.Table == nil:
			return errs.Wiringf(op, s.Name, "BlobSet.Container or Table is nil; give both")
		case s.Prefix == "" || strings.HasSuffix(s.Prefix, "/"):
			return errs.Wiringf(op, s.Name, "BlobSet.Prefix is %q; it must be the Prefix of the property's Options, without a slash at its end", s.Prefix)
		case slices.ContainsFunc(sets[:i], func(o BlobSet) bool { return strings.EqualFold(o.Name, s.Name) }):
			return errs.Wiringf(op, s.Name, "two sets of blobs have the same name; give each its own")
		}
	}
	return nil
}

// saveBlobs stores the blobs whose current version the journal lacks.
func (b *backing) saveBlobs(ctx context.Context) error {
	type version struct {
		set        int
		name, etag string
	}
	ofBase := map[version]*blobEntry{}
	if b.base != nil {
		for i := range b.base.blobs {
			e := &b.base.blobs[i]
			if set := slices.Index(b.journal.Blobs, b.base.Blobs[e.Set]); set >= 0 {
				ofBase[version{set, e.Name, e.ETag}] = e
			}
		}
	}
	done := map[version]bool{}
	for i := range b.blobs {
		done[version{b.blobs[i].Set, b.blobs[i].Name, b.blobs[i].ETag}] = true
	}
	for set, s := range b.options.Blobs {
		var found []blobEntry
		for item, err := range blobio.List(ctx, s.Container, s.Prefix+"/", container.ListBlobsInclude{}) {
			if err != nil {
				return b.vault.failed(b.op, s.Name, ofBlob(err))
			}
			if item.Properties == nil || item.Properties.ETag == nil {
				continue
			}
			e := blobEntry{Set: set, Name: strings.TrimPrefix(*item.Name, s.Prefix+"/"), ETag: unquoted(item.Properties.ETag)}
			if !done[version{set, e.Name, e.ETag}] {
				found = append(found, e)
			}
		}
		if err := each(ctx, storers, len(found), func(ctx context.Context, i int) error {
			e := found[i]
			if same := ofBase[version{set, e.Name, e.ETag}]; same != nil && b.intact(ctx, same) {
				e.Type, e.Meta, e.Parts = same.Type, same.Meta, same.Parts
				return b.recordBlob(ctx, e)
			}
			gone, err := b.saveBlob(ctx, s, &e)
			if gone || err != nil {
				return err
			}
			return b.recordBlob(ctx, e)
		}); err != nil {
			return err
		}
	}
	return nil
}

// unquoted removes the quotes, which an ETag has in a response and not in a listing.
func unquoted(etag *azcore.ETag) string { return strings.Trim(string(*etag), `"`) }

// intact reports whether the vault has all parts of a blob of the base. The blob's ETag is that of the base's manifest, so it need not be read.
func (b *backing) intact(ctx context.Context, e *blobEntry) bool {
	for _, p := range e.Parts {
		if _, err := b.vault.part(ctx, b.op, p); err != nil {
			return false
		}
	}
	return true
}

// saveBlob stores the current content of a blob, which can be newer than the listed one, and starts again if a writer overwrites it meanwhile. gone
// means that it was deleted.
func (b *backing) saveBlob(ctx context.Context, s BlobSet, e *blobEntry) (gone bool, err error) {
	listed := *e
	for round := range maxRounds {
		*e = listed
		if gone, err = b.tryBlob(ctx, s, e); !errors.Is(err, errOverwritten) {
			return gone, err
		}
		select {
		case <-time.After(rand.N(50 * time.Millisecond << round)):
		case <-ctx.Done():
			return false, &tables.Error{Op: b.op, Table: s.Name, Err: ctx.Err()}
		}
	}
	return false, &tables.Error{Op: b.op, Table: s.Name, Kind: tables.ErrConflict, Err: fmt.Errorf("blob %q was overwritten each of the %d times that it was read; resume the backup when its writer has ended", e.Name, maxRounds)}
}

var errOverwritten = errors.New("the blob was overwritten while it was read")

func (b *backing) tryBlob(ctx context.Context, s BlobSet, e *blobEntry) (gone bool, err error) {
	answer, err := s.Container.NewBlobClient(s.Prefix+"/"+e.Name).DownloadStream(ctx, nil)
	if err != nil {
		if err = ofBlob(err); errors.Is(err, tables.ErrNotFound) {
			return true, nil
		}
		return false, b.vault.failed(b.op, s.Name, err)
	}
	if answer.ETag != nil {
		e.ETag = unquoted(answer.ETag)
	}
	body := answer.NewRetryReader(ctx, nil)
	defer body.Close()
	if answer.ContentType != nil {
		e.Type = *answer.ContentType
	}
	for name, value := range answer.Metadata {
		if value != nil {
			if e.Meta == nil {
				e.Meta = map[string]string{}
			}
			e.Meta[strings.ToLower(name)] = *value
		}
	}
	var size int64
	content := make([]byte, blobPartBytes)
	for err == nil {
		var n int
		if n, err = io.ReadFull(body, content); n == 0 {
			break
		}
		if len(e.Parts) == maxBlobParts {
			return false, &tables.Error{Op: b.op, Table: s.Name, Kind: tables.ErrTooLarge, Err: fmt.Errorf("blob %q is larger than %d GiB; copy it with the tools of the blob service", e.Name, int64(maxBlobParts)*blobPartBytes>>30)}
		}
		size += int64(n)
		stored := b.vault.codecs.compress(content[:n])
		p := blobPart{Bytes: int64(n), Sum: sum(content[:n]), Stored: int64(len(stored))}
		var putErr error
		if p.Chunk, putErr = b.vault.putChunk(ctx, b.op, stored); putErr != nil {
			return false, putErr
		}
		e.Parts = append(e.Parts, p)
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		if err = ofBlob(err); errors.Is(err, tables.ErrExists) || errors.Is(err, tables.ErrNotFound) { // the connection broke, and the SDK reads on under an ETag that is no longer current
			return false, errOverwritten
		}
		return false, b.vault.failed(b.op, s.Name, err)
	}
	if answer.ContentLength != nil && size != *answer.ContentLength {
		return false, &tables.Error{Op: b.op, Table: s.Name, Kind: tables.ErrUnavailable, Err: fmt.Errorf("the response for blob %q ended after %d bytes of %d; repeat the operation", e.Name, size, *answer.ContentLength)}
	}
	if err := e.check(len(b.options.Blobs)); err != nil {
		return false, errs.InvalidIn(b.op, s.Name, "blob %q: %v; only blobs with metadata and names in printable ASCII, as the library gives them, can be backed up", e.Name, err)
	}
	return false, nil
}

// newestBlobs returns the last record of each blob, sorted.
func newestBlobs(all []blobEntry) []blobEntry {
	byName := func(a, b blobEntry) int { return cmp.Or(cmp.Compare(a.Set, b.Set), strings.Compare(a.Name, b.Name)) }
	sorted := slices.Clone(all)
	slices.Reverse(sorted)
	slices.SortStableFunc(sorted, byName)
	return slices.CompactFunc(sorted, func(a, b blobEntry) bool { return byName(a, b) == 0 })
}

// part reads and checks a part of a blob. Requests: 1.
func (v *Vault) part(ctx context.Context, op string, p blobPart) ([]byte, error) {
	return v.lines(ctx, op, &entry{Bytes: p.Bytes, Lines: p.Sum, Stored: p.Stored, Chunk: p.Chunk})
}

func (x *restoring) restoreBlobs(ctx context.Context, c *contents) error {
	for _, s := range x.options.Blobs {
		set := slices.Index(c.Blobs, s.Name)
		if set < 0 {
			return errs.Invalidf(x.op, "the backup has no set of blobs %q; Vault.Manifest lists its sets", s.Name)
		}
		var all []*blobEntry
		for i := range c.blobs {
			if c.blobs[i].Set == set {
				all = append(all, &c.blobs[i])
			}
		}
		if err := each(ctx, storers, len(all), func(ctx context.Context, i int) error { return x.restoreBlob(ctx, s, all[i]) }); err != nil {
			return err
		}
	}
	return nil
}

// restoreBlob writes one blob, unless it exists with the same content or the options forbid it. After an error of the write, it reads the blob to
// find out.
func (x *restoring) restoreBlob(ctx context.Context, s BlobSet, e *blobEntry) error {
	meta := map[string]*string{}
	for name, value := range e.Meta {
		if name == blobowner.HomeLabel {
			value = blobowner.Home(s.Table.Account().Identity(), s.Table.Name())
		}
		meta[name] = &value
	}
	name := s.Prefix + "/" + e.Name
	there, same, err := x.sameBlob(ctx, s, name, e, meta)
	switch {
	case err != nil:
		return err
	case same:
		return nil
	case there && x.options.Existing == SkipExisting || there && x.options.DryRun:
		return x.found(Difference{Kind: Different, Table: s.Name, Object: name})
	case there && x.options.Existing == RefuseExisting:
		return &tables.Error{Op: x.op, Table: s.Name, Kind: tables.ErrExists, Err: fmt.Errorf("the container has another blob %q; set Options.Existing to SkipExisting or ReplaceExisting, or use an empty container", name)}
	case x.options.DryRun:
		return nil
	}
	client := s.Container.NewBlockBlobClient(name)
	ids := make([]string, len(e.Parts))
	for i, p := range e.Parts {
		content, err := x.vault.part(ctx, x.op, p)
		if err != nil {
			return err
		}
		ids[i] = base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(i)))
		if _, err := client.StageBlock(ctx, ids[i], streaming.NopCloser(bytes.NewReader(content)), nil); err != nil {
			return x.vault.failed(x.op, s.Name, ofBlob(err))
		}
	}
	options := &blockblob.CommitBlockListOptions{Metadata: meta}
	if e.Type != "" {
		options.HTTPHeaders = &blob.HTTPHeaders{BlobContentType: &e.Type}
	}
	if !there {
		options.AccessConditions = blobio.Unchanged("")
	}
	if _, err := client.CommitBlockList(ctx, ids, options); err != nil {
		if _, same, readErr := x.sameBlob(ctx, s, name, e, meta); readErr != nil || !same {
			return x.vault.failed(x.op, s.Name, ofBlob(err))
		}
	}
	x.count(func(r *counts) { r.Blobs++ })
	return nil
}

// sameBlob reports whether a blob exists, and whether it has the content and metadata that Restore would write.
func (x *restoring) sameBlob(ctx context.Context, s BlobSet, name string, e *blobEntry, meta map[string]*string) (there, same bool, err error) {
	answer, err := s.Container.NewBlobClient(name).DownloadStream(ctx, nil)
	if err != nil {
		if err = ofBlob(err); errors.Is(err, tables.ErrNotFound) {
			return false, false, nil
		}
		return false, false, x.vault.failed(x.op, s.Name, err)
	}
	body := answer.NewRetryReader(ctx, nil)
	defer body.Close()
	labels := 0
	for key, value := range answer.Metadata {
		if want := meta[strings.ToLower(key)]; want != nil && value != nil && *want == *value {
			labels++
		}
	}
	size := int64(0)
	for _, p := range e.Parts {
		size += p.Bytes
	}
	if labels != len(meta) || len(answer.Metadata) != len(meta) || answer.ContentLength == nil || *answer.ContentLength != size {
		return true, false, nil
	}
	for _, p := range e.Parts {
		content := make([]byte, p.Bytes)
		if _, err := io.ReadFull(body, content); err != nil { // the length is known, so this is not the end
			if err = ofBlob(err); errors.Is(err, tables.ErrNotFound) || errors.Is(err, tables.ErrExists) {
				return true, false, nil // deleted or overwritten meanwhile
			}
			return true, false, x.vault.failed(x.op, s.Name, err)
		}
		if sum(content) != p.Sum {
			return true, false, nil
		}
	}
	return true, true, nil
}
