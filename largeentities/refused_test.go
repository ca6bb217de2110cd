package largeentities_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/blobio"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// each calls do for each blob of the world.
func (p *process) each(t *testing.T, do func(*blob.Client) error) {
	t.Helper()
	for b, err := range blobio.List(t.Context(), p.blobs, "", container.ListBlobsInclude{}) {
		assert.Check(t, err)
		assert.Check(t, do(p.blobs.NewBlobClient(*b.Name)))
	}
}

// TestArchivedBlob: a lifecycle rule has moved the blobs to the archive tier. They exist, so that a read says what to do, and Discard
// removes nothing.
func TestArchivedBlob(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	p := assert.Must[*process](t)((&world{}).open(t, s).start(s))
	e := with(1)
	e.Photo, e.Video = large("a"), largeentities.NewStreamBytes(large("b"), nil)
	assert.Check(t, p.repo.Insert(ctx, e))
	tier := func(to blob.AccessTier) {
		p.each(t, func(b *blob.Client) error { _, err := b.SetTier(ctx, to, nil); return err })
	}
	tier(blob.AccessTierArchive)
	refused := func(err error) {
		t.Helper()
		if e := harness.WantKind(t, err, tables.ErrRefused); e.Code != "BlobArchived" || !strings.Contains(err.Error(), "rehydrate it") || strings.Contains(err.Error(), "missing") {
			t.Error(err)
		}
	}
	_, err := p.repo.Get(ctx, at(1))
	refused(err)
	_, err = p.repo.Update(ctx, at(1), func(e *employee) error { e.Note = "second"; return nil })
	refused(err)
	_, err = e.Video.Open(ctx)
	refused(err)
	_, err = e.Video.Download(ctx, io.Discard, &largeentities.DownloadOptions{Concurrency: 2})
	refused(err)
	gone, err := largeentities.Discard(ctx, p.repo, at(1))
	if refused(err); len(gone) != 0 {
		t.Errorf("Discard removed %q", gone)
	}
	tier(blob.AccessTierHot)
	if !harness.OnAzurite(t) { // Azurite rehydrates at once
		_, err = p.repo.Get(ctx, at(1))
		if e := harness.WantKind(t, err, tables.ErrUnavailable); e.Code != "BlobBeingRehydrated" {
			t.Error(err)
		}
		s.Wait(15 * time.Hour)
	}
	if got := assert.Must[*employee](t)(p.repo.Get(ctx, at(1))); string(got.Photo) != string(large("a")) {
		t.Errorf("after the rehydration the photo is %.10q", got.Photo)
	}
}

// TestImmutableBlob: nothing is changed by another writer where a policy refuses an upload, or the delete of the value that was replaced.
func TestImmutableBlob(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	w := (&world{}).open(t, s)
	faulty, _ := s.Faulty(storagetest.On(storagetest.PutBlob, storagetest.Refusal{Status: 409, Code: "BlobImmutableDueToPolicy"}))
	e := with(1)
	e.Photo = large("a")
	err := assert.Must[*process](t)(w.start(faulty)).repo.Insert(ctx, e)
	if harness.WantKind(t, err, tables.ErrRefused); !strings.Contains(err.Error(), "immutability policy") {
		t.Error(err)
	}
	p := assert.Must[*process](t)(w.start(s))
	assert.Check(t, p.repo.Insert(ctx, e))
	p.each(t, func(b *blob.Client) error { _, err := b.SetLegalHold(ctx, true, nil); return err })
	e.Photo = large("b")
	assert.Check(t, p.repo.Replace(ctx, e))
	if got := assert.Must[*employee](t)(p.repo.Get(ctx, at(1))); string(got.Photo) != string(large("b")) {
		t.Errorf("the photo is %.10q", got.Photo)
	}
	blobs := 0
	p.each(t, func(*blob.Client) error { blobs++; return nil })
	if blobs != 2 {
		t.Errorf("%d blobs, want the new one and the one that is held", blobs)
	}
}

// TestSweepOfRefused: Sweep counts each delete that the service refuses as a failure, with its reason, and deletes the others.
func TestSweepOfRefused(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	p := assert.Must[*process](t)((&world{}).open(t, s).start(s))
	keep := map[string]func(*blob.Client) error{
		"LeaseIdMissing": func(b *blob.Client) error {
			_, err := assert.Must[*lease.BlobClient](t)(lease.NewBlobClient(b, nil)).AcquireLease(ctx, -1, nil)
			return err
		},
		"BlobImmutableDueToPolicy": func(b *blob.Client) error {
			_, err := b.SetImmutabilityPolicy(ctx, s.Clock.Now().Add(365*24*time.Hour), nil)
			return err
		},
		"BlobImmutableDueToLegalHold": func(b *blob.Client) error { _, err := b.SetLegalHold(ctx, true, nil); return err },
	}
	for code, hold := range keep {
		e := with(1)
		e.Photo = large("a")
		assert.Check(t, p.repo.Insert(ctx, e))
		p.each(t, hold)
		_, err := p.repo.Table().Client().DeleteEntity(ctx, at(1).Partition, at(1).Row, nil)
		assert.Check(t, err)
		s.Wait(30 * 24 * time.Hour)
		report := assert.Must[largeentities.SweepReport](t)(p.photo.Sweep(ctx, nil))
		if report.Failed != 1 || report.Young != 0 || report.Deleted != 0 {
			t.Errorf("%s: %+v", code, report)
		}
		if e := harness.WantKind(t, report.LastFailure, tables.ErrRefused); e.Code != code {
			t.Errorf("%s: %v", code, report.LastFailure)
		}
		p.each(t, func(b *blob.Client) error {
			_, held := b.SetLegalHold(ctx, false, nil)
			_, immutable := b.DeleteImmutabilityPolicy(ctx, nil)
			_, _ = assert.Must[*lease.BlobClient](t)(lease.NewBlobClient(b, nil)).BreakLease(ctx, nil)
			return errors.Join(held, immutable)
		})
		if report := assert.Must[largeentities.SweepReport](t)(p.photo.Sweep(ctx, nil)); report.Deleted != 1 || report.Failed != 0 {
			t.Errorf("%s, after its end: %+v", code, report)
		}
	}
}

// TestDiscardNeedsTheService: a response without a code, which a gateway can send, is no proof that a blob is gone or damaged.
func TestDiscardNeedsTheService(t *testing.T) {
	for status, kind := range map[int]error{404: tables.ErrUnavailable, 409: tables.ErrUnavailable, 412: tables.ErrUnavailable, 410: tables.ErrGarbled, 416: tables.ErrGarbled} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			ctx, s := t.Context(), storagetest.Simulator(t, nil)
			w := (&world{}).open(t, s)
			e := with(1)
			e.Photo = large("a")
			assert.Check(t, assert.Must[*process](t)(w.start(s)).repo.Insert(ctx, e))
			faulty, _ := s.Faulty(storagetest.On(storagetest.GetBlob, storagetest.Refusal{Status: status}))
			gone, err := largeentities.Discard(ctx, assert.Must[*process](t)(w.start(faulty)).repo, at(1))
			if harness.WantKind(t, err, kind); len(gone) != 0 {
				t.Errorf("Discard removed %q", gone)
			}
			if got := assert.Must[*employee](t)(assert.Must[*process](t)(w.start(s)).repo.Get(ctx, at(1))); string(got.Photo) != string(large("a")) {
				t.Errorf("the photo is %.10q", got.Photo)
			}
		})
	}
}
