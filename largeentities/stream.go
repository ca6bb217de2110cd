package largeentities

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"strings"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Stream is a value that is not held in memory: a field of this type is written from a reader, and read as far as it is
// asked for. The zero Stream is no value. Copies of a Stream are the same value: an entity that is copied and inserted
// under another key gets a blob of its own. A Stream is for one goroutine at a time while it is written; one that was read
// is safe for concurrent use.
type Stream struct {
	c *content
}

// content is what a Stream stands for.
type content struct {
	src  *source  // nil for what was read from storage
	ptr  *pointer // nil for what is in no blob, or not yet
	home *blobs   // where ptr leads, nil for what a projection has read
}

// StreamOptions are the options of the functions that make a Stream; nil is the same as the zero value.
type StreamOptions struct {
	// ContentType is that of the blob, Options.ContentType for "". A value with another one than that is never kept in the
	// entity, which has no room for it.
	ContentType string
	// Length is how many bytes there will be, if that is known. Another number is tables.ErrInvalid.
	Length int64
	// Progress is told, while the Stream is sent, how many bytes are. It is called by one goroutine at a time.
	Progress func(sent int64)
}

// NewStreamBytes makes a Stream of bytes, which must not change afterwards.
func NewStreamBytes(data []byte, options *StreamOptions) Stream {
	return newStream(source{data: data, memory: true}, options)
}

// NewStreamFunc makes a Stream of what open returns, such as an opened file. It is called once for each attempt to write
// the entity, and once more where the length is not known, to see whether the value is short. The readers are closed.
func NewStreamFunc(open func() (io.ReadCloser, error), options *StreamOptions) Stream {
	if open == nil {
		open = func() (io.ReadCloser, error) { return nil, errors.New("the function of a Stream is nil") }
	}
	return newStream(source{open: open}, options)
}

// NewStreamReader makes a Stream of what is left in a reader, which can be written once: an attempt after it, as by
// Repository.Update after a conflict, is tables.ErrInvalid. Make it outside of the function that Update calls; of a Stream
// that is made inside, the second attempt would write what the first one has left of the reader.
func NewStreamReader(r io.Reader, options *StreamOptions) Stream {
	if r == nil {
		r = strings.NewReader("")
	}
	return newStream(source{once: r}, options)
}

func newStream(s source, options *StreamOptions) Stream {
	if options != nil {
		s.kind, s.length, s.report = options.ContentType, options.Length, options.Progress
	}
	return Stream{&content{src: &s}}
}

// IsZero reports whether there is no value.
func (s Stream) IsZero() bool { return s.c == nil }

// Length is the number of bytes, -1 where it is not known yet.
func (s Stream) Length() int64 {
	switch {
	case s.c == nil:
		return 0
	case s.c.ptr != nil:
		return s.c.ptr.length
	case s.c.src.memory:
		return int64(len(s.c.src.data))
	}
	return -1
}

// SHA256 is the hash of the content; known is false before a Stream is written, and of one that is sealed.
func (s Stream) SHA256() (sum [sha256.Size]byte, known bool) {
	switch {
	case s.c == nil:
		return sum, false
	case s.c.ptr != nil && !s.c.ptr.sealed:
		return s.c.ptr.sha256, true
	case s.c.src == nil:
		return sum, false
	case s.c.src.memory:
		return sha256.Sum256(s.c.src.data), true
	}
	return sum, false
}

// ContentType is the blob's, "" for a value that is new, or in the entity, and has that of the Options.
func (s Stream) ContentType() string {
	switch {
	case s.c == nil:
		return ""
	case s.c.ptr != nil:
		return s.c.ptr.contentType
	}
	return s.c.src.kind
}

// InBlob reports whether the value is in a blob, as far as is known.
func (s Stream) InBlob() bool { return s.c != nil && s.c.ptr != nil }

// Open reads the whole value, with 1 request, and checks its length and SHA-256: what comes before a wrong last byte, or
// before a premature end, is followed by an error and never by io.EOF. tables.ErrConflict says that the entity has been
// replaced since it was read.
func (s Stream) Open(ctx context.Context) (io.ReadCloser, error) { return s.OpenRange(ctx, 0, -1) }

// OpenRange reads n bytes from offset on, all that are left for a negative n. The range is read from the blob that the
// entity points at, or it is an error; but the hash of a part is stored nowhere, so what the service stores wrongly is found by
// reading the whole only. Requests: 1, none for an empty range.
func (s Stream) OpenRange(ctx context.Context, offset, n int64) (io.ReadCloser, error) {
	return s.openRange(ctx, "Open", offset, n)
}

