package largeentities

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// source is the input of a new Stream.
type source struct {
	data     []byte                        // data is set
	open     func() (io.ReadCloser, error) // nil for data and for once
	once     io.Reader                     // a reader that can be read only once
	used     bool                          // once was read
	length   int64                         // announced by the caller, 0 for unknown
	kind     string                        // content type; "" means the content type in the options of the property
	report   func(int64)
	memory   bool
	headRead bool   // head is filled
	head     []byte // for once, the bytes read so far; for other sources, the whole content if it is short
	whole    bool   // head is the whole content
}

var errReaderUsed = errors.New("the reader of a Stream was already read, by an earlier attempt or for another entity; make it with NewStreamFunc to send it again")

// peek reports whether the source has at most limit bytes, and returns them. It reads at most one byte beyond
// the limit. It reads only in the first call, so a second call returns the same result.
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

// fill reads a block. ended means that nothing follows; after a full block, more may follow. Only io.EOF is
// the end. io.ErrUnexpectedEOF means that the source was cut off; io.ReadFull would not distinguish the two.
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

// spent reports whether the source cannot be read again.
func (s *source) spent() bool { return s.used && !s.memory && !(s.headRead && s.whole) }

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

// checkLength compares the number of bytes read with the announced length: a reader that ends early must not
// be stored as a complete short value.
func (s *source) checkLength(n int64) error {
	if s.length > 0 && s.length != n {
		return fmt.Errorf("the Stream has %d bytes, but StreamOptions.Length is %d; both must be equal", n, s.length)
	}
	return nil
}
