package logdata_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/logdata"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

func modes() map[string]*logdata.WriterOptions {
	return map[string]*logdata.WriterOptions{"durable": nil, "buffered": {Buffered: true}}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for name, o := range modes() {
		t.Run(name, func(t *testing.T) {
			l := newLog(t, storagetest.Open(t), nil)
			w := newWriter(t, l, o)
			texts := []string{"", "plain", "two\nlines\n", "\x1e2026-11-20T12:00:00.000000000Z 1 00000000 x\n", "\x10r\x10\x1e\x1e", "größer\x00\xff", strings.Repeat("\x1e", 5000)}
			for i, text := range texts {
				assert.Check(t, w.Write(t.Context(), record(noon().Add(time.Duration(i)), text)))
			}
			assert.Check(t, w.Flush(t.Context()))
			wantTexts(t, readDay(t, l), texts)
			var times []time.Time
			for r, err := range l.Query(t.Context(), noon(), noon().Add(3), nil) {
				assert.Check(t, err)
				times = append(times, r.Time)
			}
			assert.Slices(t, times, []time.Time{noon(), noon().Add(1), noon().Add(2)}, "times")
			assert.Check(t, w.Close(t.Context()), w.Close(t.Context()))
			harness.WantKind(t, w.Write(t.Context(), record(noon(), "late")), tables.ErrWiring)
			blobs := blobsOf(t, l)
			if len(blobs) != 1 || blobs[0].Name != "web/2026/11/20/1200/000001.log" || !blobs[0].Final || blobs[0].Records != int64(len(texts)) ||
				!blobs[0].First.Equal(noon()) || !blobs[0].Last.Equal(noon().Add(time.Duration(len(texts)-1))) || blobs[0].End != noon().Add(10*time.Minute) {
				t.Errorf("blobs %+v", blobs)
			}
		})
	}
}

// A zero time is now, in whatever zone.
func TestRecordsOfNow(t *testing.T) {
	l := newLog(t, storagetest.Open(t), nil)
	w := newWriter(t, l, nil)
	began := time.Now()
	assert.Check(t, w.Write(t.Context(), logdata.Record{Data: []byte("now")}))
	assert.Check(t, w.Write(t.Context(), record(time.Now().In(time.FixedZone("east", 7200)), "there")))
	wantTexts(t, assert.Must[[]string](t)(read(t.Context(), l, began, time.Now().Add(time.Nanosecond))), []string{"now", "there"})
}

// TestRolls: each limit begins another blob, and the one before is made final.
func TestRolls(t *testing.T) {
	for name, c := range map[string]struct {
		o    logdata.WriterOptions
		step time.Duration
	}{
		"appends": {logdata.WriterOptions{BlobAppends: 3}, 1},
		"bytes":   {logdata.WriterOptions{BlobBytes: 200}, 1},
		"periods": {logdata.WriterOptions{}, 4 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLog(t, storagetest.Open(t), nil)
			w := newWriter(t, l, &c.o)
			texts := numbered("record ", 9)
			for i, text := range texts {
				assert.Check(t, w.Write(t.Context(), record(noon().Add(time.Duration(i)*c.step), text)))
			}
			wantTexts(t, readDay(t, l), texts)
			assert.Check(t, w.Close(t.Context()))
			blobs := blobsOf(t, l)
			records := int64(0)
			for i, b := range blobs {
				records += b.Records
				if !b.Final || i > 0 && !b.First.After(blobs[i-1].Last) {
					t.Errorf("blob %+v", b)
				}
			}
			if len(blobs) < 3 || len(blobs) > 4 || records != 9 {
				t.Errorf("%d blobs of %d records: %v", len(blobs), records, names(blobs))
			}
		})
	}
}

