package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"regexp"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Vault is a local folder or a part of a container that holds backups. It is safe for concurrent use.
type Vault struct {
	objects objects
	where   string // for errors
	codecs  codecs
}

// objects stores files or blobs. Their names contain only slashes, ASCII letters, digits and ".-_": they are made from the caller's names, numbers
// and checksums.
type objects interface {
	// get returns errTooLong for more than limit bytes, and tables.ErrNotFound.
	get(ctx context.Context, name string, limit int64) ([]byte, error)
	// put stores an object completely or not at all. With create, it returns tables.ErrExists for one that exists.
	put(ctx context.Context, name string, content []byte, create bool) error
	// list yields the names that begin with prefix, which ends with a slash; for "" those at the top level.
	list(ctx context.Context, prefix string) iter.Seq2[string, error]
	// clear removes the objects below a prefix, which ends with a slash.
	clear(ctx context.Context, prefix string) error
	// flush makes all objects durable that were put so far.
	flush()
	close() error
}

var errTooLong = errors.New("the object has more bytes than its entry or format allows")

var legalName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_-]{0,62}[A-Za-z0-9])?$`)

// checkName refuses a name that could be a path, or another object of the vault.
func checkName(op, what, name string) error {
	if !legalName.MatchString(name) || name == chunksFolder {
		return errs.Invalidf(op, "the name of %s, of %d characters, must be 1 to 64 ASCII letters, digits, '-' and '_', begin and end with a letter or digit, and not be %q", what, len(name), chunksFolder)
	}
	return nil
}

const (
	chunksFolder  = "chunks"
	manifestEnd   = ".manifest"
	journalFolder = ".journal/"
	begunName     = "begun"
)

func manifestName(backup string) string { return backup + manifestEnd }
func journalName(backup string) string  { return backup + journalFolder }
func entryName(backup string, n int) string {
	return fmt.Sprintf("%s%08d", journalName(backup), n)
}

// chunkName returns the name for a checksum of 64 hexadecimal digits.
func chunkName(sum string) string { return chunksFolder + "/" + sum[:2] + "/" + sum }

// Close releases the folder.
func (v *Vault) Close() error { return v.objects.close() }

// String returns the vault's location.
func (v *Vault) String() string { return v.where }

func (v *Vault) failed(op, name string, err error) error {
	if e, ok := err.(*tables.Error); ok {
		located := *e
		located.Op, located.Table = op, name
		return &located
	}
	return &tables.Error{Op: op, Table: name, Err: err}
}

func damaged(op, name, format string, args ...any) error {
	return &tables.Error{Op: op, Table: name, Kind: tables.ErrGarbled, Err: fmt.Errorf(format+"; restore the object, or use another backup", args...)}
}

// create stores an object that must not exist. After an error it reads it: the same content was stored by an earlier attempt.
func (v *Vault) create(ctx context.Context, op, name string, content []byte) error {
	err := v.objects.put(ctx, name, content, true)
	if err == nil {
		return nil
	}
	stored, readErr := v.objects.get(ctx, name, int64(len(content)))
	switch {
	case readErr == nil && bytes.Equal(stored, content):
		return nil
	case readErr == nil || errors.Is(readErr, errTooLong):
		return &tables.Error{Op: op, Table: name, Kind: tables.ErrExists, Err: errors.New("the vault has another object of this name; choose another name for the backup")}
	}
	return v.failed(op, name, err)
}

func sum(content []byte) string {
	s := sha256.Sum256(content)
	return hex.EncodeToString(s[:])
}

func isSum(text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && len(raw) == sha256.Size && strings.ToLower(text) == text
}

// putChunk stores a chunk under its checksum, unless the vault has it, and reads it back. Requests: 2.
func (v *Vault) putChunk(ctx context.Context, op string, stored []byte) (checksum string, err error) {
	checksum = sum(stored)
	name := chunkName(checksum)
	for _, create := range []bool{true, false} {
		putErr := v.objects.put(ctx, name, stored, create)
		if _, err = v.getChunk(ctx, op, checksum, int64(len(stored))); err == nil {
			return checksum, nil // even if the response was lost
		}
		if putErr != nil && !errors.Is(putErr, tables.ErrExists) {
			return "", v.failed(op, name, putErr)
		}
		if !errors.Is(err, tables.ErrGarbled) {
			return "", err
		}
		// Another backup's chunk is damaged: overwrite it.
	}
	return "", damaged(op, name, "the chunk was stored, but reads back with other content")
}

// getChunk reads and checks a chunk. Requests: 1.
func (v *Vault) getChunk(ctx context.Context, op, checksum string, size int64) ([]byte, error) {
	name := chunkName(checksum)
	stored, err := v.objects.get(ctx, name, size)
	switch {
	case errors.Is(err, tables.ErrNotFound):
		return nil, damaged(op, name, "the chunk is missing")
	case errors.Is(err, errTooLong), err == nil && int64(len(stored)) != size:
		return nil, damaged(op, name, "the size of the chunk is not the %d bytes in the manifest", size)
	case err != nil:
		return nil, v.failed(op, name, err)
	case sum(stored) != checksum:
		return nil, damaged(op, name, "the chunk does not have the SHA-256 in its name")
	}
	return stored, nil
}

// maxWindow limits the memory of a decoder.
const maxWindow = 8 << 20

// codecs reuses encoders and decoders, each of some MiB.
type codecs struct{ encoders, decoders sync.Pool }

func (c *codecs) encoder() *zstd.Encoder {
	e, ok := c.encoders.Get().(*zstd.Encoder)
	if !ok {
		var err error
		e, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
		if err != nil {
			panic(err) // the options are constants
		}
	}
	return e
}

func (c *codecs) compress(content []byte) []byte {
	e := c.encoder()
	defer c.encoders.Put(e)
	return e.EncodeAll(content, make([]byte, 0, len(content)/4+1<<10))
}

// chunk compresses lines as they come, so only compressed bytes take memory.
type chunk struct {
	encoder *zstd.Encoder
	stored  bytes.Buffer
	lines   hash.Hash
	bytes   int64 // of the lines
}

// begin begins a chunk, whose encoder the caller must put back.
func (c *codecs) begin() *chunk {
	k := &chunk{encoder: c.encoder(), lines: sha256.New()}
	k.encoder.Reset(&k.stored)
	return k
}

func (k *chunk) add(text []byte) error {
	k.bytes += int64(len(text))
	k.lines.Write(text)
	_, err := k.encoder.Write(text)
	return err
}

// end completes the chunk in its entry and begins the next. The bytes are valid until the next add.
func (k *chunk) end(e *entry) ([]byte, error) {
	err := k.encoder.Close()
	stored := k.stored.Bytes()
	e.Bytes, e.Lines, e.Stored = k.bytes, hex.EncodeToString(k.lines.Sum(nil)), int64(len(stored))
	k.stored.Reset()
	k.lines.Reset()
	k.encoder.Reset(&k.stored)
	k.bytes = 0
	return stored, err
}

var errDecoded = errors.New("the chunk does not decompress to the number of bytes in the manifest")

// decompress refuses content of another size. It takes memory only for size bytes and the window, even if the chunk is forged.
func (c *codecs) decompress(stored []byte, size int64) ([]byte, error) {
	d, ok := c.decoders.Get().(*zstd.Decoder)
	if !ok {
		var err error
		d, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxDecoded), zstd.WithDecoderLowmem(true))
		if err != nil {
			panic(err)
		}
	}
	defer c.decoders.Put(d)
	if d.Reset(bytes.NewReader(stored)) != nil {
		return nil, errDecoded
	}
	defer d.Reset(nil) // it must not keep a reference to the chunk
	content := make([]byte, size)
	if _, err := io.ReadFull(d, content); err != nil {
		return nil, errDecoded
	}
	if n, err := d.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return nil, errDecoded
	}
	return content, nil
}
