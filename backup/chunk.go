package backup

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// maxWindow limits the memory that a chunk can make the decoder take. Encoders use less.
const maxWindow = 8 << 20

// codecs are kept for the next chunk: each takes some MiB.
type codecs struct{ encoders, decoders sync.Pool }

func newEncoder() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return e
}

func newDecoder() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxDecoded), zstd.WithDecoderLowmem(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return d
}

// compress returns content as a chunk stores it.
func (c *codecs) compress(content []byte) []byte {
	e, ok := c.encoders.Get().(*zstd.Encoder)
	if !ok {
		e = newEncoder()
	}
	defer c.encoders.Put(e)
	return e.EncodeAll(content, make([]byte, 0, len(content)/4+1<<10))
}

// errDecoded is the error of a chunk that has not the bytes of its entry.
var errDecoded = errors.New("the chunk does not decompress to the bytes that the manifest says")

// decompress returns the content of a chunk, which must have size bytes. Memory is bounded by size and the window, whatever the chunk says.
func (c *codecs) decompress(stored []byte, size int64) ([]byte, error) {
	d, ok := c.decoders.Get().(*zstd.Decoder)
	if !ok {
		d = newDecoder()
	}
	defer c.decoders.Put(d)
	if d.Reset(bytes.NewReader(stored)) != nil {
		return nil, errDecoded
	}
	defer d.Reset(nil) // the decoder keeps no chunk
	content := make([]byte, size)
	if _, err := io.ReadFull(d, content); err != nil {
		return nil, errDecoded
	}
	if n, err := d.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return nil, errDecoded
	}
	return content, nil
}
