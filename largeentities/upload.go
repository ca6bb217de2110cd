package largeentities

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"io"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/blobio"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/tables"
)

// upload uploads one value to its blob, with one request if it fits into a block. A longer value is sent in blocks, which are invisible
// until the list of blocks is committed.
type upload struct {
	blobs  *blobs
	name   string
	kind   string     // content type
	of     tables.Key // key of the entity, for the metadata
	report func(int64)
	check  func(length int64) error // nil for none
	expect int64                    // the length, or an upper bound if it is not known
	sum    hash.Hash
	length int64

	mu   sync.Mutex
	sent int64
}

// run sends all of r. Requests: 1 for less than a block, otherwise 1 for each block and 1 to commit them.
func (u *upload) run(ctx context.Context, r io.Reader) (_ *stored, err error) {
	ctx, span := u.blobs.begin(ctx, "Upload")
	defer func() { span.End(err) }()
	u.sum = sha256.New()
	// One byte more than expected shows whether the source ends there. A longer source is uploaded, too, in more blocks.
	first := make([]byte, min(int64(u.blobs.blockSize), u.expect+1))
	n, ended, err := u.fill(r, first)
	if err != nil {
		return nil, err
	}
	if ended {
		return u.finish(ctx, func(ctx context.Context, headers *blob.HTTPHeaders, meta map[string]*string) error {
			_, err := u.client().Upload(ctx, streaming.NopCloser(bytes.NewReader(first[:n])),
				&blockblob.UploadOptions{HTTPHeaders: headers, Metadata: meta, AccessConditions: blobio.Unchanged("")})
			if err == nil {
				u.progress(int64(n))
			}
			return err
		})
	}
	ids, err := u.stage(ctx, r, first[:n])
	if err != nil {
		return nil, err
	}
	return u.finish(ctx, func(ctx context.Context, headers *blob.HTTPHeaders, meta map[string]*string) error {
		_, err := u.client().CommitBlockList(ctx, ids, &blockblob.CommitBlockListOptions{HTTPHeaders: headers, Metadata: meta, AccessConditions: blobio.Unchanged("")})
		return err
	})
}

func (u *upload) client() *blockblob.Client { return u.blobs.container.NewBlockBlobClient(u.name) }

// fill reads and hashes a block.
func (u *upload) fill(r io.Reader, block []byte) (n int, ended bool, err error) {
	n, ended, err = fill(r, block)
	u.sum.Write(block[:n])
	u.length += int64(n)
	return n, ended, err
}

// finish makes the blob visible.
func (u *upload) finish(ctx context.Context, send func(context.Context, *blob.HTTPHeaders, map[string]*string) error) (*stored, error) {
	if u.check != nil {
		if err := u.check(u.length); err != nil {
			return nil, err
		}
	}
	s := &stored{pointer: pointer{of: u.of, name: u.name, length: u.length, contentType: u.kind}, since: time.Now()}
	u.sum.Sum(s.sha256[:0])
	s.meta = u.blobs.ownerOf(u.of).Metadata(map[string]string{metaHash: s.hash(), metaTerm: lease.FormatTerm(u.blobs.deadline)})
	err := u.blobs.commit(ctx, &s.pointer, func(ctx context.Context) error {
		return send(ctx, &blob.HTTPHeaders{BlobContentType: &u.kind}, s.meta)
	})
	return s, err
}

// stage sends blocks concurrently while it reads the next ones. There are as many buffers as senders, which limits the
// memory.
func (u *upload) stage(ctx context.Context, r io.Reader, first []byte) (ids []string, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var senders sync.WaitGroup
	free := make(chan []byte, u.blobs.concurrency)
	for range u.blobs.concurrency - 1 {
		free <- nil // allocated on first use
	}
	block, full := first, true
	for {
		if len(ids) == maxBlocks {
			err = fault("Store", u.name, tables.ErrTooLarge, "the value needs more than %d blocks of Options.BlockSize, %d bytes; set a larger one", maxBlocks, u.blobs.blockSize)
			break
		}
		id, data := blockID(len(ids)), block
		ids = append(ids, id)
		senders.Go(func() {
			if err := u.stageOne(ctx, id, data); err != nil {
				cancel(err)
			}
			free <- data[:cap(data)]
		})
		if !full {
			break
		}
		if block, err = u.next(ctx, free); err != nil {
			break
		}
		n, ended, readErr := u.fill(r, block)
		if err = readErr; err != nil || n == 0 {
			break
		}
		block, full = block[:n], !ended
	}
	if err != nil {
		cancel(err)
	}
	senders.Wait()
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return ids, err
}

// next waits for a free buffer.
func (u *upload) next(ctx context.Context, free <-chan []byte) ([]byte, error) {
	select {
	case block := <-free:
		if block == nil {
			block = make([]byte, u.blobs.blockSize)
		}
		return block, ctx.Err()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (u *upload) stageOne(ctx context.Context, id string, block []byte) error {
	_, err := u.client().StageBlock(ctx, id, streaming.NopCloser(bytes.NewReader(block)), nil)
	if err != nil {
		return failure("Store", u.name, err)
	}
	u.progress(int64(len(block)))
	return nil
}

func (u *upload) progress(n int64) {
	if u.report == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sent += n
	u.report(u.sent)
}

// blockID names a block by its index. Blocks of two attempts never mix, since each attempt has a blob name of its own.
func blockID(i int) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(i)))
}

// pendingBlob is a stored blob whose change is not over. Its transaction is sent before a deadline or not at all;
// Sweep relies on that. As long as another value of the same change is being uploaded, a timer renews the blob's
// Last-Modified, which moves the deadline.
type pendingBlob struct {
	ctx   context.Context // of the change: ends when the change is over
	blobs *blobs
	blob  *stored
	bound *lease.Bound

	mu       sync.Mutex
	timer    *time.Timer
	failures int
}

// admit ends the change at the blob's deadline, and renews the blob until the change is over.
func admit(ctx context.Context, b *blobs, s *stored) {
	i := &pendingBlob{ctx: ctx, blobs: b, blob: s}
	i.bound = lease.From(ctx).Bound(s.since, b.deadline, "the entity was not written within the Deadline of a blob that was stored for it; repeat the change")
	i.mu.Lock()
	i.timer = time.AfterFunc(b.deadline/2, i.renew)
	i.mu.Unlock()
	context.AfterFunc(ctx, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.timer.Stop()
	})
}

// renew renews the blob's Last-Modified, and sets the timer for the next renewal. If renewals fail until the deadline, the bound ends the
// lease, and the change fails.
func (i *pendingBlob) renew() {
	since := time.Now()
	err := i.blobs.touch(i.ctx, i.blob)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ctx.Err() != nil {
		return
	}
	wait := i.blobs.deadline / 2
	if err != nil {
		wait = backoff.Delay(i.failures)
		i.failures++
	} else {
		i.failures = 0
		i.bound.Move(since)
	}
	i.timer.Reset(wait)
}
