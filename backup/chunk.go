package backup

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// maxWindow limits the memory that decoding a chunk can take. Encoders use less.
const maxWindow = 8 << 20

// codecs reuses encoders and decoders, each of which takes some MiB.
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

// compress returns the compressed content of a chunk.
func (c *codecs) compress(content []byte) []byte {
	e, ok := c.encoders.Get().(*zstd.Encoder)
	if !ok {
		e = newEncoder()
	}
	defer c.encoders.Put(e)
	return e.EncodeAll(content, make([]byte, 0, len(content)/4+1<<10))
}

// errDecoded reports that the chunk does not decompress to the number of bytes in its entry.
var errDecoded = errors.New("the chunk does not decompress to the number of bytes in the manifest")

// decompress returns the content of a chunk, and an error if the content does not have size bytes. Even for a
// forged chunk, it uses memory only for size bytes and the window.
func (c *codecs) decompress(stored []byte, size int64) ([]byte, error) {
	d, ok := c.decoders.Get().(*zstd.Decoder)
	if !ok {
		d = newDecoder()
	}
	defer c.decoders.Put(d)
	if d.Reset(bytes.NewReader(stored)) != nil {
		return nil, errDecoded
	}
	defer d.Reset(nil) // the pooled decoder must not keep a reference to the chunk
	content := make([]byte, size)
	if _, err := io.ReadFull(d, content); err != nil {
		return nil, errDecoded
	}
	if n, err := d.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return nil, errDecoded
	}
	return content, nil
}
