package blobs

import (
	"crypto/fips140"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"hash/crc64"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator/environment"
	"github.com/tablepatterns/tablepatterns/internal/simulator/exchange"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

const (
	blockBlob  = "BlockBlob"
	appendBlob = "AppendBlob"
)

// stored is one blob. If it is not committed, it has only staged blocks.
type stored struct {
	kind              string
	committed         bool
	created, modified time.Time
	etag              string
	metadata          map[string]string
	headers           headers
	copied            *origin

	size   int64
	blocks []block // the content of a block blob
	ends   []int64 // by block: offset of its end

	appended []byte // the content of an append blob; bytes are only appended
	appends  int    // number of blocks of an append blob

	staged   map[string]block // uncommitted blocks, by id
	stagedAt time.Time

	// What refuses requests. Replacing the content changes only the tier.
	lease     lease
	hold      hold
	tier      tier
	snapshots []blobSnapshot // in the order in which they were taken
}

// checkWrite refuses a request that changes or deletes a blob whose lease or hold excludes that.
func (b *stored) checkWrite(c *exchange.Call) *protocol.Fault {
	if err := b.lease.check(c, true); err != nil {
		return err
	}
	return b.hold.check(c.Now)
}

// checkEdit refuses a request that changes a part of a blob, which the archive tier excludes, too.
func (b *stored) checkEdit(c *exchange.Call) *protocol.Fault {
	if err := b.checkWrite(c); err != nil {
		return err
	}
	return b.tier.check(c.Now)
}

// block is a block of a block blob. The content of a Put Blob is one block without an id.
type block struct {
	id   string
	data []byte
}

// headers holds the headers that are stored with a blob and returned with it, by name. A map is never
// changed, but replaced as a whole.
type headers map[string]string

// headerNames returns the names of these headers, in the order of listings.
func headerNames() [6]string {
	return [...]string{"Content-Type", "Content-Encoding", "Content-Language", md5Name, "Content-Disposition", "Cache-Control"}
}

const md5Name = "Content-MD5"

// origin is the source of a copied blob.
type origin struct {
	id, source string
	completed  time.Time
}

// storedHeaders returns the request's headers that are stored with a blob.
func storedHeaders(h http.Header) headers {
	stored := headers{}
	for _, name := range headerNames() {
		if value := h.Get("x-ms-blob-" + name); value != "" {
			stored[name] = value
		}
	}
	return stored
}

// orStandard sets the default content type if the headers have none.
func (h headers) orStandard() headers {
	if h["Content-Type"] == "" {
		h["Content-Type"] = "application/octet-stream"
	}
	return h
}

// touch sets the blob's time of change and ETag.
func (b *stored) touch(clock *environment.Clock) {
	b.modified = clock.After(b.modified)
	b.etag = newETag(b.modified)
	if b.created.IsZero() {
		b.created = b.modified
	}
}

// setBlocks sets the blob's content.
func (b *stored) setBlocks(blocks []block) {
	b.blocks, b.ends, b.size = blocks, make([]int64, len(blocks)), 0
	for i, block := range blocks {
		b.size += int64(len(block.data))
		b.ends[i] = b.size
	}
}

// content returns the bytes from one offset up to another. It copies them only if they are in several blocks.
func (b *stored) content(from, to int64) []byte {
	if from >= to {
		return nil
	}
	if b.kind == appendBlob {
		return b.appended[from:to:to]
	}
	i := sort.Search(len(b.ends), func(i int) bool { return b.ends[i] > from })
	start := b.ends[i] - int64(len(b.blocks[i].data))
	if to <= b.ends[i] {
		return b.blocks[i].data[from-start : to-start : to-start]
	}
	joined := make([]byte, 0, to-from)
	for ; start < to; i++ {
		data := b.blocks[i].data
		joined = append(joined, data[max(0, from-start):min(int64(len(data)), to-start)]...)
		start = b.ends[i]
	}
	return joined
}

// store stores the blob under the target's name.
func (t *target) store(b *stored) {
	k := t.container
	if i, found := slices.BinarySearch(k.names, t.name); !found {
		k.names = slices.Insert(k.names, i, t.name)
	}
	k.blobs[t.name] = b
}

func (t *target) remove() {
	k := t.container
	if i, found := slices.BinarySearch(k.names, t.name); found {
		k.names = slices.Delete(k.names, i, i+1)
	}
	if b := k.blobs[t.name]; b != nil && t.service.Clock.Still() && b.modified.After(k.graves[t.name]) {
		if k.graves == nil {
			k.graves = map[string]time.Time{}
		}
		k.graves[t.name] = b.modified
	}
	delete(k.blobs, t.name)
}

// written returns the response to a request that changed the blob.
func (b *stored) written(status int) *protocol.Answer {
	a := protocol.NewAnswer(status)
	a.Header.Set("ETag", b.etag)
	a.Header.Set("Last-Modified", exchange.Time(b.modified))
	a.Header.Set("x-ms-request-server-encrypted", "true")
	return a
}

func invalidBlobType() *protocol.Fault {
	return protocol.Refuse(http.StatusConflict, "InvalidBlobType", "The blob type is invalid for this operation.")
}

// checkHashes compares the body with the hashes in the request's headers, and returns the hashes for the response.
func checkHashes(c *exchange.Call) (http.Header, *protocol.Fault) {
	h := http.Header{}
	if want := c.Header.Get("Content-MD5"); want != "" {
		if raw, err := base64.StdEncoding.DecodeString(want); err != nil || len(raw) != md5.Size {
			return nil, protocol.Refuse(http.StatusBadRequest, "InvalidMd5",
				"The MD5 value specified in the request is invalid. MD5 value must be 128 bits and base64-encoded.")
		}
		if got := base64MD5(c.Body); got != want {
			return nil, protocol.Refuse(http.StatusBadRequest, "Md5Mismatch",
				"The MD5 value specified in the request did not match with the MD5 value calculated by the server.").
				With("UserSpecifiedMd5", want).With("ServerCalculatedMd5", got)
		}
		h.Set("Content-MD5", want)
	}
	if want := c.Header.Get("x-ms-content-crc64"); want != "" {
		got := base64CRC64(c.Body)
		if got != want {
			return nil, protocol.Refuse(http.StatusBadRequest, "Crc64Mismatch",
				"The CRC64 value specified in the request did not match with the CRC64 value calculated by the server.").
				With("UserSpecifiedCrc64", want).With("ServerCalculatedCrc64", got)
		}
		h.Set("x-ms-content-crc64", want)
	}
	return h, nil
}

// base64MD5 returns the MD5 of a content. A program that runs where FIPS 140-3 is enforced can be tested on the simulator, too.
func base64MD5(data []byte) string {
	var sum [md5.Size]byte
	fips140.WithoutEnforcement(func() { sum = md5.Sum(data) })
	return base64.StdEncoding.EncodeToString(sum[:])
}

// base64CRC64 returns the CRC-64 in the services' own polynomial and byte order.
func base64CRC64(data []byte) string {
	sum := crc64.Checksum(data, crc64.MakeTable(0x9A6C9329AC4BC9B5))
	return base64.StdEncoding.EncodeToString(binary.LittleEndian.AppendUint64(nil, sum))
}

// addHeaders copies headers.
func addHeaders(to, from http.Header) {
	for name, values := range from {
		to[name] = values
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
