package largeentities

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/internal/blobowner"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// ownedBlobs is a container with n blobs of one entity, each of the given size, and pointers to them.
func ownedBlobs(b *testing.B, s *storagetest.Service, n, size int) (*blobs, []*pointer, *storagetest.RequestCounter) {
	b.Helper()
	counter := &storagetest.RequestCounter{}
	options := s.ClientOptions
	options.PerRetryPolicies = append(slices.Clip(options.PerRetryPolicies), counter)
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: options})
	if err != nil {
		b.Fatal(err)
	}
	c := blobstorage.Container(account, s.ContainerName(b))
	if _, err := c.Create(b.Context(), nil); err != nil {
		b.Fatal(err)
	}
	key := tables.Key{Partition: "Sales", Row: "empid_000223"}
	owned := &blobs{container: c, prefix: "Employees/Photo", home: blobowner.Home("contoso", "Employees"), blockSize: 4 << 20, concurrency: 1}
	var all []*pointer
	for range n {
		all = append(all, putOwned(b, c, owned, key, size, len(all)))
	}
	counter.Reset()
	return owned, all, counter
}

func putOwned(b *testing.B, c *container.Client, owned *blobs, key tables.Key, size, number int) *pointer {
	b.Helper()
	content := bytes.Repeat([]byte{byte(number)}, size)
	p := &pointer{of: key, name: entityPrefix(owned.prefix, key) + fmt.Sprintf("ID%06d", number), length: int64(size), contentType: "image/jpeg"}
	p.sha256 = sha256.Sum256(content)
	meta := owned.ownerOf(key).Metadata(map[string]string{metaHash: p.hash()})
	if _, err := c.NewBlockBlobClient(p.name).Upload(b.Context(), streaming.NopCloser(bytes.NewReader(content)), &blockblob.UploadOptions{Metadata: meta}); err != nil {
		b.Fatal(err)
	}
	return p
}

// BenchmarkOwnership measures what the checks of blob ownership cost beside the same requests without them: a read of a value of
// 64 KiB, and the delete of a Stream's blob. They take turns.
func BenchmarkOwnership(b *testing.B) {
	const size, turns = 64 << 10, 200
	s := storagetest.Open(b)
	owned, all, counter := ownedBlobs(b, s, 2*turns+1, size)
	ctx, key := b.Context(), all[0].of
	read := all[2*turns]
	bare := func() error {
		answer, err := owned.container.NewBlobClient(read.name).DownloadStream(ctx, nil)
		if err != nil {
			return err
		}
		body := answer.NewRetryReader(ctx, nil)
		defer body.Close()
		data := make([]byte, size)
		if _, err := io.ReadFull(body, data); err != nil {
			return err
		}
		if sha256.Sum256(data) != read.sha256 {
			return errors.New("other bytes")
		}
		return nil
	}
	ways := [4]func(turn int) error{
		func(int) error { return bare() },
		func(int) error { _, err := owned.load(ctx, read); return err },
		func(turn int) error { return owned.remove(ctx, "Reconcile", all[2*turn].name, "") },
		func(turn int) error { return owned.removeUnread(ctx, "Reconcile", key, all[2*turn+1].name) },
	}
	var took [len(ways)][]time.Duration
	var requests [len(ways)]int
	for turn := range turns {
		for i, way := range ways {
			counter.Reset()
			began := time.Now()
			if err := way(turn); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(began))
			requests[i] += counter.Count()
		}
	}
	median := func(i int) float64 { slices.Sort(took[i]); return float64(took[i][turns/2].Microseconds()) }
	b.ReportMetric(median(0), "µs/read-bare")
	b.ReportMetric(median(1)/median(0), "x-read")
	b.ReportMetric(float64(requests[1]-requests[0])/turns, "more-requests/read")
	b.ReportMetric(median(2), "µs/delete-unchecked")
	b.ReportMetric(median(3)/median(2), "x-delete")
	b.ReportMetric(float64(requests[3]-requests[2])/turns, "more-requests/delete")
	const checks = 200_000
	meta, began := owned.ownerOf(key).Metadata(nil), time.Now()
	for range checks {
		if owner := owned.ownerOf(key); owner.CheckName(read.name) != nil || owner.CheckLabels(read.name, meta) != nil {
			b.Fatal("not its own")
		}
	}
	b.ReportMetric(float64(time.Since(began).Nanoseconds())/checks, "ns/check")
}
