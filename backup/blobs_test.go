package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/backup"
	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

type pictured struct {
	tables.Meta
	Name  string
	Photo []byte
}

func keyOfPictured(name string) tables.Key { return tables.Key{Partition: "Sales", Row: name} }

// openPictured opens a repository with photos in blobs of a container, and creates what it needs.
func openPictured(t *testing.T, account *tables.Account, table, files, prefix string) (*patterns.Store, *patterns.Repository[pictured], *container.Client) {
	t.Helper()
	store := assert.Must[*patterns.Store](t)(patterns.Open(strings.ToLower(table), &patterns.StoreOptions{Account: account}))
	c := blobstorage.Open(store, files)
	photo := largeentities.NewProperty[pictured]("Photo", c, &largeentities.Options{Prefix: prefix, ContentType: "image/jpeg"})
	repo := assert.Must[*patterns.Repository[pictured]](t)(patterns.NewRepository(store.Table(table), patterns.Schema[pictured]{Key: func(e *pictured) tables.Key { return keyOfPictured(e.Name) }}, photo))
	assert.Check(t, store.Create(t.Context()))
	return store, repo, c
}

// photoOf makes the photo of an employee: some are small, and one has several parts.
func photoOf(i int) []byte {
	data := make([]byte, []int{10, 100_000, 70_000, 9 << 20}[i%4])
	for at := range data {
		data[at] = byte(rand.N(4)) + byte(i)
	}
	return data
}

