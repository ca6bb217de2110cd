package encryption

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Reencrypt rewrites every entity, with its copies, that is not encrypted under the registry's current data key: under an older one, in plaintext
// (with Options.AcceptPlaintext), or of the old libraries (with Options.Legacy). Each is written under its ETag, so other programs may continue to
// write; they use the current key once their TTL has expired. If a change set of a partition fails, its entities are written one by one, so one
// that changes all the time delays only itself. Other patterns see driver.ChangeTouch. It can be interrupted, repeated and resumed. The repository
// must have the Encryption among its patterns.
//
// An entity that cannot be written does not end the run: JobOptions.Found gets it, after its page, as Undecodable if it cannot be read or
// decrypted, else as Different, with the error in Finding.Err. Reencrypt returns ErrWiring if Patterns, Lag, Rows or DryRun is set. The report
// is of this run alone.
//
// Requests: 1 for the current key, 1 for each 1,000 entities, and 1 for each change set of 100 rows, so 12 for 1,000 old entities of a partition
// without other patterns, 22 with an index in the partition; 2 more for each conflict, and with several pages the additional requests of
// Query.AllParallel.
func Reencrypt[T any](ctx context.Context, repository *patterns.Repository[T], options *patterns.JobOptions) (patterns.RewriteReport, error) {
	const op = "Reencrypt"
	if repository == nil {
		return patterns.RewriteReport{}, errs.Wiringf(op, "", "the repository is nil; give one")
	}
	var e *rowCipher
	var name string
	host := patterns.HostOf(repository)
	for _, p := range host.Patterns() {
		if found, ok := p.Pattern.(*rowCipher); ok {
			e, name = found, p.Name
		}
	}
	if e == nil {
		return patterns.RewriteReport{}, errs.Wiringf(op, "", "the repository has no Encryption among its patterns; give it to NewRepository")
	}
	current, err := e.registry.state.named(ctx)
	if err != nil {
		return patterns.RewriteReport{}, err
	}
	if id, _, err := e.registry.state.writeKey(ctx); err != nil || id != current {
		e.registry.state.current.forget(struct{}{}) // it may be that of an older key
		if err != nil {
			return patterns.RewriteReport{}, err
		}
	}
	job := &patterns.RewriteJob{Op: op, Pattern: name, Kind: driver.ChangeTouch, CountsAll: true,
		Outdated: func(entity tables.Key, stored tables.Properties, whole bool) (outdated, known bool) {
			return e.outdated(current, entity, stored, whole)
		}}
	return patterns.Rewrite(ctx, host, job, options)
}

// outdated reports whether to rewrite an entity: it is not under the current data key, or a declared property is only signed or not in the seal.
// whole means that all properties were read; known is false if those read do not decide. The seal's MAC is not checked: a forged seal causes at
// most one wrong decision about a write, and the next read detects it.
func (c *rowCipher) outdated(current DataKeyID, entity tables.Key, p tables.Properties, whole bool) (outdated, known bool) {
	if !whole && (c.options.AcceptPlaintext || !p.Has(SealProperty)) {
		return false, false
	}
	stored, _ := p.Get(SealProperty).Bytes()
	seal, ok := parseSeal(stored)
	if !ok || seal.key != current || slices.ContainsFunc(seal.signed, func(v signedValue) bool { return c.declared(entity, v.name) }) {
		return true, true
	}
	if !c.options.AcceptPlaintext {
		return false, true
	}
	return slices.ContainsFunc(p, func(property tables.Property) bool {
		_, sealed := slices.BinarySearch(seal.names, property.Name)
		return !sealed && seal.signedIndex(property.Name) < 0 && !isOurs(property.Name) && !c.unsigned(property.Name)
	}), true
}

