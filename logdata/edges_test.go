package logdata_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/logdata"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestBlobThatCannotBeLookedInto: whether an append whose answer was lost is in its blob is not known while the blob cannot be
// read, whatever the next answer to the append is. Nothing else is sent before that, and it is there once.
func TestBlobThatCannotBeLookedInto(t *testing.T) {
	for _, next := range []storagetest.Fault{nil, storagetest.Refusal{Status: 409, Code: "BlobIsSealed"}, storagetest.Refusal{Status: 409, Code: "BlockCountExceedsLimit"}} {
		for _, first := range []storagetest.Mode{storagetest.LostAnswer, storagetest.Before500} {
			t.Run(fmt.Sprint(next, " ", first), func(t *testing.T) {
				s := storagetest.Simulator(t, nil)
				blind := storagetest.NewToggle(storagetest.On(storagetest.GetBlob, storagetest.Always(storagetest.NotSent)))
				then := storagetest.NewToggle(storagetest.On(storagetest.AppendBlock, storagetest.Always(next)))
				lost := storagetest.NewToggle(storagetest.On(storagetest.AppendBlock, storagetest.Once(first)))
				if next == nil { // the position tells
					then = storagetest.NewToggle(storagetest.On(storagetest.AppendBlock, storagetest.Always(storagetest.Refusal{Status: 409, Code: "AppendPositionConditionNotMet"})))
				}
				faulty, _ := s.WithRetries(0).Faulty(storagetest.First(lost, blind, then))
				l := newLog(t, faulty, nil)
				w := newWriter(t, l, nil)
				assert.Check(t, w.Write(t.Context(), record(noon(), "one")))
				lost.Set(true)
				blind.Set(true)
				then.Set(true)
				harness.WantKind(t, w.Write(t.Context(), record(noon().Add(1), "two")), tables.ErrUnknownOutcome)
				if err := w.Write(t.Context(), record(noon().Add(2), "three")); err == nil || errors.Is(err, tables.ErrUnknownOutcome) {
					t.Errorf("a Write behind it: %v", err)
				}
				harness.WantKind(t, w.Flush(t.Context()), tables.ErrUnknownOutcome)
				then.Set(false)
				blind.Set(false)
				assert.Check(t, w.Flush(t.Context()))
				wantTexts(t, readDay(t, l), []string{"one", "two"})
			})
		}
	}
}

// TestManyPeriodsAtOnce: records of more periods than a writer has blobs open, as of a clock that jumps, end the blobs that were
// not used for the longest time. All are read, in order.
func TestManyPeriodsAtOnce(t *testing.T) {
	l := newLog(t, storagetest.Open(t), nil)
	w := newWriter(t, l, nil)
	var want []string
	for _, minutes := range []int{50, 40, 30, 20, 10, 0, 1, 41, 59, 20, 9} {
		at := noon().Add(time.Duration(minutes)*time.Minute + time.Duration(len(want)))
		assert.Check(t, w.Write(t.Context(), record(at, at.Format("15:04.000000000"))))
		want = append(want, at.Format("15:04.000000000"))
	}
	assert.Check(t, w.Close(t.Context()))
	slices.Sort(want)
	wantTexts(t, readDay(t, l), want)
	for _, b := range blobsOf(t, l) {
		if !b.Final {
			t.Errorf("%s is not final", b.Name)
		}
	}
}

// TestTheFirstAndTheLastTime there is are written and read, by ranges that go beyond them.
func TestTheFirstAndTheLastTime(t *testing.T) {
	l := newLog(t, storagetest.Open(t), &logdata.Options{Period: time.Hour})
	w := newWriter(t, l, nil)
	first, last := time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	assert.Check(t, w.Write(t.Context(), record(last, "last")), w.Write(t.Context(), record(first, "first")))
	for _, finished := range []bool{false, true} {
		if finished {
			assert.Check(t, w.Close(t.Context()))
		}
		for _, c := range []struct {
			from, to time.Time
			want     []string
		}{
			{time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC), []string{"first", "last"}},
			{first, first.Add(1), []string{"first"}},
			{last, last.Add(1), []string{"last"}},
			{last, time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC), []string{"last"}},
			{first.Add(1), last, nil},
		} {
			wantTexts(t, assert.Must[[]string](t)(read(t.Context(), l, c.from, c.to)), c.want)
		}
	}
	for range l.Blobs(t.Context(), first, last) {
		break
	}
	for _, err := range l.Blobs(t.Context(), last.AddDate(2, 0, 0), last.AddDate(3, 0, 0)) {
		harness.WantKind(t, err, tables.ErrInvalid)
	}
}

