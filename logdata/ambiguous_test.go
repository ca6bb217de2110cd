package logdata_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/logdata"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestLostAnswers: an append whose answer is lost, once or until the writer gives up for the time being, is there once,
// whichever of the attempts were applied.
func TestLostAnswers(t *testing.T) {
	s := storagetest.Open(t)
	for _, fault := range []storagetest.Mode{storagetest.LostAnswer, storagetest.Applied500, storagetest.Before500} {
		for _, times := range []int{1, 100} {
			for name, o := range modes() {
				t.Run(fmt.Sprintf("%v-%d-%s", fault, times, name), func(t *testing.T) {
					down := storagetest.NewToggle(storagetest.On(storagetest.AppendBlock, storagetest.Times(times, fault)))
					faulty, _ := s.WithRetries(0).Faulty(down)
					l := newLog(t, faulty, nil)
					w := newWriter(t, l, o)
					assert.Check(t, w.Write(t.Context(), record(noon(), "before")), w.Flush(t.Context()))
					down.Set(true)
					err := w.Write(t.Context(), record(noon().Add(1), "during"))
					if o != nil {
						assert.Check(t, err)
						err = w.Flush(t.Context())
					}
					down.Set(false)
					if want := times == 100; want != errors.Is(err, tables.ErrUnknownOutcome) || !want && err != nil {
						t.Errorf("the answer is %v", err)
					}
					assert.Check(t, w.Flush(t.Context()))
					assert.Check(t, w.Write(t.Context(), record(noon().Add(2), "after")), w.Close(t.Context()))
					wantTexts(t, readDay(t, l), []string{"before", "during", "after"})
					if blobs := blobsOf(t, l); len(blobs) != 1 || !blobs[0].Final || blobs[0].Records != 3 {
						t.Errorf("blobs %+v", blobs)
					}
				})
			}
		}
	}
}

// TestRefusedBehindAnUnknownAppend: a record that comes while the service is away is surely not stored, and the one before
// stays unknown.
func TestRefusedBehindAnUnknownAppend(t *testing.T) {
	s := storagetest.Open(t)
	down := storagetest.NewToggle(storagetest.On(storagetest.AppendBlock, storagetest.Always(storagetest.Before500)))
	faulty, _ := s.WithRetries(0).Faulty(down)
	l := newLog(t, faulty, nil)
	w := newWriter(t, l, nil)
	assert.Check(t, w.Write(t.Context(), record(noon(), "first")))
	down.Set(true)
	harness.WantKind(t, w.Write(t.Context(), record(noon().Add(1), "unknown")), tables.ErrUnknownOutcome)
	err := w.Write(t.Context(), record(noon().Add(2), "refused"))
	harness.WantKind(t, err, tables.ErrUnavailable)
	if errors.Is(err, tables.ErrUnknownOutcome) {
		t.Errorf("%v, and nothing of it was sent", err)
	}
	harness.WantKind(t, w.Flush(t.Context()), tables.ErrUnknownOutcome)
	harness.WantKind(t, w.Close(t.Context()), tables.ErrUnknownOutcome)
	down.Set(false)
	assert.Check(t, w.Close(t.Context()))
	wantTexts(t, readDay(t, l), []string{"first", "unknown"})
	if stats := w.Stats(); stats.Records != 0 || stats.Bytes != 0 || stats.Failures != 4 || stats.LastError == nil {
		t.Errorf("stats %+v", stats)
	}
}

// TestContextEndsOnTheWay: a Write whose context ends while its record is sent is of unknown outcome; one that waits is
// taken back.
func TestContextEndsOnTheWay(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	sending, goOn := make(chan bool), make(chan bool)
	stalls := storagetest.Before("stall", func() { sending <- true; <-goOn })
	faulty, _ := s.Faulty(storagetest.On(storagetest.AppendBlock, storagetest.Once(storagetest.Always(stalls))))
	l := newLog(t, faulty, nil)
	w := newWriter(t, l, nil)
	ctx, cancel := context.WithCancel(t.Context())
	answers := make(chan error, 2)
	go func() { answers <- w.Write(ctx, record(noon(), "sent")) }()
	<-sending
	waits, giveUp := context.WithCancel(t.Context())
	go func() { answers <- w.Write(waits, record(noon(), "taken back")) }()
	for w.Stats().Records < 2 {
		time.Sleep(time.Millisecond)
	}
	giveUp()
	if err := <-answers; !errors.Is(err, context.Canceled) || errors.Is(err, tables.ErrUnknownOutcome) {
		t.Errorf("the one that waits: %v", err)
	}
	cancel()
	if err := <-answers; !errors.Is(err, context.Canceled) || !errors.Is(err, tables.ErrUnknownOutcome) {
		t.Errorf("the one on its way: %v", err)
	}
	goOn <- true
	assert.Check(t, w.Flush(t.Context()))
	wantTexts(t, readDay(t, l), []string{"sent"})
}

