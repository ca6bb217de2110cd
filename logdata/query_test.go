package logdata_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/logdata"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// counted is a log whose requests are counted.
func counted(t *testing.T, s *storagetest.Service, containerName string) (*logdata.Log, *storagetest.RequestCounter) {
	t.Helper()
	faulty, counter := harness.CountedService(s)
	return assert.Must[*logdata.Log](t)(openLog(faulty, containerName, nil)), counter
}

// aDay writes a record a minute, and by another writer from 15:00 up to 17:00 another one.
func aDay(t *testing.T, l *logdata.Log) {
	t.Helper()
	from, to := day()
	for n, hours := range [][2]int{{0, 24}, {15, 17}} {
		w := newWriter(t, l, &logdata.WriterOptions{Buffered: true})
		for at := from; at.Before(to); at = at.Add(time.Minute) {
			if at.Hour() >= hours[0] && at.Hour() < hours[1] {
				assert.Check(t, w.Write(t.Context(), record(at.Add(time.Duration(n)), fmt.Sprintf("%s/%d", at.Format("15:04"), n))))
			}
		}
		assert.Check(t, w.Close(t.Context()))
	}
}

// TestQueryTouchesOnlyWhatCanHoldTheRange counts the requests of queries of a day with 144 blobs of one writer, and 12 of
// another.
func TestQueryTouchesOnlyWhatCanHoldTheRange(t *testing.T) {
	s := storagetest.Open(t)
	name := newContainer(t, s)
	l, counter := counted(t, s, name)
	aDay(t, l)
	const list, get = storagetest.ListBlobs, storagetest.GetBlob
	for _, c := range []struct {
		name            string
		from, to        time.Duration
		records         int
		lists, gets     int
		parallel, taken int
	}{
		{"two minutes", 15*time.Hour + 4*time.Minute, 15*time.Hour + 6*time.Minute, 4, 1, 2, 0, 0},
		{"two minutes over a period's end", 15*time.Hour + 9*time.Minute, 15*time.Hour + 11*time.Minute, 4, 1, 4, 0, 0},
		{"two minutes over an hour's end", 15*time.Hour + 59*time.Minute, 16*time.Hour + time.Minute, 4, 2, 4, 0, 0},
		{"between two records", 15*time.Hour + 9*time.Minute + time.Second, 15*time.Hour + 9*time.Minute + 30*time.Second, 0, 1, 0, 0, 0},
		{"an hour", 15 * time.Hour, 16 * time.Hour, 120, 1, 12, 0, 0},
		{"the day", 0, 24 * time.Hour, 1560, 1, 156, 0, 0},
		{"a week", -6 * 24 * time.Hour, 24 * time.Hour, 1560, 7, 156, 0, 0},
		{"one at once", 15 * time.Hour, 16 * time.Hour, 120, 1, 12, 1, 0},
		// The first blob has them; two are read ahead.
		{"early stop", 0, 24 * time.Hour, 3, 1, 3, 2, 3},
	} {
		counter.Reset()
		from, _ := day()
		n := 0
		var last time.Time
		for r, err := range l.Query(t.Context(), from.Add(c.from), from.Add(c.to), &logdata.QueryOptions{Concurrency: c.parallel}) {
			assert.Check(t, err)
			if r.Time.Before(last) || r.Time.Before(from.Add(c.from)) || !r.Time.Before(from.Add(c.to)) {
				t.Fatalf("%s: %v comes after %v", c.name, r.Time, last)
			}
			if n, last = n+1, r.Time; n == c.taken {
				break
			}
		}
		lists, gets := counter.CountOf(list), counter.CountOf(get)
		if n != c.records || lists != c.lists || gets > c.gets || c.taken == 0 && gets != c.gets || counter.Count() != lists+gets {
			t.Errorf("%s: %d records, %v, want %d, %d lists, %d gets", c.name, n, counter.Kinds(), c.records, c.lists, c.gets)
		}
	}
}

