package largeentities_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/race"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// noise gives as many bytes as are left, which repeat, but not with the blocks.
type noise struct {
	left    int64
	pattern []byte
	at      int
}

func newNoise(size int64) *noise {
	pattern, rng := make([]byte, 1<<20+7), rand.New(rand.NewPCG(1, 2))
	for i := range pattern {
		pattern[i] = byte(rng.Uint32())
	}
	return &noise{left: size, pattern: pattern}
}

func (n *noise) Read(p []byte) (int, error) {
	if n.left == 0 {
		return 0, io.EOF
	}
	got := copy(p[:min(int64(len(p)), n.left)], n.pattern[n.at:])
	n.left, n.at = n.left-int64(got), (n.at+got)%len(n.pattern)
	return got, nil
}

// heapGrowth runs do and returns by how much the heap that is in use grew meanwhile, at most, garbage included.
func heapGrowth(do func()) int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, most := int64(m.HeapAlloc), atomic.Int64{}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most.Store(max(most.Load(), int64(m.HeapAlloc)-before))
			}
		}
	}()
	do()
	close(stop)
	<-done
	return most.Load()
}

// heapLimit is what a transfer of any size may add to the heap.
const heapLimit = 16 << 20

// transferWorld has a Stream property with the options that are standard.
func transferWorld(t testing.TB, s *storagetest.Service) *process {
	w := (&world{options: largeentities.Options{Threshold: 32 << 10}}).open(t, s)
	return assert.Must[*process](t)(w.start(s))
}

// TestTransfer: a value goes up and comes down with the right bytes; on a service in another process, in little memory.
func TestTransfer(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	size := int64(32 << 20)
	inMemory := s.Clock != nil
	if inMemory || race.Enabled {
		size = 9<<20 + 13
	}
	p := transferWorld(t, s)
	var sent, received int64
	e := with(1)
	source := newNoise(size)
	e.Video = largeentities.NewStreamReader(source, &largeentities.StreamOptions{Progress: func(n int64) { sent = n }})
	up := heapGrowth(func() { ok(t, p.repo.Insert(ctx, e)) })
	got := assert.Must[*employee](t)(p.repo.Get(ctx, at(1))).Video
	want := sha256.New()
	_, err := io.Copy(want, newNoise(size))
	ok(t, err)
	sum := sha256.New()
	down := heapGrowth(func() {
		_, err = got.Download(ctx, sum, &largeentities.DownloadOptions{Progress: func(n int64) { received = n }})
	})
	ok(t, err)
	if !bytes.Equal(sum.Sum(nil), want.Sum(nil)) || sent != size || received != size || got.Length() != size {
		t.Errorf("%d bytes were sent, %d received, of %d", sent, received, size)
	}
	if stored, known := got.SHA256(); !known || !bytes.Equal(stored[:], want.Sum(nil)) {
		t.Error("the Stream has another hash")
	}
	t.Logf("the heap grew by %.1f MiB up and %.1f MiB down", float64(up)/(1<<20), float64(down)/(1<<20))
	if !inMemory && !race.Enabled && max(up, down) > heapLimit {
		t.Errorf("the heap grew by %d bytes up and %d down, and may grow by %d", up, down, heapLimit)
	}
}

// BenchmarkTransfer compares 1 GiB up and down with the bare SDK's UploadStream and DownloadStream, with the same blocks.
func BenchmarkTransfer(b *testing.B) {
	size := int64(1 << 30)
	if testing.Short() {
		size = 64 << 20
	}
	ctx := context.Background()
	// In memory, Azurite holds half a gigabyte.
	server := assert.Must[*storagetest.AzuriteServer](b)(storagetest.StartAzurite(ctx, &storagetest.AzuriteOptions{Location: b.TempDir()}))
	defer func() { ok(b, server.Stop()) }()
	p := transferWorld(b, server.Service())
	bare := p.blobs.NewBlockBlobClient("bare")
	var ours, theirs [2]time.Duration
	var growth [2]int64
	timed := func(total *time.Duration, do func() error) {
		began := time.Now()
		if err := do(); err != nil {
			b.Fatal(err)
		}
		*total += time.Since(began)
	}
	for b.Loop() {
		timed(&theirs[0], func() error {
			_, err := bare.UploadStream(ctx, newNoise(size), &blockblob.UploadStreamOptions{BlockSize: 2 << 20, Concurrency: 3})
			return err
		})
		timed(&theirs[1], func() error {
			answer, err := bare.DownloadStream(ctx, nil)
			if err != nil {
				return err
			}
			defer answer.Body.Close()
			_, err = io.Copy(io.Discard, answer.Body)
			return err
		})
		_, err := bare.Delete(ctx, nil)
		ok(b, err)
		e := with(1)
		e.Video = largeentities.NewStreamReader(newNoise(size), nil)
		growth[0] = max(growth[0], heapGrowth(func() { timed(&ours[0], func() error { return p.repo.Insert(ctx, e) }) }))
		got := assert.Must[*employee](b)(p.repo.Get(ctx, at(1))).Video
		growth[1] = max(growth[1], heapGrowth(func() {
			timed(&ours[1], func() error {
				_, err := got.Download(ctx, io.Discard, nil)
				return err
			})
		}))
		ok(b, p.repo.Delete(ctx, e))
	}
	b.ReportMetric(theirs[0].Seconds()/ours[0].Seconds(), "x-up")
	b.ReportMetric(theirs[1].Seconds()/ours[1].Seconds(), "x-down")
	b.ReportMetric(float64(growth[0])/(1<<20), "MiB-up")
	b.ReportMetric(float64(growth[1])/(1<<20), "MiB-down")
	b.SetBytes(2 * size)
}

// TestShortStream: a short Stream from a function or a reader is stored in the row, and the caller's Stream can then be read.
func TestShortStream(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	w := (&world{}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	short := []byte("a short text")
	for id, video := range []largeentities.Stream{
		largeentities.NewStreamBytes(short, nil),
		largeentities.NewStreamReader(bytes.NewReader(short), nil),
		largeentities.NewStreamFunc(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(short)), nil }, nil),
	} {
		e := with(id)
		e.Video = video
		ok(t, p.repo.Insert(ctx, e))
		sum, known := e.Video.SHA256()
		if got, err := readAll(ctx, e.Video); err != nil || !bytes.Equal(got, short) || e.Video.InBlob() || e.Video.Length() != int64(len(short)) || !known || sum != sha256.Sum256(short) {
			t.Errorf("%d: %q, %v, in a blob: %v, %d bytes, hash known: %v", id, got, err, e.Video.InBlob(), e.Video.Length(), known)
		}
		e.Note = "again"
		ok(t, p.repo.Replace(ctx, e))
		stored := assert.Must[*employee](t)(p.repo.Get(ctx, at(id)))
		if got, err := readAll(ctx, stored.Video); err != nil || !bytes.Equal(got, short) {
			t.Errorf("%d: stored is %q, %v", id, got, err)
		}
	}
}
