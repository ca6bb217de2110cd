package logdata_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/logdata"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestGivenUpAndThenRefused: a Write whose context ends while its record is sent was told to ask Flush. That the append is
// surely refused then is no reason to drop the record: Flush has no nil before it is stored.
func TestGivenUpAndThenRefused(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	sending, goOn := make(chan bool), make(chan bool)
	stalls := storagetest.On(storagetest.AppendBlock, storagetest.Once(storagetest.InjectorFunc(func(storagetest.Call) storagetest.Fault {
		sending <- true
		<-goOn
		return storagetest.NotSent
	})))
	down := storagetest.NewToggle(storagetest.On(storagetest.AppendBlock, storagetest.Always(storagetest.NotSent)))
	faulty, _ := s.WithRetries(0).Faulty(storagetest.First(stalls, down))
	l := newLog(t, faulty, nil)
	w := newWriter(t, l, &logdata.WriterOptions{Interval: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error, 1)
	go func() { answer <- w.Write(ctx, record(noon(), "mine")) }()
	<-sending
	cancel()
	harness.WantKind(t, <-answer, tables.ErrUnknownOutcome)
	down.Set(true)
	goOn <- true
	for w.Stats().Failures == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := w.Flush(t.Context()); err == nil || errors.Is(err, tables.ErrUnknownOutcome) {
		t.Errorf("Flush of a record that is surely not stored: %v", err)
	}
	assert.Error(t, w.Close(t.Context()), "Close of it is nil")
	if stats := w.Stats(); stats.Records != 1 {
		t.Errorf("stats %+v", stats)
	}
	down.Set(false)
	assert.Check(t, w.Close(t.Context()))
	wantTexts(t, readDay(t, l), []string{"mine"})
}

// TestUnknownThenMovedThenRefused: a record of unknown outcome whose blob takes no more, and which is not in it, stays with
// the writer also where the next blob cannot be made.
func TestUnknownThenMovedThenRefused(t *testing.T) {
	s := storagetest.Open(t)
	lost := storagetest.NewToggle(storagetest.On(storagetest.AppendBlock, storagetest.Always(storagetest.Before500)))
	sealed := storagetest.NewToggle(storagetest.On(storagetest.AppendBlock, storagetest.Always(storagetest.Refusal{Status: 409, Code: "BlobIsSealed"})))
	refused := storagetest.NewToggle(storagetest.On(storagetest.PutBlob, storagetest.Always(storagetest.NotSent)))
	faulty, _ := s.WithRetries(0).Faulty(storagetest.First(lost, sealed, refused))
	l := newLog(t, faulty, nil)
	w := newWriter(t, l, nil)
	assert.Check(t, w.Write(t.Context(), record(noon(), "first")))
	lost.Set(true)
	harness.WantKind(t, w.Write(t.Context(), record(noon().Add(1), "unknown")), tables.ErrUnknownOutcome)
	lost.Set(false)
	sealed.Set(true)
	refused.Set(true)
	if err := w.Flush(t.Context()); err == nil || w.Stats().Records != 1 {
		t.Errorf("Flush is %v, stats %+v", err, w.Stats())
	}
	// One that comes now is its caller's: it is refused, and will not be there.
	if err := w.Write(t.Context(), record(noon().Add(2), "refused")); err == nil || errors.Is(err, tables.ErrUnknownOutcome) || w.Stats().Records != 1 {
		t.Errorf("the next Write: %v, stats %+v", err, w.Stats())
	}
	sealed.Set(false)
	refused.Set(false)
	assert.Check(t, w.Flush(t.Context()))
	wantTexts(t, readDay(t, l), []string{"first", "unknown"})
}

// TestKeptRecordsHoldUpNoOthers: records that the writer has kept, and that cannot be stored now, do not keep those of other
// blobs from being stored, and take no more memory than the buffer has.
func TestKeptRecordsHoldUpNoOthers(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	lost := storagetest.NewToggle(storagetest.On(storagetest.AppendBlock, storagetest.Always(storagetest.Before500)))
	noBlobs := storagetest.NewToggle(storagetest.On(storagetest.PutBlob, storagetest.Always(storagetest.NotSent)))
	full := storagetest.NewToggle(storagetest.On(storagetest.AppendBlock, storagetest.Once(storagetest.Always(storagetest.Refusal{Status: 409, Code: "BlobIsSealed"}))))
	faulty, _ := s.WithRetries(0).Faulty(storagetest.First(lost, full, noBlobs))
	l := newLog(t, faulty, nil)
	w := newWriter(t, l, &logdata.WriterOptions{BufferRecords: 2, Interval: time.Hour})
	next := noon().Add(10 * time.Minute)
	assert.Check(t, w.Write(t.Context(), record(next, "one")), w.Write(t.Context(), record(noon(), "zero")))
	lost.Set(true)
	harness.WantKind(t, w.Write(t.Context(), record(noon().Add(1), "kept")), tables.ErrUnknownOutcome)
	lost.Set(false)
	full.Set(true)
	noBlobs.Set(true)
	assert.Error(t, w.Flush(t.Context()), "Flush is nil")
	for i := range 3 {
		assert.Check(t, w.Write(t.Context(), record(next.Add(time.Duration(i+1)), "more")))
		if stats := w.Stats(); stats.Records != 1 || stats.Failures != 2 {
			t.Errorf("stats %+v", stats)
		}
	}
	noBlobs.Set(false)
	assert.Check(t, w.Flush(t.Context()))
	wantTexts(t, readDay(t, l), []string{"zero", "kept", "one", "more", "more", "more"})
}