// TestCloseUnderLoad: while many write, Close ends the writer. What a Write was told holds: nil is stored, once; an error is not.
func TestCloseUnderLoad(t *testing.T) {
	for name, o := range modes() {
		t.Run(name, func(t *testing.T) {
			l := newLog(t, storagetest.Open(t), nil)
			w := assert.Must[*logdata.Writer](t)(l.NewWriter(o))
			var all sync.WaitGroup
			var mu sync.Mutex
			var want []string
			var started atomic.Int64
			under := make(chan bool)
			for source := range 8 {
				all.Go(func() {
					for n := 0; ; n++ {
						text := fmt.Sprintf("%d/%d", source, n)
						err := w.Write(t.Context(), record(noon().Add(time.Duration(n)), text))
						if err != nil {
							if !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), "closed") {
								t.Errorf("Write: %v", err)
							}
							return
						}
						mu.Lock()
						want = append(want, text)
						mu.Unlock()
						if started.Add(1) == 64 {
							close(under)
						}
					}
				})
			}
			<-under
			errs := make(chan error, 3)
			for range cap(errs) {
				go func() { errs <- w.Close(t.Context()) }()
			}
			assert.Check(t, <-errs, <-errs, <-errs)
			all.Wait()
			assert.Check(t, w.Flush(t.Context()), w.Close(t.Context()))
			got := readDay(t, l)
			slices.Sort(got)
			slices.Sort(want)
			wantTexts(t, got, want)
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			assert.Check(t, w.Close(ended))
			harness.WantKind(t, w.Write(t.Context(), record(noon(), "late")), tables.ErrWiring)
		})
	}
}

// TestRecordsOfEverySize, and what is at the limit: an empty one, one of marks only, and one byte too many.
func TestRecordsOfEverySize(t *testing.T) {
	const block = 4 << 10
	s := storagetest.Open(t)
	for name, mark := range map[string]string{"plain": "x", "marks": "\x1e", "escapes": "\x10"} {
		t.Run(name, func(t *testing.T) {
			l := newLog(t, s, nil)
			w := newWriter(t, l, &logdata.WriterOptions{BlockBytes: block})
			largest := block
			for ; largest > 0; largest-- {
				err := w.Write(t.Context(), record(noon().Add(2), strings.Repeat(mark, largest)))
				if err == nil {
					break
				}
				harness.WantKind(t, err, tables.ErrTooLarge)
			}
			assert.Check(t, w.Write(t.Context(), logdata.Record{Time: noon(), Data: nil}), w.Write(t.Context(), record(noon().Add(1), mark)))
			const rest = 47 // mark, time, length, checksum, spaces and line feed
			if want := map[string]int{"plain": block - rest, "marks": (block - rest) / 2, "escapes": (block - rest) / 2}[name]; largest != want {
				t.Errorf("the largest has %d bytes, want %d", largest, want)
			}
			wantTexts(t, readDay(t, l), []string{"", mark, strings.Repeat(mark, largest)})
		})
	}
}

// TestBlobOfAnotherWriterUnderTheName: when a blob was deleted, and another writer has made one of the same name, its first writer
// does not write to it, and says nothing of it: by metadata that end before what that one writes, records would not be found.
func TestBlobOfAnotherWriterUnderTheName(t *testing.T) {
	for _, lost := range []bool{false, true} { // a lost answer tells no ETag
		t.Run(fmt.Sprint("lost answer ", lost), func(t *testing.T) {
			s := storagetest.Open(t)
			name := newContainer(t, s)
			loses := storagetest.NewToggle(storagetest.On(storagetest.AppendBlock, storagetest.Once(storagetest.LostAnswer)))
			loses.Set(lost)
			faulty, _ := s.WithRetries(0).Faulty(loses)
			first := assert.Must[*logdata.Writer](t)(assert.Must[*logdata.Log](t)(openLog(faulty, name, nil)).NewWriter(nil))
			assert.Check(t, first.Write(t.Context(), record(noon(), "was")))
			l := assert.Must[*logdata.Log](t)(openLog(s, name, nil))
			blobs := blobsOf(t, l)
			_, err := assert.Must[*container.Client](t)(containerOf(s, name)).NewBlobClient(blobs[0].Name).Delete(t.Context(), nil)
			assert.Check(t, err)
			second := newWriter(t, l, nil)
			assert.Check(t, second.Write(t.Context(), record(noon().Add(time.Minute), "one")))
			if again := blobsOf(t, l); len(again) != 1 || again[0].Name != blobs[0].Name {
				t.Fatalf("blobs %v: the test shows nothing", names(again))
			}
			assert.Check(t, first.Write(t.Context(), record(noon().Add(2*time.Minute), "own"))) // for a position at which that blob ends, too
			assert.Check(t, first.Close(t.Context()), second.Write(t.Context(), record(noon().Add(5*time.Minute), "two")))
			wantTexts(t, assert.Must[[]string](t)(read(t.Context(), l, noon().Add(time.Second), noon().Add(time.Hour))), []string{"one", "own", "two"})
			if again := blobsOf(t, l); len(again) != 2 {
				t.Errorf("blobs %v", names(again))
			}
		})
	}
}
