package largeentities_test

import (
	"context"
	"crypto/sha256"
	"io"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// BenchmarkDownload compares Download of 1 GiB, which checks what it reads, with the bare SDK's DownloadStream of the same blob, and
// with one whose caller takes the same SHA-256; and with the hash alone. They take turns, and the best time of each counts, since the
// service runs beside it on the same machine.
func BenchmarkDownload(b *testing.B) {
	size := int64(1 << 30)
	if testing.Short() {
		size = 64 << 20
	}
	ctx := context.Background()
	server := assert.Must[*storagetest.AzuriteServer](b)(storagetest.StartAzurite(ctx, &storagetest.AzuriteOptions{Location: b.TempDir()}))
	defer func() { ok(b, server.Stop()) }()
	p := transferWorld(b, server.Service())
	e := with(1)
	e.Video = largeentities.NewStreamReader(newNoise(size), nil)
	ok(b, p.repo.Insert(ctx, e))
	page, err := p.blobs.NewListBlobsFlatPager(nil).NextPage(ctx)
	ok(b, err)
	blob := p.blobs.NewBlobClient(*page.Segment.BlobItems[0].Name)
	bare := func(w io.Writer) error {
		answer, err := blob.DownloadStream(ctx, nil)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		_, err = io.Copy(w, answer.Body)
		return err
	}
	ways := [...]func() error{
		func() error { return bare(io.Discard) },
		func() error { return bare(sha256.New()) },
		func() error { _, err := io.Copy(sha256.New(), newNoise(size)); return err },
		func() error { _, err := e.Video.Download(ctx, io.Discard, nil); return err },
	}
	best := [len(ways)]time.Duration{}
	for b.Loop() {
		for i, way := range ways {
			began := time.Now()
			ok(b, way())
			if took := time.Since(began); best[i] == 0 || took < best[i] {
				best[i] = took
			}
		}
	}
	ours := best[3].Seconds()
	b.ReportMetric(best[0].Seconds()/ours, "x-bare")
	b.ReportMetric(best[1].Seconds()/ours, "x-bare-hashed")
	b.ReportMetric(best[2].Seconds()/ours, "of-it-hash")
	b.ReportMetric(float64(size)/1e6/ours, "MB/s-best")
}
