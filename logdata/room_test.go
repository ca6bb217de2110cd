package logdata_test

import (
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

// TestWritesWaitForRoom: a Write into a full buffer waits for the append under way and is accepted then, or hears of its
// failure; a Flush waits for all batches that hold what came before it, and for no others.
func TestWritesWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := storagetest.On(storagetest.AppendBlock, storagetest.Always(storagetest.Before("slow", func() { time.Sleep(time.Minute) })))
		down := storagetest.NewToggle(storagetest.On(storagetest.AppendBlock, storagetest.Always(storagetest.NotSent)))
		faulty, _ := storagetest.Simulator(t, nil).WithRetries(0).Faulty(storagetest.First(down, slow))
		l := newLog(t, faulty, nil)
		w := assert.Must[*logdata.Writer](t)(l.NewWriter(&logdata.WriterOptions{Buffered: true, BufferRecords: 2, BlockBytes: 100, Interval: time.Hour}))
		write := func(text string) <-chan error {
			done := make(chan error, 1)
			go func() { done <- w.Write(t.Context(), record(noon(), text)) }()
			synctest.Wait()
			return done
		}
		began := time.Now()
		one, two, three := write("one, of which a block takes one only: xxxxxxxxxxxxxxxx"), write("two, of which a block takes one only: xxxxxxxxxxxxxxxx"), write("three")
		assert.Check(t, <-one, <-two, <-three)
		assert.Equal(t, time.Since(began), time.Minute, "the third was accepted after")
		assert.Check(t, w.Flush(t.Context()))
		if took := time.Since(began); took != 2*time.Minute && took != 3*time.Minute {
			t.Errorf("all were stored after %v", took)
		}
		assert.Len(t, readDay(t, l), 3, "stored")
		down.Set(true)
		assert.Check(t, <-write("four"))
		refused := func(why string) {
			if err := <-write("refused"); err == nil || errors.Is(err, tables.ErrUnknownOutcome) {
				t.Errorf("%s: %v", why, err)
			}
		}
		refused("the error of the append that failed")
		assert.Check(t, <-write("five"))
		began = time.Now()
		refused("no room until the next append fails")
		if took := time.Since(began); took < time.Hour/2 || took > 2*time.Hour {
			t.Errorf("the Write without room ended after %v", took)
		}
		down.Set(false)
		assert.Check(t, w.Close(t.Context()))
		assert.Len(t, readDay(t, l), 5, "stored")
	})
}

// TestNoBlobTakesIt: where every blob refuses to take more, a Write ends after some of them, with a record that is surely not
// stored.
func TestNoBlobTakesIt(t *testing.T) {
	full := storagetest.NewToggle(storagetest.On(storagetest.AppendBlock, storagetest.Always(storagetest.Refusal{Status: 409, Code: "BlobIsSealed"})))
	faulty, _ := storagetest.Simulator(t, nil).WithRetries(0).Faulty(full)
	l := newLog(t, faulty, nil)
	w := newWriter(t, l, nil)
	full.Set(true)
	err := w.Write(t.Context(), record(noon(), "refused"))
	if harness.WantKind(t, err, tables.ErrRefused); errors.Is(err, tables.ErrUnknownOutcome) || w.Stats().Records != 0 {
		t.Errorf("%v, %+v", err, w.Stats())
	}
	full.Set(false)
	assert.Check(t, w.Write(t.Context(), record(noon(), "stored")))
	wantTexts(t, readDay(t, l), []string{"stored"})
	if blobs := blobsOf(t, l); len(blobs) != 1 { // the others are empty
		t.Errorf("blobs %v", names(blobs))
	}
	for _, err := range newLog(t, storagetest.Simulator(t, nil), nil).Blobs(t.Context(), noon(), noon()) {
		harness.WantKind(t, err, tables.ErrInvalid)
	}
}