// TestSeveralWriters: writers that share nothing but the prefix never share a blob, and nothing is lost, twice, or out of
// order.
func TestSeveralWriters(t *testing.T) {
	s := storagetest.Open(t)
	l := newLog(t, s, nil)
	const writers, records = 8, 20
	var want []string
	var all sync.WaitGroup
	for n := range writers {
		want = append(want, numbered(fmt.Sprintf("%d/", n), records)...)
		w := newWriter(t, l, &logdata.WriterOptions{Buffered: n%2 == 0, BlobAppends: 7})
		all.Go(func() {
			for i := range records {
				at := noon().Add(time.Duration(i) * time.Minute).Add(time.Duration(n) * time.Second)
				assert.NoError(t, w.Write(t.Context(), record(at, fmt.Sprintf("%d/%d", n, i))))
			}
			assert.NoError(t, w.Close(t.Context()))
		})
	}
	all.Wait()
	got := readDay(t, l)
	var n, i, last int
	for _, text := range got {
		fmt.Sscanf(text, "%d/%d", &n, &i)
		if at := i*60 + n; at < last {
			t.Errorf("%s comes too late", text)
		} else {
			last = at
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	wantTexts(t, got, want)
}

// TestManyAtOnce: records that wait together are stored with one append, and each Write returns when its own is.
func TestManyAtOnce(t *testing.T) {
	s := storagetest.Open(t)
	faulty, counter := harness.CountedService(s)
	l := newLog(t, faulty, nil)
	w := newWriter(t, l, nil)
	counter.Reset()
	const n = 400
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			assert.NoError(t, w.Write(t.Context(), record(noon(), fmt.Sprintf("%03d", i))))
		})
	}
	all.Wait()
	appends := counter.CountOf(storagetest.AppendBlock)
	got := readDay(t, l)
	slices.Sort(got)
	if len(slices.Compact(got)) != n || appends > n {
		t.Errorf("%d records, %d appends", len(got), appends)
	}
	t.Logf("%d records in %d appends", n, appends)
}

// TestLateRecords: a slow source beside a quick one takes one more blob, not one for each record.
func TestLateRecords(t *testing.T) {
	l := newLog(t, storagetest.Open(t), nil)
	w := newWriter(t, l, nil)
	var want []string
	for i := range 20 {
		at := noon().Add(time.Minute + time.Duration(i)*time.Second)
		assert.Check(t, w.Write(t.Context(), record(at, fmt.Sprintf("b%02d", i))), w.Write(t.Context(), record(at.Add(-30*time.Second), fmt.Sprintf("a%02d", i))))
		want = append(want, fmt.Sprintf("a%02d", i))
	}
	for i := range 20 {
		want = append(want, fmt.Sprintf("b%02d", i))
	}
	got := readDay(t, l)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if blobs := blobsOf(t, l); len(blobs) != 2 {
		t.Errorf("blobs %v", names(blobs))
	}
}

