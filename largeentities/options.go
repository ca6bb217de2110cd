package largeentities

import (
	"cmp"
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

	maxBlocks     = 50_000    // number of blocks of a blob
	maxBlockSize  = 100 << 20 // the service allows more, but a buffer should not be larger
	maxPrefix     = 256       // characters
	maxConcurrent = 64        // each request has a buffer of one block
	maxType       = 256       // characters of a content type
	mostDeadline  = 10 * 365 * 24 * time.Hour
	leastDeadline = time.Second // a shorter Deadline would often pass before the transaction is sent
	standardGrace = time.Hour
	unknownLength = int64(1) << 62
)

// Options are the options of NewProperty and NewStream; nil is the same as the zero value.
type Options struct {
	// Prefix begins the names of the property's blobs (default: the table's name and the property's name). Repositories
	// may share a container; repositories of different accounts then need different prefixes. Never change it: blobs
	// under another prefix do not belong to the property, and a read of a pointer to one returns tables.ErrGarbled.
	Prefix string
	// Threshold is the largest size in bytes (for a string, in UTF-8) of a value that stays in the entity
	// (default 32 KiB, at most 64 KiB). If it is negative, all values are stored in blobs. A string of more
	// than 32,768 UTF-16 units, which no property can hold, is stored in a blob in any case; ASCII text
	// reaches that with 32 KiB.
	Threshold int
	// MaxValue is the size in bytes of the largest []byte or string that is written, or read into memory
	// (default 64 MiB). A larger value causes tables.ErrTooLarge. It does not limit a Stream.
	MaxValue int64
	// ContentType is the content type of the blobs (default application/octet-stream). StreamOptions can set another.
	ContentType string
	// BlockSize is the size in bytes of the blocks in which larger values are uploaded (default 2 MiB). A blob has at
	// most 50,000 blocks.
	BlockSize int
	// Concurrency is how many blocks are uploaded at once (default 3). An upload holds that many blocks in
	// memory.
	Concurrency int
	// Deadline is how long a blob may wait for the transaction that points at it (default 10 minutes, at most 10
	// years). The writer sends the transaction within 5/6 of it, or not at all. If another value of the same change
	// takes longer, the writer renews the blob's Last-Modified. The Deadline is stored with each blob; with it, Sweep
	// tells an unreferenced blob from a pending one.
	Deadline time.Duration
	// Account is the account of the container, which signs the addresses of SignedURL; nil means the account of the
	// repository's table.
	Account *tables.Account
	// Sealer seals the blobs, for example an encryption.Stream; nil stores them in plaintext. With a Sealer
	// all values are stored in blobs, because a value within the entity would be in plaintext. Reading a
	// value that is not sealed returns tables.ErrGarbled.
	Sealer Sealer
	// AcceptPlaintext allows the migration to a Sealer: it accepts values that were stored without a Sealer.
	// While it is set, anybody who can write rows and blobs can pass values off as sealed ones. Run
	// Property.Reseal on each entity, then clear it.
	AcceptPlaintext bool
}

// complete fills in the defaults and checks the options.
func (o Options) complete() (Options, error) {
	if o.Sealer != nil && o.Threshold > 0 {
		return o, fmt.Errorf("Options.Threshold is %d, so small values would stay in the entity in plaintext despite Options.Sealer; leave Threshold 0", o.Threshold)
	}
	if o.AcceptPlaintext && o.Sealer == nil {
		return o, errors.New("Options.AcceptPlaintext is set without Options.Sealer; set both or neither")
	}
	if o.Sealer != nil {
		o.Threshold = -1
	}
	o.Threshold = cmp.Or(o.Threshold, standardThreshold)
	o.MaxValue = cmp.Or(o.MaxValue, standardMaxValue)
	o.ContentType = cmp.Or(o.ContentType, standardType)
	o.BlockSize = cmp.Or(o.BlockSize, standardBlockSize)
	o.Concurrency = cmp.Or(o.Concurrency, standardConcurrency)
	o.Deadline = cmp.Or(o.Deadline, standardDeadline)
	switch {
	case o.Threshold > tables.MaxBinarySize:
		return o, fmt.Errorf("Options.Threshold is %d; it must be at most %d bytes, the size of a property", o.Threshold, tables.MaxBinarySize)
	case o.MaxValue < int64(o.Threshold):
		return o, fmt.Errorf("Options.MaxValue is %d; it must not be less than Threshold, %d", o.MaxValue, o.Threshold)
	case o.BlockSize < 1 || o.BlockSize > maxBlockSize:
		return o, fmt.Errorf("Options.BlockSize is %d; it must be 0 (meaning 2 MiB) or 1 to %d bytes", o.BlockSize, maxBlockSize)
	case o.Concurrency < 1 || o.Concurrency > maxConcurrent:
		return o, fmt.Errorf("Options.Concurrency is %d; it must be 0 (meaning 3) or 1 to %d", o.Concurrency, maxConcurrent)
	case o.Deadline < leastDeadline || o.Deadline > mostDeadline:
		return o, fmt.Errorf("Options.Deadline is %v; it must be 0 (meaning %v), or from %v to %v", o.Deadline, standardDeadline, leastDeadline, mostDeadline)
	}
	if err := checkPrefix(o.Prefix); err != nil {
		return o, err
	}
	return o, checkType(o.ContentType)
}

// checkPrefix returns an error for a prefix that cannot stand in an address or a pointer unchanged, such as one with a space, or with a
// segment that is empty or ends with a dot.
func checkPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	if n := utf8.RuneCountInString(prefix); n > maxPrefix {
		return fmt.Errorf("Options.Prefix has %d characters; it must have at most %d", n, maxPrefix)
	}
	for part := range strings.SplitSeq(prefix, "/") {
		if part == "" || strings.HasSuffix(part, ".") {
			return fmt.Errorf("Options.Prefix is %q; no part between slashes may be empty or end with a dot", prefix)
		}
	}
	for _, c := range prefix {
		if c <= ' ' || c > '~' || strings.ContainsRune(`\?#%`, c) {
			return fmt.Errorf("Options.Prefix is %q; it has a character that must be escaped in a URL", prefix)
		}
	}
	return nil
}

// checkType returns an error for a content type that a header cannot hold.
func checkType(contentType string) error {
	if len(contentType) > maxType {
		return fmt.Errorf("the content type has %d characters; it must have at most %d", len(contentType), maxType)
	}
	for _, c := range contentType {
		if c < ' ' || c > '~' {
			return fmt.Errorf("content type %q has a character that a header cannot have; use printable ASCII", contentType)
		}
	}
	if contentType != strings.TrimSpace(contentType) {
		return fmt.Errorf("content type %q begins or ends with a space; remove it", contentType)
	}
	return nil
}
