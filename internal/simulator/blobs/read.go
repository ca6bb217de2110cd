package blobs

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator/exchange"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// rangeHashLimit is the maximum size of a range, in bytes, for which the service computes a hash.
const rangeHashLimit = 4 * mib

// get reads the blob, or a range of it.
func (b *stored) get(c *exchange.Call) (*protocol.Answer, *protocol.Fault) {
	if err := b.checkRead(c); err != nil {
		return nil, err
	}
	if err := b.tier.check(c.Now); err != nil {
		return nil, err
	}
	from, to, ranged := rangeOf(c.Header)
	if !ranged {
		a := b.describe(http.StatusOK, c.Now)
		setHeader(a.Header, "Content-MD5", b.headers[md5Name])
		a.Body = b.content(0, b.size)
		return a, nil
	}
	if from >= b.size {
		return nil, protocol.Refuse(http.StatusRequestedRangeNotSatisfiable, "InvalidRange",
			"The range specified is invalid for the current size of the resource.")
	}
	to = min(to, b.size)
	a := b.describe(http.StatusPartialContent, c.Now)
	setHeader(a.Header, "x-ms-blob-content-md5", b.headers[md5Name])
	a.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to-1, b.size))
	a.Body = b.content(from, to)
	for name, hash := range map[string]func([]byte) string{"md5": base64MD5, "crc64": base64CRC64} {
		if !strings.EqualFold(c.Header.Get("x-ms-range-get-content-"+name), "true") {
			continue
		}
		if to-from > rangeHashLimit {
			return nil, protocol.Refuse(http.StatusBadRequest, "OutOfRangeInput", "One of the request inputs is out of range.")
		}
		answered := map[string]string{"md5": "Content-MD5", "crc64": "x-ms-content-crc64"}[name]
		a.Header.Set(answered, hash(a.Body))
	}
	return a, nil
}

// rangeOf returns the requested range as two offsets; the second is exclusive. The service supports only bytes=from- and
// bytes=from-to, and returns the whole blob for any other range.
func rangeOf(h http.Header) (from, to int64, ok bool) {
	text := h.Get("x-ms-range")
	if text == "" {
		text = h.Get("Range")
	}
	first, last, ok := strings.Cut(strings.TrimPrefix(text, "bytes="), "-")
	if !ok || !strings.HasPrefix(text, "bytes=") {
		return 0, 0, false
	}
	from, err := strconv.ParseInt(first, 10, 64)
	if err != nil || from < 0 {
		return 0, 0, false
	}
	if last == "" {
		return from, math.MaxInt64, true
	}
	to, err = strconv.ParseInt(last, 10, 64)
	if err != nil || to < from || to == math.MaxInt64 {
		return 0, 0, false
	}
	return from, to + 1, true
}

// properties returns only the blob's headers.
func (b *stored) properties(c *exchange.Call) (*protocol.Answer, *protocol.Fault) {
	if err := b.checkRead(c); err != nil {
		return nil, err
	}
	a := b.describe(http.StatusOK, c.Now)
	setHeader(a.Header, "Content-MD5", b.headers[md5Name])
	if c.Req.Method == http.MethodHead {
		a.Header.Set("Content-Length", itoa(b.size))
	}
	return a, nil
}

// checkRead checks the conditions of a request that reads the blob, and its lease ID if it has one.
func (b *stored) checkRead(c *exchange.Call) *protocol.Fault {
	if err := conditionsOf(c.Header, "").checkRead(b); err != nil {
		return err
	}
	return b.lease.check(c, false)
}

// describe adds the blob's properties to the headers of a response.
func (b *stored) describe(status int, now time.Time) *protocol.Answer {
	a := protocol.NewAnswer(status)
	h := a.Header
	h.Set("ETag", b.etag)
	h.Set("Last-Modified", exchange.Time(b.modified))
	h.Set("x-ms-creation-time", exchange.Time(b.created))
	h.Set("x-ms-blob-type", b.kind)
	b.lease.describe(h, now)
	b.tier.describe(h, now)
	b.hold.describe(h)
	h.Set("x-ms-server-encrypted", "true")
	h.Set("Accept-Ranges", "bytes")
	if b.kind == appendBlob {
		h.Set("x-ms-blob-committed-block-count", strconv.Itoa(b.appends))
	}
	for name, value := range b.headers {
		if name != md5Name { // omit it, since it is the hash of the whole content and the response may have only a part
			h.Set(name, value)
		}
	}
	if b.copied != nil {
		h.Set("x-ms-copy-id", b.copied.id)
		h.Set("x-ms-copy-source", b.copied.source)
		h.Set("x-ms-copy-status", "success")
		h.Set("x-ms-copy-progress", fmt.Sprintf("%d/%d", b.size, b.size))
		h.Set("x-ms-copy-completion-time", exchange.Time(b.copied.completed))
	}
	exchange.SetMetadata(h, b.metadata)
	return a
}

func setHeader(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}