// TestRequestCounts is what writers cost.
func TestRequestCounts(t *testing.T) {
	s := storagetest.Open(t)
	l, counter := counted(t, s, newContainer(t, s))
	want := func(what string, kinds map[storagetest.Kind]int) {
		t.Helper()
		if got := counter.Kinds(); fmt.Sprint(got) != fmt.Sprint(kinds) {
			t.Errorf("%s: %v, want %v", what, got, kinds)
		}
		counter.Reset()
	}
	type kinds = map[storagetest.Kind]int
	durable := newWriter(t, l, nil)
	want("NewWriter", kinds{})
	assert.Check(t, durable.Write(t.Context(), record(noon(), "a")))
	want("the first Write", kinds{storagetest.PutBlob: 1, storagetest.AppendBlock: 1})
	for range 5 {
		assert.Check(t, durable.Write(t.Context(), record(noon(), "a")))
	}
	want("5 Writes", kinds{storagetest.AppendBlock: 5})
	buffered := newWriter(t, l, &logdata.WriterOptions{Buffered: true, Interval: time.Hour})
	for range 1000 {
		assert.Check(t, buffered.Write(t.Context(), record(noon(), "a")))
	}
	want("1,000 buffered Writes", kinds{})
	assert.Check(t, buffered.Flush(t.Context()))
	want("Flush, with a concurrent writer's blob", kinds{storagetest.PutBlob: 2, storagetest.ListBlobs: 1, storagetest.AppendBlock: 1})
	assert.Check(t, buffered.Flush(t.Context()))
	want("Flush of nothing", kinds{})
	assert.Check(t, buffered.Close(t.Context()))
	want("Close", kinds{storagetest.SetBlobMetadata: 1})
	assert.Check(t, buffered.Close(t.Context()))
	want("Close again", kinds{})
}

// TestManySourcesInOrder: more blobs than are read at once, of several chunks each, are merged in the order of time.
func TestManySourcesInOrder(t *testing.T) {
	l := newLog(t, storagetest.Open(t), nil)
	filler := bytes.Repeat([]byte("x"), 100<<10)
	const writers, records = 5, 12
	for n := range writers {
		w := newWriter(t, l, &logdata.WriterOptions{Buffered: true})
		for i := range records {
			data := append([]byte(fmt.Sprintf("%02d-%d ", i, n)), filler...)
			assert.Check(t, w.Write(t.Context(), logdata.Record{Time: noon().Add(time.Duration(i*writers+n) * time.Millisecond), Data: data}))
		}
		assert.Check(t, w.Close(t.Context()))
	}
	i := 0
	for r, err := range l.Query(t.Context(), noon(), noon().Add(time.Hour), &logdata.QueryOptions{Concurrency: 2}) {
		assert.Check(t, err)
		if want := fmt.Sprintf("%02d-%d ", i/writers, i%writers); string(r.Data[:len(want)]) != want || len(r.Data) != len(want)+len(filler) {
			t.Fatalf("record %d is %q", i, r.Data[:8])
		}
		i++
	}
	assert.Equal(t, i, writers*records, "records")
}

// appendRaw puts bytes at the end of a blob, as neither a writer nor the service would.
func appendRaw(t *testing.T, c *container.Client, name string, data []byte) {
	t.Helper()
	assert.Check(t, assert.Err(c.NewAppendBlobClient(name).AppendBlock(t.Context(), streaming.NopCloser(bytes.NewReader(data)), nil)))
}

func contentOf(t *testing.T, c *container.Client, name string) []byte {
	t.Helper()
	answer, err := c.NewBlobClient(name).DownloadStream(t.Context(), nil)
	assert.Check(t, err)
	defer answer.Body.Close()
	return assert.Must[[]byte](t)(io.ReadAll(answer.Body))
}

