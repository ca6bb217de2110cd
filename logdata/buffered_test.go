package logdata_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/logdata"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// bubble runs a test in which time is the test's own, with a log on a simulator whose appends fail while down is on.
func bubble(t *testing.T, test func(t *testing.T, l *logdata.Log, down *storagetest.Toggle)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		down := storagetest.NewToggle(storagetest.On(storagetest.AppendBlock, storagetest.Always(storagetest.NotSent)))
		faulty, _ := storagetest.Simulator(t, nil).WithRetries(0).Faulty(down)
		test(t, newLog(t, faulty, nil), down)
	})
}

// TestIntervalBoundsTheLoss: a buffered record is stored when its Interval is over, without any other call; so a crash
// loses nothing that is older.
func TestIntervalBoundsTheLoss(t *testing.T) {
	bubble(t, func(t *testing.T, l *logdata.Log, _ *storagetest.Toggle) {
		const interval = 3 * time.Second
		w := newWriter(t, l, &logdata.WriterOptions{Buffered: true, Interval: interval})
		for i := range 3 { // one a second
			assert.Check(t, w.Write(t.Context(), record(noon().Add(time.Duration(i)), fmt.Sprint(i))))
			time.Sleep(time.Second - 1)
			synctest.Wait()
			assert.Len(t, readDay(t, l), 0, "before its interval is over")
			time.Sleep(time.Nanosecond)
		}
		synctest.Wait()
		if got := readDay(t, l); len(got) != 3 { // the first one's interval is over, and takes all with it
			t.Errorf("after %v: %q", interval, got)
		}
		assert.Check(t, w.Write(t.Context(), record(noon().Add(5), "5")))
		time.Sleep(interval - 1)
		synctest.Wait()
		assert.Len(t, readDay(t, l), 3, "before its interval is over")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if got := readDay(t, l); len(got) != 4 || w.Stats().Records != 0 {
			t.Errorf("when its interval is over: %q, %+v", got, w.Stats())
		}
	})
}

// TestBufferBoundsTheLoss: half of the buffer is sent at once, and no more than the buffer is ever in memory; a Write
// without room waits, for as long as its context allows.
func TestBufferBoundsTheLoss(t *testing.T) {
	for name, o := range map[string]logdata.WriterOptions{
		"records": {BufferRecords: 10}, "bytes": {BufferBytes: 10 * 55},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, l *logdata.Log, down *storagetest.Toggle) {
				o.Buffered, o.Interval = true, time.Hour
				w := newWriter(t, l, &o)
				for i := range 5 {
					assert.Check(t, w.Write(t.Context(), record(noon(), fmt.Sprintf("%010d", i))))
				}
				synctest.Wait()
				assert.Equal(t, len(readDay(t, l)), 5, "half of the buffer: records are stored")
				down.Set(true)
				accepted := 0
				for ; accepted < 100; accepted++ {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					err := w.Write(ctx, record(noon(), "0123456789"))
					cancel()
					if stats := w.Stats(); stats.Records > 10 || stats.Bytes > 10*55 {
						t.Fatalf("in memory: %+v", stats)
					}
					if errors.Is(err, context.DeadlineExceeded) {
						break
					}
					if err != nil && errors.Is(err, tables.ErrUnknownOutcome) {
						t.Fatal(err)
					}
					if err != nil {
						accepted--
					}
					synctest.Wait()
				}
				assert.Equal(t, accepted, 10, "records were accepted while the service was away")
				down.Set(false)
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				assert.Equal(t, len(readDay(t, l)), 15, "records when the service is back")
			})
		})
	}
}

// TestErrorsInTheBackground are returned by the next Write, Flush or Close, once, and the records kept.
func TestErrorsInTheBackground(t *testing.T) {
	bubble(t, func(t *testing.T, l *logdata.Log, down *storagetest.Toggle) {
		w := newWriter(t, l, &logdata.WriterOptions{Buffered: true})
		down.Set(true)
		assert.Check(t, w.Write(t.Context(), record(noon(), "kept")))
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		assert.ErrorContains(t, w.Write(t.Context(), record(noon().Add(1), "refused")), "connection refused", "the next Write")
		assert.Check(t, w.Write(t.Context(), record(noon().Add(2), "accepted")))
		assert.Error(t, w.Flush(t.Context()), "Flush has no error")
		assert.Error(t, w.Close(t.Context()), "Close has no error")
		down.Set(false)
		assert.Check(t, w.Close(t.Context()))
		wantTexts(t, readDay(t, l), []string{"kept", "accepted"})
	})
}

// TestMadeGood: an error in the background that was made good meanwhile is nobody's trouble; Stats remember it.
func TestMadeGood(t *testing.T) {
	bubble(t, func(t *testing.T, l *logdata.Log, down *storagetest.Toggle) {
		w := newWriter(t, l, &logdata.WriterOptions{Buffered: true})
		down.Set(true)
		assert.Check(t, w.Write(t.Context(), record(noon(), "kept")))
		time.Sleep(1100 * time.Millisecond)
		down.Set(false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Check(t, w.Write(t.Context(), record(noon().Add(1), "next")))
		if stats := w.Stats(); stats.Failures != 1 || stats.LastError == nil || stats.Records != 1 {
			t.Errorf("stats %+v", stats)
		}
		assert.Check(t, w.Close(t.Context()))
		wantTexts(t, readDay(t, l), []string{"kept", "next"})
	})
}

// TestDurableRecordOfUnknownOutcomeIsStored in the background, too, if nobody asks.
func TestDurableRecordOfUnknownOutcomeIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storagetest.Simulator(t, nil)
		down := storagetest.NewToggle(storagetest.On(storagetest.AppendBlock, storagetest.Always(storagetest.Before500)))
		down.Set(true)
		faulty, _ := s.WithRetries(0).Faulty(down)
		l := newLog(t, faulty, nil)
		w := newWriter(t, l, nil)
		harness.WantKind(t, w.Write(t.Context(), record(noon(), "unknown")), tables.ErrUnknownOutcome)
		down.Set(false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		wantTexts(t, readDay(t, l), []string{"unknown"})
	})
}

// TestCloseThatFails leaves what it could not store for the next Close, and finishes metadata then.
func TestCloseThatFails(t *testing.T) {
	s := storagetest.Open(t)
	down := storagetest.NewToggle(storagetest.On(storagetest.SetBlobMetadata, storagetest.Always(storagetest.Before500)))
	down.Set(true)
	faulty, _ := s.WithRetries(0).Faulty(down)
	l := newLog(t, faulty, nil)
	w := newWriter(t, l, &logdata.WriterOptions{BlobAppends: 1})
	assert.Check(t, w.Write(t.Context(), record(noon(), "1")), w.Write(t.Context(), record(noon().Add(1), "2"))) // a blob that cannot be made final is no error of theirs
	harness.WantKind(t, w.Close(t.Context()), tables.ErrUnavailable)
	wantTexts(t, readDay(t, l), []string{"1", "2"})
	down.Set(false)
	assert.Check(t, w.Close(t.Context()))
	for _, b := range blobsOf(t, l) {
		if !b.Final {
			t.Errorf("blob %+v", b)
		}
	}
}