// TestBlobs: a table with large properties in blobs is backed up with them and restored under another name, into another container; there
// every photo is read, and Verify finds nothing.
func TestBlobs(t *testing.T) {
	account := harness.Account(t)
	s := storagetest.Open(t)
	name, files := newTable(t, account).Name(), s.ContainerName(t)
	_, from, c := openPictured(t, account, name, files, "staff/photos")
	photos := map[string][]byte{}
	for i := range 4 {
		e := &pictured{Name: string(rune('a' + i)), Photo: photoOf(i)}
		photos[e.Name] = bytes.Clone(e.Photo)
		assert.Check(t, from.Insert(t.Context(), e))
	}
	v := opened(t)
	sets := []backup.BlobSet{{Name: "photos", Container: c, Prefix: "staff/photos", Table: from.Table()}}
	if report, err := v.Backup(t.Context(), "full", []*tables.Table{from.Table()}, &backup.Options{Blobs: sets}); err != nil {
		t.Fatal(report, err)
	}
	m := assert.Must[*backup.Manifest](t)(v.Manifest(t.Context(), "full"))
	if len(m.Blobs) != 1 || m.Blobs[0].Name != "photos" || m.Blobs[0].Blobs != 3 || m.Blobs[0].Bytes != 100_000+70_000+9<<20 || m.Blobs[0].Stored*2 > m.Blobs[0].Bytes {
		t.Errorf("%+v", m.Blobs)
	}
	// An incremental backup after a change has the new photo and not the old one.
	e := assert.Must[*pictured](t)(from.Get(t.Context(), keyOfPictured("b")))
	e.Photo = photoOf(2)
	photos["b"] = bytes.Clone(e.Photo)
	assert.Check(t, from.Replace(t.Context(), e))
	assert.Check(t, assert.Err(v.Backup(t.Context(), "next", []*tables.Table{from.Table()}, &backup.Options{Blobs: sets, Base: "full"})))
	assert.Check(t, assert.Err(v.Verify(t.Context(), "next", nil)))

	other, files := newTable(t, account).Name(), files+"2"
	store, to, copied := openPictured(t, account, other, files, "staff/photos")
	sets = []backup.BlobSet{{Name: "photos", Container: copied, Prefix: "staff/photos", Table: to.Table()}}
	targets := []backup.Target{{Name: name, To: to.Table()}}
	if result, err := v.Restore(t.Context(), "next", targets, &backup.Options{Blobs: sets, DryRun: true}); err != nil || result.Blobs != 0 || result.Written != 4 {
		t.Fatal(result, err)
	}
	for _, written := range []int64{3, 0} { // the second time, everything is there
		if result, err := v.Restore(t.Context(), "next", targets, &backup.Options{Blobs: sets}); err != nil || result.Blobs != written {
			t.Fatal(result, err)
		}
	}
	assert.Check(t, harness.Clean(t.Context(), store.Verify, nil))
	for name, photo := range photos {
		if e, err := to.Get(t.Context(), keyOfPictured(name)); err != nil || !bytes.Equal(e.Photo, photo) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A blob that is another one is not overwritten without being told.
	var first string
	for page := copied.NewListBlobsFlatPager(nil); page.More() && first == ""; {
		items := assert.Must[container.ListBlobsFlatResponse](t)(page.NextPage(t.Context()))
		first = *items.Segment.BlobItems[0].Name
	}
	assert.Check(t, assert.Err(copied.NewBlockBlobClient(first).UploadBuffer(t.Context(), []byte("other"), nil)))
	harness.WantKind(t, assert.Err(v.Restore(t.Context(), "next", targets, &backup.Options{Blobs: sets})), tables.ErrExists)
	var found string
	note := func(d backup.Difference) error { found = d.String(); return nil }
	result, err := v.Restore(t.Context(), "next", targets, &backup.Options{Blobs: sets, Existing: backup.SkipExisting, Found: note})
	if want := fmt.Sprintf("different: blob %q of %s", first, sets[0].Name); err != nil || result.Findings != 1 || found != want {
		t.Fatal(result, err, found, want)
	}
	if result, err := v.Restore(t.Context(), "next", targets, &backup.Options{Blobs: sets, Existing: backup.ReplaceExisting}); err != nil || result.Blobs != 1 {
		t.Fatal(result, err)
	}
	assert.Check(t, harness.Clean(t.Context(), store.Verify, nil))
}

// TestBlobThatCannotBeRead: a Restore that cannot read a blob of the destination to its end says so, and does not take it for another blob.
func TestBlobThatCannotBeRead(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var broken error
	account := harness.AccountWith(t, func(o *azcore.ClientOptions) {
		transport := o.Transport
		o.Retry.RetryDelay = time.Microsecond
		o.Transport = harness.Transport(func(req *http.Request) (*http.Response, error) {
			resp, err := transport.Do(req)
			if err == nil && broken != nil && req.Method == http.MethodGet && strings.Contains(req.URL.Path, "/staff/photos/") {
				if broken == context.Canceled {
					cancel()
				}
				resp.Body = cutBody{resp.Body, broken}
			}
			return resp, err
		})
	})
	s := storagetest.Open(t)
	_, from, c := openPictured(t, account, s.TableName(t), s.ContainerName(t), "staff/photos")
	e := &pictured{Name: "a", Photo: bytes.Repeat([]byte("photo"), 40_000)}
	assert.Check(t, from.Insert(t.Context(), e))
	v := opened(t)
	sets := []backup.BlobSet{{Name: "photos", Container: c, Prefix: "staff/photos", Table: from.Table()}}
	targets := []backup.Target{{Name: from.Table().Name(), To: from.Table()}}
	assert.Check(t, assert.Err(v.Backup(t.Context(), "full", []*tables.Table{from.Table()}, &backup.Options{Blobs: sets})))
	if result, err := v.Restore(t.Context(), "full", targets, &backup.Options{Blobs: sets}); err != nil || result.Blobs != 0 || result.Unchanged != 1 {
		t.Fatal(result, err)
	}
	for _, broken = range []error{io.ErrUnexpectedEOF, io.EOF, context.Canceled} {
		found := 0
		_, err := v.Restore(ctx, "full", targets, &backup.Options{Blobs: sets, Existing: backup.SkipExisting, Found: func(backup.Difference) error { found++; return nil }})
		if err == nil || errors.Is(err, tables.ErrExists) || errors.Is(err, context.Canceled) != (broken == context.Canceled) || found != 0 {
			t.Errorf("after %v: %v, %d differences", broken, err, found)
		}
	}
}

// cutBody returns an error instead of the rest of a body.
type cutBody struct {
	io.ReadCloser
	err error
}

func (b cutBody) Read([]byte) (int, error) { return 0, b.err }