// TestTornTailIsReadPast: what a crash has cut off is told and passed over; the writer that finds foreign bytes in its blob
// goes to another, and loses nothing.
func TestTornTailIsReadPast(t *testing.T) {
	s := storagetest.Open(t)
	name := newContainer(t, s)
	l := assert.Must[*logdata.Log](t)(openLog(s, name, nil))
	c := assert.Must[*container.Client](t)(containerOf(s, name))
	w := newWriter(t, l, nil)
	assert.Check(t, w.Write(t.Context(), record(noon(), "one")), w.Write(t.Context(), record(noon().Add(2), "two")))
	at := blobsOf(t, l)[0].Name
	whole := contentOf(t, c, at)
	appendRaw(t, c, at, whole[:len(whole)-5])
	assert.Check(t, w.Write(t.Context(), record(noon().Add(3), "three")))
	appendRaw(t, c, at, []byte("\x1e"))
	var got []string
	var damage []logdata.Damage
	for r, err := range l.Query(t.Context(), noon(), noon().Add(time.Hour), &logdata.QueryOptions{Damaged: func(d logdata.Damage) { damage = append(damage, d) }}) {
		assert.Check(t, err)
		got = append(got, string(r.Data))
	}
	wantTexts(t, got, []string{"one", "one", "two", "three"}) // the first one twice: it is whole in what was copied
	n := int64(len(whole))
	if want := []logdata.Damage{{Blob: at, Offset: n + n/2, Bytes: n - 5 - n/2 + 1}}; !slices.Equal(damage, want) {
		t.Errorf("damage %v, want %v", damage, want)
	}
	if blobs := blobsOf(t, l); len(blobs) != 2 || blobs[0].Final {
		t.Errorf("blobs %+v", blobs)
	}
	texts := 0
	for r, err := range logdata.ReadRecords(bytes.NewReader(contentOf(t, c, at))) {
		assert.Check(t, err)
		texts += len(r.Data)
	}
	assert.Equal(t, texts, 9, "the downloaded blob: bytes of data")
}

// TestReadWhileWritten: a query of a blob that is being written has all records that were stored when it began.
func TestReadWhileWritten(t *testing.T) {
	l := newLog(t, storagetest.Open(t), nil)
	w := newWriter(t, l, nil)
	for i := range 30 {
		assert.Check(t, w.Write(t.Context(), record(noon().Add(time.Duration(i)), fmt.Sprint(i))))
		if got := readDay(t, l); len(got) != i+1 {
			t.Fatalf("%d records after %d", len(got), i+1)
		}
	}
	for r, err := range l.Query(t.Context(), noon(), noon().Add(time.Hour), nil) {
		assert.Check(t, err, w.Write(t.Context(), record(noon().Add(time.Minute), string(r.Data))))
	}
	assert.Equal(t, len(readDay(t, l)), 60, "records")
}

// TestNotFinalIsReadAsWideAsItMayBe: the metadata of a blob whose writer has died say where it begins, and no more.
func TestNotFinalIsReadAsWideAsItMayBe(t *testing.T) {
	s := storagetest.Open(t)
	name := newContainer(t, s)
	l, counter := counted(t, s, name)
	w := assert.Must[*logdata.Writer](t)(l.NewWriter(nil))
	assert.Check(t, w.Write(t.Context(), record(noon().Add(5*time.Minute), "five")), w.Write(t.Context(), record(noon().Add(5*time.Minute-time.Second), "late")))
	b := blobsOf(t, l)
	if len(b) != 1 || b[0].Final || !b[0].First.Equal(noon().Add(5*time.Minute-2*time.Second)) {
		t.Fatalf("blobs %+v", b)
	}
	for _, c := range []struct {
		from, to time.Duration
		gets     int
		want     []string
	}{
		{0, 4 * time.Minute, 0, nil},
		{0, 5 * time.Minute, 1, []string{"late"}},
		{6 * time.Minute, 7 * time.Minute, 1, nil}, // may be there
		{10 * time.Minute, 11 * time.Minute, 0, nil},
	} {
		counter.Reset()
		wantTexts(t, assert.Must[[]string](t)(read(t.Context(), l, noon().Add(c.from), noon().Add(c.to))), c.want)
		assert.Equal(t, counter.CountOf(storagetest.GetBlob), c.gets, "%v up to %v: requests", c.from, c.to)
	}
	assert.Check(t, w.Close(t.Context()))
	counter.Reset()
	wantTexts(t, assert.Must[[]string](t)(read(t.Context(), l, noon().Add(6*time.Minute), noon().Add(7*time.Minute))), nil)
	assert.Equal(t, counter.CountOf(storagetest.GetBlob), 0, "requests although the blob is final")
}