// TestRefusedBeforeAnyRequest: bad input makes no request.
func TestRefusedBeforeAnyRequest(t *testing.T) {
	s := storagetest.Open(t)
	faulty, counter := harness.CountedService(s)
	c, err := containerOf(faulty, "nowhere")
	assert.Check(t, err)
	for _, prefix := range []string{"", "/a", "a/", "a//b", "a\x00", `a\b`, "a.", "./a", "\xff", strings.Repeat("a", 901)} {
		harness.WantKind(t, assert.Err(logdata.New(c, prefix, nil)), tables.ErrWiring)
	}
	_, err = logdata.New(nil, "a", nil)
	harness.WantKind(t, err, tables.ErrWiring)
	for _, period := range []time.Duration{-time.Minute, time.Second, 7 * time.Minute, 2 * time.Hour, 90 * time.Second} {
		harness.WantKind(t, assert.Err(logdata.New(c, "a", &logdata.Options{Period: period})), tables.ErrWiring)
	}
	l := assert.Must[*logdata.Log](t)(logdata.New(c, "a", &logdata.Options{Period: time.Minute}))
	for _, o := range []logdata.WriterOptions{{BufferBytes: -1}, {BufferRecords: -1}, {Interval: -1}, {BlobBytes: -1}, {BlobAppends: 50_001}, {BlockBytes: 100<<20 + 1}} {
		harness.WantKind(t, assert.Err(l.NewWriter(&o)), tables.ErrWiring)
	}
	w := newWriter(t, l, nil)
	harness.WantKind(t, w.Write(t.Context(), logdata.Record{Data: make([]byte, 4<<20)}), tables.ErrTooLarge)
	harness.WantKind(t, w.Write(t.Context(), record(noon(), strings.Repeat("\x1e", 2<<20))), tables.ErrTooLarge)
	harness.WantKind(t, w.Write(t.Context(), record(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), "x")), tables.ErrInvalid)
	harness.WantKind(t, w.Write(t.Context(), record(time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), "x")), tables.ErrInvalid)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Write(ended, record(noon(), "x")); !errors.Is(err, context.Canceled) || errors.Is(err, tables.ErrUnknownOutcome) {
		t.Errorf("a Write whose context had ended: %v", err)
	}
	for _, err := range l.Query(t.Context(), noon(), noon(), nil) {
		harness.WantKind(t, err, tables.ErrInvalid)
	}
	for _, err := range l.Query(t.Context(), noon(), noon().Add(1), &logdata.QueryOptions{Concurrency: -1}) {
		harness.WantKind(t, err, tables.ErrWiring)
	}
	for _, err := range l.Blobs(t.Context(), noon().Add(1), noon()) {
		harness.WantKind(t, err, tables.ErrInvalid)
	}
	assert.Check(t, w.Flush(t.Context()), w.Close(t.Context()))
	if n := counter.Count(); n != 0 {
		t.Errorf("%d requests: %v", n, counter.Kinds())
	}
}

// TestContainerIsMissing: the error says so, and the record is surely not stored.
func TestContainerIsMissing(t *testing.T) {
	s := storagetest.Open(t)
	l := assert.Must[*logdata.Log](t)(openLog(s, s.ContainerName(t), nil))
	w := newWriter(t, l, nil)
	err := w.Write(t.Context(), record(noon(), "x"))
	harness.WantKind(t, err, tables.ErrMissingResource)
	if errors.Is(err, tables.ErrUnknownOutcome) {
		t.Error(err)
	}
	assert.ErrorIs(t, assert.Err(read(t.Context(), l, noon(), noon().Add(1))), tables.ErrMissingResource, "a query")
}

// TestDeletedWhileWritten: a blob that is deleted takes its records with it, and no others.
func TestDeletedWhileWritten(t *testing.T) {
	s := storagetest.Open(t)
	name := newContainer(t, s)
	l := assert.Must[*logdata.Log](t)(openLog(s, name, nil))
	w := newWriter(t, l, nil)
	assert.Check(t, w.Write(t.Context(), record(noon(), "gone")))
	c, err := containerOf(s, name)
	assert.Check(t, err)
	assert.Check(t, assert.Err(c.NewBlobClient(blobsOf(t, l)[0].Name).Delete(t.Context(), nil)), w.Write(t.Context(), record(noon().Add(1), "here")))
	wantTexts(t, readDay(t, l), []string{"here"})
	assert.Check(t, assert.Err(c.NewBlobClient(blobsOf(t, l)[0].Name).Delete(t.Context(), nil)), w.Close(t.Context()))
}

// TestNoGoroutineIsLeft: Close ends the writer's, whether its context had ended or not, and a query its own.
func TestNoGoroutineIsLeft(t *testing.T) {
	s := storagetest.Open(t)
	l := newLog(t, s, nil)
	before := goleak.IgnoreCurrent()
	for name, o := range modes() {
		w := assert.Must[*logdata.Writer](t)(l.NewWriter(o))
		for i := range 50 {
			assert.Check(t, w.Write(t.Context(), record(noon().Add(time.Duration(i)*time.Minute), name)))
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := w.Close(ended); err == nil {
			t.Log("closed although the context had ended")
		}
		goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
		assert.Check(t, w.Close(t.Context()))
	}
	from, to := day()
	for range l.Query(t.Context(), from, to, nil) {
		break
	}
	goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}
