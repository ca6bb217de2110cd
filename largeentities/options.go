package largeentities

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	standardThreshold   = 32 << 10
	standardMaxValue    = 64 << 20
	standardBlockSize   = 2 << 20
	standardConcurrency = 3
	standardDeadline    = 10 * time.Minute
	standardType        = "application/octet-stream"

	maxBlocks     = 50_000    // of a blob
	maxBlockSize  = 100 << 20 // the service takes more; a buffer should not
	maxPrefix     = 256       // characters
	maxConcurrent = 64        // buffers of a block each
	maxType       = 256       // characters of a content type
	mostDeadline  = 10 * 365 * 24 * time.Hour
	leastDeadline = time.Second // shorter ones would end changes that go well
	standardGrace = time.Hour
	unknownLength = int64(1) << 62
)

// Options are the options of NewProperty and NewStream; nil is the same as the zero value.
type Options struct {
	// Prefix begins the names of the property's blobs, the table's name and the property's for "". Repositories may share a
	// container; those of different accounts need different prefixes in it. It never changes: blobs under another prefix are not the
	// property's, and pointers to them are tables.ErrGarbled.
	Prefix string
	// Threshold is the size in bytes up to which a value stays in the entity, 32 KiB for 0; below zero, all values go
	// out. At most 64 KiB. A string of more than 32,768 UTF-16 units goes out in any case.
	Threshold int
	// MaxValue is the size in bytes of the largest []byte or string that is written, or read into memory, 64 MiB for 0.
	// Beyond it is tables.ErrTooLarge. It does not bound a Stream.
	MaxValue int64
	// ContentType is that of the blobs, application/octet-stream for "". StreamOptions can say another.
	ContentType string
	// BlockSize is the size of the pieces in which larger values are sent, 2 MiB for 0. A blob has at most 50,000.
	BlockSize int
	// Concurrency is how many pieces are sent at once, 3 for 0. An upload holds that many in memory.
	Concurrency int
	// Deadline is how long a blob may wait for the transaction that points at it (default 10 minutes, at most 10 years). The writer
	// sends the transaction within 5/6 of it, or not at all; it makes the blob younger where another value takes longer. It is stored
	// with each blob, and lets Sweep tell an unreferenced blob from one that is about to be referenced.
	Deadline time.Duration
	// Account signs addresses for SignedURL: the account of the container. nil is the account of the repository's table.
	Account *tables.Account
	// Sealer seals the blobs, such as an encryption.Stream; nil stores them in clear. All values go out then, since one
	// within the entity would be in clear. What is read and was not sealed is tables.ErrGarbled.
	Sealer Sealer
	// AcceptPlaintext is for the migration to a Sealer: values that were stored before are read. While it is set, who can
	// write rows and blobs can pass values off as what was sealed. Property.Reseal brings it to an end.
	AcceptPlaintext bool
}

// complete fills in what is not given, and checks the rest.
func (o Options) complete() (Options, error) {
	if o.Sealer != nil && o.Threshold > 0 {
		return o, fmt.Errorf("a Threshold of %d, up to which values would stay in the entity in clear, and a Sealer", o.Threshold)
	}
	if o.AcceptPlaintext && o.Sealer == nil {
		return o, errors.New("AcceptPlaintext is for a property with a Sealer")
	}
	if o.Sealer != nil {
		o.Threshold = -1
	}
	if o.Threshold == 0 {
		o.Threshold = standardThreshold
	}
	if o.MaxValue == 0 {
		o.MaxValue = standardMaxValue
	}
	if o.ContentType == "" {
		o.ContentType = standardType
	}
	if o.BlockSize == 0 {
		o.BlockSize = standardBlockSize
	}
	if o.Concurrency == 0 {
		o.Concurrency = standardConcurrency
	}
	if o.Deadline == 0 {
		o.Deadline = standardDeadline
	}
	switch {
	case o.Threshold > tables.MaxBinarySize:
		return o, fmt.Errorf("a Threshold of %d: a property holds at most %d bytes", o.Threshold, tables.MaxBinarySize)
	case o.MaxValue < int64(o.Threshold):
		return o, fmt.Errorf("a MaxValue of %d, and a Threshold of %d", o.MaxValue, o.Threshold)
	case o.BlockSize < 1 || o.BlockSize > maxBlockSize:
		return o, fmt.Errorf("a BlockSize of %d: it is 1 to %d", o.BlockSize, maxBlockSize)
	case o.Concurrency < 1 || o.Concurrency > maxConcurrent:
		return o, fmt.Errorf("a Concurrency of %d: it is 1 to %d", o.Concurrency, maxConcurrent)
	case o.Deadline < leastDeadline || o.Deadline > mostDeadline:
		return o, fmt.Errorf("Options.Deadline is %v; it must be 0 (meaning %v), or from %v to %v", o.Deadline, standardDeadline, leastDeadline, mostDeadline)
	}
	if err := checkPrefix(o.Prefix); err != nil {
		return o, err
	}
	return o, checkType(o.ContentType)
}

// checkPrefix allows what is safe as a part of an address and in a pointer: no empty part and none that ends with a dot.
func checkPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	if n := utf8.RuneCountInString(prefix); n > maxPrefix {
		return fmt.Errorf("a Prefix of %d characters: it has at most %d", n, maxPrefix)
	}
	for part := range strings.SplitSeq(prefix, "/") {
		if part == "" || strings.HasSuffix(part, ".") {
			return fmt.Errorf("a Prefix of %q, which has a part that is empty or ends with a dot", prefix)
		}
	}
	for _, c := range prefix {
		if c <= ' ' || c > '~' || strings.ContainsRune(`\?#%`, c) {
			return fmt.Errorf("a Prefix of %q, which holds a character that is not safe in an address", prefix)
		}
	}
	return nil
}

// checkType allows what a header can carry.
func checkType(contentType string) error {
	if len(contentType) > maxType {
		return fmt.Errorf("a content type of %d characters: it has at most %d", len(contentType), maxType)
	}
	for _, c := range contentType {
		if c < ' ' || c > '~' {
			return fmt.Errorf("content type %q holds a character that no header can carry", contentType)
		}
	}
	if contentType != strings.TrimSpace(contentType) {
		return fmt.Errorf("content type %q begins or ends with a space", contentType)
	}
	return nil
}