func (s Stream) openRange(ctx context.Context, op string, offset, n int64) (io.ReadCloser, error) {
	length := s.Length()
	if length >= 0 && (offset < 0 || offset > length || n > length-offset) {
		return nil, tables.Invalidf(op, "a range of %d bytes from %d on, of %d", n, offset, length)
	}
	if n < 0 {
		n = length - offset
	}
	switch {
	case s.c == nil:
		return io.NopCloser(strings.NewReader("")), nil
	case s.c.ptr == nil && s.c.src.memory:
		return io.NopCloser(bytes.NewReader(s.c.src.data[offset : offset+n])), nil
	case s.c.ptr == nil:
		return nil, tables.Invalidf(op, "the Stream was not written yet")
	case s.c.home == nil:
		return nil, tables.Invalidf(op, "the Stream was read by a projection, and does not know its container: Property.Of gives one that does")
	}
	return s.c.home.openValue(ctx, op, s.c.ptr, offset, n)
}

// Download writes the whole value to w, and checks length and SHA-256 at the end: with an error, what w got is not to be used. It
// returns how many bytes w got. Requests: 1; with DownloadOptions.Concurrency 1 for each Options.BlockSize.
func (s Stream) Download(ctx context.Context, w io.Writer, options *DownloadOptions) (int64, error) {
	const op = "Download"
	var o DownloadOptions
	if options != nil {
		o = *options
	}
	if o.Concurrency < 0 || o.Concurrency > maxConcurrent {
		return 0, tables.Invalidf(op, "a Concurrency of %d: it is 0 to %d", o.Concurrency, maxConcurrent)
	}
	told := &toldWriter{w: w, report: o.Progress}
	if o.Concurrency > 1 && s.c != nil && s.c.ptr != nil && s.c.home != nil && s.c.ptr.length > int64(s.c.home.blockSize) {
		_, err := s.c.home.downloadValue(ctx, op, s.c.ptr, told, o.Concurrency)
		return told.written, err
	}
	r, err := s.openRange(ctx, op, 0, -1)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	_, err = io.CopyBuffer(told, r, make([]byte, copySize))
	return told.written, err
}

// DownloadOptions are the options of Stream.Download; nil is the same as the zero value.
type DownloadOptions struct {
	// Concurrency is how many pieces of Options.BlockSize are read at once; they are held in memory, and written in order. 0 and 1
	// read one answer from its beginning to its end. More is faster where one connection does not fill the network.
	Concurrency int
	// Progress is told how many bytes are written.
	Progress func(written int64)
}

// The texts by which a Stream goes through tables.Codec, which knows fields, and Property, which knows blobs.
const (
	newMark    = "new"     // of a source that only the entity itself has
	inlineMark = "inline " // the content in base64
)

// MarshalText is for tables.Codec. It does not write the content of a Stream that is new.
func (s Stream) MarshalText() ([]byte, error) {
	switch {
	case s.c == nil:
		return nil, nil
	case s.c.ptr != nil:
		return []byte(textOf(s.c.ptr)), nil
	case s.c.src.memory && len(s.c.src.data) <= maxInline && s.c.src.kind == "":
		return append([]byte(inlineMark), base64.StdEncoding.EncodeToString(s.c.src.data)...), nil
	}
	return []byte(newMark), nil
}

// keyMark begins the text of a Stream in a blob: the key of its entity in base64, a space, the pointer. Without the key
// nothing could tell whether the blob is the entity's.
const keyMark = "key "

func textOf(p *pointer) string { return keyMark + encodeKey(p.of) + " " + p.String() }

// parseText is the reverse of textOf.
func parseText(text string) (*pointer, error) {
	encoded, rest, ok := strings.Cut(strings.TrimPrefix(text, keyMark), " ")
	of, decoded := decodeKey(encoded)
	if !ok || !decoded || !strings.HasPrefix(text, keyMark) {
		return nil, errNoPointer
	}
	return parsePointer(of, rest)
}

const maxInline = 64 << 10 // what can be in an entity at all

// UnmarshalText is for tables.Codec.
func (s *Stream) UnmarshalText(text []byte) error {
	switch t := string(text); {
	case t == "":
		s.c = nil
	case t == newMark:
		s.c = &content{src: &source{used: true}}
	case strings.HasPrefix(t, inlineMark):
		data, err := base64.StdEncoding.DecodeString(t[len(inlineMark):])
		if err != nil {
			return errNoPointer
		}
		s.c = &content{src: &source{data: data, memory: true}}
	default:
		ptr, err := parseText(t)
		if err != nil {
			return err
		}
		s.c = &content{ptr: ptr}
	}
	return nil
}
