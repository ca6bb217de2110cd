package largeentities

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/errs"
)

// Stream is a value that is not held in memory: a field of this type is written from a reader, and read only when you
// open it. The zero Stream has no value. Copies of a Stream denote the same value: if you copy an entity and insert
// the copy under another key, that entity gets a blob of its own. While a Stream is being written, use it from one
// goroutine only; a Stream that was read is safe for concurrent use.
type Stream struct {
	c *content
}

// content is the content of a Stream.
type content struct {
	src  *source  // nil if the Stream was read from storage
	ptr  *pointer // nil if the content is not in a blob (yet)
	home *blobs   // reads the blob of ptr; nil if the Stream was read through a projection
}

// StreamOptions are the options of the functions that make a Stream; nil is the same as the zero value.
type StreamOptions struct {
	// ContentType is the content type of the blob (default Options.ContentType). A value with another content type is
	// always stored in a blob, because the entity cannot hold the type.
	ContentType string
	// Length is the number of bytes, if you know it (default 0: unknown). If the source has another number, the write fails with
	// tables.ErrInvalid.
	Length int64
	// Progress is called during the upload with the number of bytes sent so far, one call at a time.
	Progress func(sent int64)
}

// NewStreamBytes makes a Stream from bytes, which must not change afterwards.
func NewStreamBytes(data []byte, options *StreamOptions) Stream {
	return newStream(source{data: data, memory: true}, options)
}

// NewStreamFunc makes a Stream that reads what open returns, such as an opened file. The Stream calls open once for
// each attempt to write the entity. It calls open once more, to find out whether the value is short, unless
// StreamOptions.Length exceeds Options.Threshold. It closes the readers.
func NewStreamFunc(open func() (io.ReadCloser, error), options *StreamOptions) Stream {
	if open == nil {
		open = func() (io.ReadCloser, error) {
			return nil, errors.New("the function given to NewStreamFunc is nil; give one")
		}
	}
	return newStream(source{open: open}, options)
}

// NewStreamReader makes a Stream from the rest of a reader, which can be written once: a second attempt to
// write it, for example by Repository.Update after a conflict, returns tables.ErrInvalid. Create it outside
// of the function that Update calls. Otherwise the second attempt would create another Stream from the same
// reader, and silently store only the bytes that the first attempt has not read.
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

// Length returns the number of bytes, -1 if it is not known yet.
func (s Stream) Length() int64 {
	switch {
	case s.c == nil:
		return 0
	case s.c.ptr != nil:
		return s.c.ptr.length
	}
	if data, known := s.c.src.known(); known {
		return int64(len(data))
	}
	return -1
}

// SHA256 returns the hash of the content; known is false for the zero Stream, for a Stream from a reader or function
// before it is written, and for a sealed one unless NewStreamBytes made it.
func (s Stream) SHA256() (sum [sha256.Size]byte, known bool) {
	switch {
	case s.c == nil:
		return sum, false
	case s.c.ptr != nil && !s.c.ptr.sealed:
		return s.c.ptr.sha256, true
	case s.c.src == nil:
		return sum, false
	}
	if data, known := s.c.src.known(); known {
		return sha256.Sum256(data), true
	}
	return sum, false
}

// ContentType returns the content type of the blob, or "" if the value has the content type of the Options
// and is new or within the entity.
func (s Stream) ContentType() string {
	switch {
	case s.c == nil:
		return ""
	case s.c.ptr != nil:
		return s.c.ptr.contentType
	}
	return s.c.src.kind
}

// InBlob reports whether the value is stored in a blob; it is false for a Stream that was not written yet.
func (s Stream) InBlob() bool { return s.c != nil && s.c.ptr != nil }

// Open reads the whole value, with 1 request, and checks its length and SHA-256: a wrong or incomplete value ends with
// an error, never with io.EOF. tables.ErrConflict means that the entity has been changed since it was read, or that the
// blob is lost.
func (s Stream) Open(ctx context.Context) (io.ReadCloser, error) { return s.OpenRange(ctx, 0, -1) }

