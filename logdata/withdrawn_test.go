package logdata_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/logdata"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestFlushOfWhatIsWithdrawn: a Flush that waits for a record whose Write gives up while another request is under way has nothing
// to wait for any more.
func TestFlushOfWhatIsWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := storagetest.Before("slow", func() { time.Sleep(5 * time.Second) })
		faulty, _ := storagetest.Simulator(t, nil).Faulty(storagetest.On(storagetest.SetBlobMetadata, storagetest.Once(storagetest.Always(slow))))
		w := newWriter(t, newLog(t, faulty, nil), &logdata.WriterOptions{BlobAppends: 1})
		assert.Check(t, w.Write(t.Context(), record(noon(), "one")))
		assert.Check(t, w.Write(t.Context(), record(noon(), "two"))) // ends the first blob
		synctest.Wait()                                              // its metadata are under way

		ctx, cancel := context.WithCancel(t.Context())
		written, flushed := make(chan error, 1), make(chan error, 1)
		go func() { written <- w.Write(ctx, record(noon(), "three")) }()
		synctest.Wait()
		go func() { flushed <- w.Flush(t.Context()) }()
		synctest.Wait()
		cancel()
		assert.ErrorIs(t, <-written, context.Canceled, "Write")
		select {
		case err := <-flushed:
			assert.Check(t, err)
		case <-time.After(time.Hour):
			t.Fatal("Flush waits for a record that is gone")
		}
	})
}

// TestCloseSaysWhatEndedIt: its own context, and not the one that it ends the writer's requests by.
func TestCloseSaysWhatEndedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := storagetest.Before("never", func() { time.Sleep(time.Minute) })
		faulty, _ := storagetest.Simulator(t, nil).WithRetries(0).Faulty(storagetest.On(storagetest.AppendBlock, storagetest.Once(storagetest.Always(never))))
		w := newWriter(t, newLog(t, faulty, nil), &logdata.WriterOptions{Buffered: true})
		assert.Check(t, w.Write(t.Context(), record(noon(), "one")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := w.Close(ctx)
		if harness.WantKind(t, err, tables.ErrUnknownOutcome); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close: %v", err)
		}
	})
}