// TestConflictOnABlobNumber: whoever comes second takes another number, also when the answer to the creation was lost.
func TestConflictOnABlobNumber(t *testing.T) {
	s := storagetest.Open(t)
	for _, fault := range []storagetest.Mode{0, storagetest.LostAnswer, storagetest.Applied500, storagetest.Before500} {
		t.Run(fault.String(), func(t *testing.T) {
			name := newContainer(t, s)
			l := assert.Must[*logdata.Log](t)(openLog(s, name, nil))
			concurrent := newWriter(t, l, nil)
			assert.Check(t, concurrent.Write(t.Context(), record(noon(), "concurrent writer")))
			faulty, _ := s.WithRetries(0).Faulty(storagetest.On(storagetest.PutBlob, storagetest.Times(2, fault)))
			w := newWriter(t, assert.Must[*logdata.Log](t)(openLog(faulty, name, nil)), nil)
			assert.Check(t, w.Write(t.Context(), record(noon().Add(1), "w")), concurrent.Write(t.Context(), record(noon().Add(2), "concurrent writer")))
			wantTexts(t, readDay(t, l), []string{"concurrent writer", "w", "concurrent writer"})
			if blobs := blobsOf(t, l); len(blobs) != 2 {
				t.Errorf("blobs %v", names(blobs))
			}
		})
	}
	// Alone, the blob of the lost answer is known again.
	for _, fault := range []storagetest.Mode{storagetest.LostAnswer, storagetest.Applied500} {
		faulty, _ := s.WithRetries(0).Faulty(storagetest.On(storagetest.PutBlob, storagetest.Once(fault)))
		l := newLog(t, s, nil)
		lost := newLog(t, faulty, nil)
		w := newWriter(t, lost, nil)
		assert.Check(t, w.Write(t.Context(), record(noon(), "x")), newWriter(t, l, nil).Write(t.Context(), record(noon(), "x")))
		assert.Slices(t, names(blobsOf(t, lost)), []string{"web/2026/11/20/1200/000001.log"}, "after %v", fault)
	}
}

// TestBlobsThatTakeNoMore: a blob that is full, or sealed, is left for another one; not before it is known whether the
// append whose answer was lost is in it.
func TestBlobsThatTakeNoMore(t *testing.T) {
	s := storagetest.Open(t)
	for _, code := range []string{"BlockCountExceedsLimit", "BlobIsSealed"} {
		for _, first := range []storagetest.Mode{0, storagetest.LostAnswer, storagetest.Before500} {
			t.Run(code+"-"+first.String(), func(t *testing.T) {
				full := storagetest.Refusal{Status: 409, Code: code}
				down := storagetest.NewToggle(storagetest.On(storagetest.AppendBlock, storagetest.First(
					storagetest.Once(first), storagetest.Once(storagetest.Always(full)))))
				faulty, _ := s.WithRetries(0).Faulty(down)
				l := newLog(t, faulty, nil)
				w := newWriter(t, l, nil)
				assert.Check(t, w.Write(t.Context(), record(noon(), "one")))
				down.Set(true)
				assert.Check(t, w.Write(t.Context(), record(noon().Add(1), "two")), w.Write(t.Context(), record(noon().Add(2), "three")), w.Close(t.Context()))
				wantTexts(t, readDay(t, l), []string{"one", "two", "three"})
				want := 2
				if first == storagetest.LostAnswer {
					want = 1 // it was in the blob; what comes next is not refused any more
				}
				if blobs := blobsOf(t, l); len(blobs) != want {
					t.Errorf("blobs %v", names(blobs))
				}
			})
		}
	}
}

// TestFullBlobs: a blob that takes no more blocks than the service allows is followed by another one, also when the writer
// has not counted right.
func TestFullBlobs(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	name := newContainer(t, s)
	l := assert.Must[*logdata.Log](t)(openLog(s, name, nil))
	w := newWriter(t, l, nil)
	n := 50_002
	if harness.Shortened() {
		n = 10
		t.Log("10 appends only, because of -short or -race")
	}
	for range n {
		assert.Check(t, w.Write(t.Context(), record(noon(), "")))
	}
	assert.Check(t, w.Close(t.Context()))
	blobs, records := blobsOf(t, l), int64(0)
	for _, b := range blobs {
		records += b.Records
	}
	if records != int64(n) || len(blobs) != (n+49_999)/50_000 || n > 50_000 && blobs[0].Records != 50_000 {
		t.Errorf("%d records in %+v", records, blobs)
	}
}