// OpenRange reads n bytes from offset on, or all remaining ones if n is negative. It checks that the range comes from
// the blob that the entity points at. It cannot check the bytes themselves, because the hash covers only the whole
// value; those of a sealed value are authenticated. Requests: 1, none for an empty range; for a range of a sealed value 2.
func (s Stream) OpenRange(ctx context.Context, offset, n int64) (io.ReadCloser, error) {
	return s.openRange(ctx, "Open", offset, n)
}

func (s Stream) openRange(ctx context.Context, op string, offset, n int64) (io.ReadCloser, error) {
	length := s.Length()
	if length >= 0 && (offset < 0 || offset > length || n > length-offset) {
		return nil, errs.Invalidf(op, "a range of %d bytes at offset %d is outside of the value, which has %d bytes", n, offset, length)
	}
	if n < 0 {
		n = length - offset
	}
	switch {
	case s.c == nil:
		return io.NopCloser(strings.NewReader("")), nil
	case s.c.ptr == nil:
		data, known := s.c.src.known()
		if !known {
			return nil, errs.Invalidf(op, "the Stream was not written yet; write its entity first")
		}
		return io.NopCloser(bytes.NewReader(data[offset : offset+n])), nil
	case s.c.home == nil:
		return nil, errs.Invalidf(op, "the Stream was read through a projection and does not know its container; get it from Property.Of")
	}
	return s.c.home.openValue(ctx, op, s.c.ptr, offset, n)
}