// Uses counts, by data key, the encrypted properties and seals in all rows of the given tables. Pass the tables of the entities and of their
// copies; UsesInBlobs counts blobs. It scans whole tables. Requests: those of Query.AllParallel in order, so 1 for each 1,000 rows and some
// additional ones.
func Uses(ctx context.Context, among ...*tables.Table) (map[DataKeyID]int64, error) {
	uses := map[DataKeyID]int64{}
	for _, table := range among {
		var text []byte
		for row, err := range table.Entities().Query().AllowTableScan().AllParallel(ctx, nil) {
			if err != nil {
				return nil, err
			}
			slices.SortFunc(row.Properties, func(a, b tables.Property) int { return strings.Compare(a.Name, b.Name) })
			text = append(text[:0], text[max(0, len(text)-packedID+1):]...) // a sealed value may begin at the end of the previous row
			for _, property := range row.Properties {
				if b, binary := property.Value.Bytes(); binary && len(b) >= headerSize && hasHeader(b) {
					uses[DataKeyID(b[8:24])]++
				}
				s, _ := property.Value.Text()
				text = append(text, s...)
			}
			countPacked(uses, text)
		}
	}
	return uses, nil
}

// A layout packs values into texts, in base64, and splits the texts anywhere. In base64 the magic bytes are always the same text, and the first 24
// bytes, up to the end of the data key's id, have 32 characters.
const (
	packedMagic = "VFBF"
	packedID    = 32
)

// countPacked may also count other bytes, under an id that no data key has.
func countPacked(uses map[DataKeyID]int64, text []byte) {
	for {
		at := bytes.Index(text, []byte(packedMagic))
		if at < 0 || len(text)-at < packedID {
			return
		}
		var b [24]byte
		n, err := base64.StdEncoding.Decode(b[:], text[at:at+packedID])
		if err == nil && n == len(b) && hasHeader(b[:]) {
			uses[DataKeyID(b[8:])]++
		}
		text = text[at+1:]
	}
}

const blobsAtOnce = 16

// UsesInBlobs counts, by data key, the blobs with a prefix that a Stream has sealed, such as those of package largeentities with a Sealer. It reads
// headers without authenticating them, and does not count snapshots, older versions, or deleted blobs that can be restored. Requests: 1 for each
// 5,000 blobs, and 1 for each blob whose size is possible for a sealed blob.
func UsesInBlobs(ctx context.Context, blobs *container.Client, prefix string) (map[DataKeyID]int64, error) {
	const op = "UsesInBlobs"
	if blobs == nil {
		return nil, errs.Wiringf(op, "", "the container is nil; give one of blobstorage.Container")
	}
	uses := map[DataKeyID]int64{}
	for pager := blobs.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix}); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, blobError(op, err)
		}
		if page.Segment == nil {
			return nil, &tables.Error{Op: op, Kind: tables.ErrGarbled, Err: errors.New("the response has no list of blobs; repeat the operation")}
		}
		if err := countBlobs(ctx, blobs, page.Segment.BlobItems, uses); err != nil {
			return nil, blobError(op, err)
		}
	}
	return uses, nil
}

func countBlobs(ctx context.Context, blobs *container.Client, items []*container.BlobItem, uses map[DataKeyID]int64) error {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(blobsAtOnce)
	for _, item := range items {
		if item.Name == nil || item.Properties == nil || item.Properties.ContentLength == nil || *item.Properties.ContentLength < headerSize+overhead {
			continue
		}
		group.Go(func() error {
			id, sealed, err := blobDataKey(ctx, blobs.NewBlobClient(*item.Name))
			if err == nil && sealed {
				mu.Lock()
				uses[id]++
				mu.Unlock()
			}
			return err
		})
	}
	return group.Wait()
}

// blobDataKey reads the data key from a blob's header. A blob that was deleted meanwhile counts as not sealed.
func blobDataKey(ctx context.Context, client *blob.Client) (id DataKeyID, sealed bool, err error) {
	answer, err := client.DownloadStream(ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: 0, Count: headerSize}})
	if wire.HasCode(err, "BlobNotFound", "InvalidRange") {
		return id, false, nil
	}
	if err != nil {
		return id, false, err
	}
	beginning, err := readHeader(answer.Body)
	if err == nil && len(beginning) < headerSize { // the listing says that the blob is longer: the response was cut off
		err = &tables.Error{Op: "UsesInBlobs", Kind: tables.ErrGarbled, Err: errors.New("the response is shorter than the header of a sealed blob; repeat the operation")}
	}
	h, _, ok := parseHeader(beginning, kindStream)
	return h.key, ok, err
}

func blobError(op string, err error) error {
	if _, ok := errors.AsType[*tables.Error](err); ok {
		return err
	}
	return core.ServiceError(op, "", err)
}