// TestOrder: whatever the times of the records, and whoever has written them, a query of any range has them all, in order.
func TestOrder(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	rapid.Check(t, func(r *rapid.T) {
		l := newLog(t, s, &logdata.Options{Period: rapid.SampledFrom([]time.Duration{time.Minute, 20 * time.Minute, time.Hour}).Draw(r, "period")})
		var all []time.Time
		for n := range rapid.IntRange(1, 3).Draw(r, "writers") {
			w := assert.Must[*logdata.Writer](t)(l.NewWriter(&logdata.WriterOptions{Buffered: n == 1, BlobAppends: 4}))
			at := noon()
			for range rapid.IntRange(1, 15).Draw(r, "records") {
				at = at.Add(time.Duration(rapid.Int64Range(-int64(3*time.Second), int64(9*time.Second)).Draw(r, "step")))
				if rapid.IntRange(0, 9).Draw(r, "jump") == 0 {
					at = noon().Add(time.Duration(rapid.Int64Range(0, int64(3*time.Hour)).Draw(r, "to")))
				}
				all = append(all, at)
				assert.Check(t, w.Write(t.Context(), record(at, "")))
			}
			ended, cancel := context.WithCancel(t.Context())
			if n == 2 {
				cancel() // dies with its blobs as they are
				if err := w.Close(ended); err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
			cancel()
			if n < 2 {
				assert.Check(t, w.Close(t.Context()))
			}
		}
		slices.SortFunc(all, time.Time.Compare)
		from := noon().Add(time.Duration(rapid.Int64Range(-int64(time.Hour), int64(2*time.Hour)).Draw(r, "from")))
		to := from.Add(1 + time.Duration(rapid.Int64Range(0, int64(3*time.Hour)).Draw(r, "length")))
		var got []time.Time
		for record, err := range l.Query(t.Context(), from, to, &logdata.QueryOptions{Concurrency: rapid.IntRange(0, 3).Draw(r, "parallel")}) {
			assert.Check(t, err)
			got = append(got, record.Time)
		}
		want := slices.DeleteFunc(all, func(at time.Time) bool { return at.Before(from) || !at.Before(to) })
		if !slices.EqualFunc(got, want, time.Time.Equal) {
			r.Fatalf("from %v up to %v: %v, want %v", from, to, got, want)
		}
	})
}

// TestForeignBlobs: others that share the prefix are left alone, a blob without metadata is read, one of a later format is
// refused.
func TestForeignBlobs(t *testing.T) {
	s := storagetest.Open(t)
	name := newContainer(t, s)
	l := assert.Must[*logdata.Log](t)(openLog(s, name, nil))
	c := assert.Must[*container.Client](t)(containerOf(s, name))
	w := newWriter(t, l, nil)
	assert.Check(t, w.Write(t.Context(), record(noon(), "one")))
	content := contentOf(t, c, blobsOf(t, l)[0].Name)
	put := func(at string, metadata map[string]*string) {
		assert.Check(t, assert.Err(c.NewAppendBlobClient(at).Create(t.Context(), &appendblob.CreateOptions{Metadata: metadata})))
		appendRaw(t, c, at, content)
	}
	for _, at := range []string{"web/2026/11/20/1200/index.html", "web/2026/11/20/12", "web/2026/11/20/1200/1.log", "web/2026/11/20/1200/000001.log.old"} {
		put(at, nil)
	}
	wantTexts(t, readDay(t, l), []string{"one"})
	put("web/2026/11/20/1155/000009.log", nil) // copied by another program, to a time that is not its own, even
	wantTexts(t, readDay(t, l), []string{"one", "one"})
	version := "2"
	put("web/2026/11/20/1200/000010.log", map[string]*string{"tpformat": &version})
	from, to := day()
	harness.WantKind(t, assert.Err(read(t.Context(), l, from, to)), tables.ErrGarbled)
}

// TestQueryMeetsFaults: whatever befalls a request, a query has every record once, in order, or ends with an error.
func TestQueryMeetsFaults(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	name := newContainer(t, s)
	l := assert.Must[*logdata.Log](t)(openLog(s, name, nil))
	w := newWriter(t, l, nil)
	texts := numbered("record ", 6)
	for i, text := range texts {
		assert.Check(t, w.Write(t.Context(), record(noon().Add(time.Duration(i)*4*time.Minute), text)))
	}
	failed := 0
	for _, fault := range storagetest.FaultsOf(storagetest.GetBlob) {
		for call := range 4 {
			for _, retries := range []int32{0, 3} {
				faulty, faults := s.WithRetries(retries).Faulty(storagetest.OnIndex(call, storagetest.Once(storagetest.Always(fault))))
				got, err := read(t.Context(), assert.Must[*logdata.Log](t)(openLog(faulty, name, nil)), noon(), noon().Add(time.Hour))
				if len(faults.Met()) == 0 {
					t.Fatalf("call %d was not made", call)
				}
				if err != nil {
					failed++
				}
				if len(got) > len(texts) || !slices.Equal(got, texts[:len(got)]) || err == nil && len(got) != len(texts) {
					t.Errorf("%v at call %d: %q, %v", fault, call, got, err)
				}
				var e *tables.Error
				if err != nil && (!errors.As(err, &e) || retries > 0 && call > 0) {
					t.Errorf("%v at call %d: %v", fault, call, err)
				}
			}
		}
	}
	if failed == 0 {
		t.Error("no query met an error")
	}
}

// TestQueryIsCancelled: with its context, a query ends.
func TestQueryIsCancelled(t *testing.T) {
	l := newLog(t, storagetest.Open(t), nil)
	w := newWriter(t, l, nil)
	for i := range 20 {
		assert.Check(t, w.Write(t.Context(), record(noon().Add(time.Duration(i)*10*time.Minute), "x")))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	from, to := day()
	var last error
	n := 0
	for _, err := range l.Query(ctx, from, to, &logdata.QueryOptions{Concurrency: 1}) {
		if last = err; err == nil {
			n++
		}
		cancel()
	}
	if !errors.Is(last, context.Canceled) || n == 0 || n == 20 {
		t.Errorf("%d records, then %v", n, last)
	}
}

// TestDeletedWhileRead: a blob that is deleted behind the listing is passed over.
func TestDeletedWhileRead(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	name := newContainer(t, s)
	aDay(t, assert.Must[*logdata.Log](t)(openLog(s, name, nil)))
	c := assert.Must[*container.Client](t)(containerOf(s, name))
	const deleted = "web/2026/11/20/0020/000001.log"
	deletes := storagetest.Before("deletion", func() {
		assert.NoError(t, assert.Err(c.NewBlobClient(deleted).Delete(context.Background(), nil)))
	})
	// Before the read of this blob, since several blobs are read at once.
	itsRead := func(call storagetest.Call) bool {
		return call.Kind == storagetest.GetBlob && strings.HasSuffix(call.Resource, deleted)
	}
	faulty, faults := s.Faulty(storagetest.If(itsRead, storagetest.Once(storagetest.Always(deletes))))
	from, to := day()
	got := assert.Must[[]string](t)(read(t.Context(), assert.Must[*logdata.Log](t)(openLog(faulty, name, nil)), from, to))
	if len(got) != 1550 || slices.Contains(got, "00:25/0") || len(faults.Met()) != 1 {
		t.Errorf("%d records, %d deletions", len(got), len(faults.Met()))
	}
}

// TestAnswersThatAreNotOfTheRange are errors, and no records.
func TestAnswersThatAreNotOfTheRange(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	name := newContainer(t, s)
	w := newWriter(t, assert.Must[*logdata.Log](t)(openLog(s, name, nil)), nil)
	assert.Check(t, w.Write(t.Context(), record(noon(), "one")))
	for _, answer := range []string{"", "bytes", "bytes 1-9/10", "bytes 0-9/5", "bytes 0-99999999/100000000", "bytes x-9/10"} {
		faulty, _ := s.Faulty(storagetest.On(storagetest.GetBlob, storagetest.Always(headerFault(answer))))
		got, err := read(t.Context(), assert.Must[*logdata.Log](t)(openLog(faulty, name, nil)), noon(), noon().Add(1))
		if len(got) > 0 || !errors.Is(err, tables.ErrGarbled) {
			t.Errorf("%q: %q, %v", answer, got, err)
		}
	}
}

// headerFault is an answer with another Content-Range.
type headerFault string

func (f headerFault) String() string { return "Content-Range " + string(f) }

func (f headerFault) Meet(_ storagetest.Call, _ *http.Request, send storagetest.Send) (*http.Response, error) {
	answer, err := send()
	if err == nil {
		answer.Header.Set("Content-Range", string(f))
	}
	return answer, err
}