// Download writes the whole value to w, and checks length and SHA-256 at the end: if it returns an error, discard the
// bytes that w has received. It returns the number of bytes that it has written. Requests: 1; with
// DownloadOptions.Concurrency 1 for each Options.BlockSize.
func (s Stream) Download(ctx context.Context, w io.Writer, options *DownloadOptions) (int64, error) {
	const op = "Download"
	var o DownloadOptions
	if options != nil {
		o = *options
	}
	if o.Concurrency < 0 || o.Concurrency > maxConcurrent {
		return 0, errs.Wiringf(op, "", "DownloadOptions.Concurrency is %d; it must be 0 to %d", o.Concurrency, maxConcurrent)
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
	// Concurrency is how many pieces of Options.BlockSize are read at once; the pieces are held in memory,
	// and written in order. 0 and 1 read the value with one request. More is faster if one connection does
	// not use the whole bandwidth.
	Concurrency int
	// Progress is called with the number of bytes written so far.
	Progress func(written int64)
}

// tables.Codec encodes a Stream as one of these texts, or as keyMark and a pointer.
const (
	newMark    = "new"     // a new Stream; the text does not contain its source
	inlineMark = "inline " // the content in base64
)

// MarshalText implements encoding.TextMarshaler for tables.Codec. For a new Stream the text contains the content only
// if NewStreamBytes made it from at most 64 KiB, without StreamOptions.ContentType.
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

// keyMark begins the text of a Stream that is in a blob. The key of the blob's entity, in base64, a space and the pointer follow.
const keyMark = "key "

func textOf(p *pointer) string { return keyMark + encodeKey(p.of) + " " + p.String() }

// parseText is the inverse of textOf.
func parseText(text string) (*pointer, error) {
	encoded, rest, ok := strings.Cut(strings.TrimPrefix(text, keyMark), " ")
	of, decoded := decodeKey(encoded)
	if !ok || !decoded || !strings.HasPrefix(text, keyMark) {
		return nil, errNoPointer
	}
	return parsePointer(of, rest)
}

const maxInline = 64 << 10 // more than an entity can hold

// UnmarshalText implements encoding.TextUnmarshaler for tables.Codec.
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

// source is the input of a new Stream.
type source struct {
	memory   bool                          // the content is data; otherwise, either open or once is set
	data     []byte                        // the content, if memory is set
	open     func() (io.ReadCloser, error) // returns a new reader of the content
	once     io.Reader                     // a reader that can be read only once
	used     bool                          // the reader in the field once was read
	length   int64                         // StreamOptions.Length, 0 for unknown
	kind     string                        // StreamOptions.ContentType, "" for that of the property's Options
	report   func(int64)
	headRead bool   // peek has filled head
	head     []byte // what peek has read: the first bytes, or the whole content if it is short
	whole    bool   // head is the whole content
}

var errReaderUsed = errors.New("the reader of a Stream was already read, by an earlier attempt or for another entity; make it with NewStreamFunc to send it again")

// peek reports whether the source has at most limit bytes, and returns them. It reads at most one byte more, and only in the first call.
func (s *source) peek(limit int) (content []byte, whole bool, err error) {
	switch {
	case s.memory:
		return s.data, len(s.data) <= limit, nil
	case s.length > int64(limit):
		return nil, false, nil
	case s.headRead:
		return s.head, s.whole && len(s.head) <= limit, nil
	case limit < 0:
		return nil, false, nil
	}
	r := s.once
	if s.open != nil {
		opened, err := s.openAgain()
		if err != nil {
			return nil, false, err
		}
		defer opened.Close()
		r = opened
	}
	head := make([]byte, limit+1)
	n, ended, err := fill(r, head)
	if err != nil {
		s.used = s.once != nil
		return nil, false, err
	}
	s.headRead, s.head, s.whole = true, head[:n], ended && n <= limit
	if s.whole {
		if err := s.checkLength(int64(n)); err != nil {
			return nil, false, err
		}
	}
	return s.head, s.whole, nil
}

// fill reads a block, or less if the source ends before: then ended is true. It does not use io.ReadFull, which returns
// io.ErrUnexpectedEOF both for a source that ends and for a source that was cut off.
func fill(r io.Reader, block []byte) (n int, ended bool, err error) {
	for idle := 0; n < len(block); {
		got, err := r.Read(block[n:])
		if got < 0 || got > len(block)-n {
			return n, false, fmt.Errorf("the reader of a Stream returned a count of %d for a buffer of %d bytes; correct the reader", got, len(block)-n)
		}
		n += got
		if err == io.EOF {
			return n, true, nil
		}
		if err != nil {
			return n, false, err
		}
		if got > 0 {
			idle = 0
		} else if idle++; idle > maxIdleReads {
			return n, false, io.ErrNoProgress
		}
	}
	return n, false, nil
}

const maxIdleReads = 100

func (s *source) openAgain() (io.ReadCloser, error) {
	r, err := s.open()
	if err == nil && r == nil {
		err = errors.New("the function given to NewStreamFunc returned a nil reader; return a reader or an error")
	}
	return r, err
}

// known returns the content if it is in memory: that of NewStreamBytes, or a short content that a write has read.
func (s *source) known() (data []byte, ok bool) {
	if s.memory {
		return s.data, true
	}
	return s.head, s.headRead && s.whole
}

// spent reports whether the source cannot be read again.
func (s *source) spent() bool {
	_, known := s.known()
	return s.used && !known
}

// reader returns the whole content from the beginning.
func (s *source) reader() (io.ReadCloser, error) {
	switch {
	case s.memory:
		return io.NopCloser(bytes.NewReader(s.data)), nil
	case s.open != nil:
		return s.openAgain()
	case s.headRead && s.whole:
		return io.NopCloser(bytes.NewReader(s.head)), nil
	case s.used:
		return nil, errReaderUsed
	}
	s.used = true
	return io.NopCloser(io.MultiReader(bytes.NewReader(s.head), s.once)), nil
}

// checkLength returns an error if the number of bytes read is not StreamOptions.Length, so that a source that ends early is not stored.
func (s *source) checkLength(n int64) error {
	if s.length > 0 && s.length != n {
		return fmt.Errorf("the Stream has %d bytes, but StreamOptions.Length is %d; both must be equal", n, s.length)
	}
	return nil
}
