package logdata

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/blobowner"
)

func at(n int) time.Time {
	return time.Date(2026, 11, 20, 15, 4, 5, 123456789, time.UTC).Add(time.Duration(n))
}

// goldenRecord is a record without its mark.
const goldenRecord = "2026-11-20T15:04:05.123456789Z 11 9d217103 hello\nworld\n"

// TestGoldenRecord pins the bytes of a record.
func TestGoldenRecord(t *testing.T) {
	for _, c := range []struct{ data, want string }{
		{"hello\nworld", "\x1e" + goldenRecord},
		{"", "\x1e2026-11-20T15:04:05.123456789Z 0 dd063adc \n"},
		{"a\x1eb\x10c", "\x1e2026-11-20T15:04:05.123456789Z 7 8a3b1f0d a\x10rb\x10ec\n"},
	} {
		got := appendFrame(nil, at(0), []byte(c.data))
		assert.Equal(t, string(got), c.want, "%q is stored as %q", c.data, got)
		record, n, what := nextFrame([]byte(c.want), 0, true)
		if what != foundWhole || n != len(c.want) || string(record.Data) != c.data || !record.Time.Equal(at(0)) {
			t.Errorf("%q is read as %q of %v, %d bytes, %d", c.want, record.Data, record.Time, n, what)
		}
	}
}

// TestEveryDamagedByteIsSeen: whichever byte of a record is another one, the record is not read, and those around it are. A
// mark is one that ends the record before it.
func TestEveryDamagedByteIsSeen(t *testing.T) {
	before, middle, after := appendFrame(nil, at(0), []byte("before")), appendFrame(nil, at(1), []byte("a\x1eb")), appendFrame(nil, at(2), []byte("after"))
	for i := range middle {
		for _, other := range []byte{0, mark, escape, 'r', '0', '9', ' ', '\n', middle[i] ^ 1, middle[i] ^ 0x80} {
			if other == middle[i] {
				continue
			}
			damaged := slices.Clone(middle)
			damaged[i] = other
			assert.Slices(t, texts(slices.Concat(before, damaged, after)), []string{"before", "after"}, "with byte %d as %#x", i, other)
		}
	}
}

// TestEscapesThatAreNone: data with a checksum that is right and an escape that no writer makes are no record.
func TestEscapesThatAreNone(t *testing.T) {
	for _, stored := range []string{"a\x10", "a\x10x", "\x10\x10"} {
		head := at(1).Format(timeLayout) + fmt.Sprintf(" %d ", len(stored))
		frame := fmt.Appendf(nil, "\x1e%s%08x %s\n", head, checksum([]byte(head), []byte(stored)), stored)
		assert.Slices(t, texts(slices.Concat(frame, appendFrame(nil, at(2), []byte("after")))), []string{"after"}, "%q is read as", stored)
	}
}

// TestTornAnywhere: of a blob that is cut off anywhere, or cut out of, all whole records are read, and the damage is told
// once.
func TestTornAnywhere(t *testing.T) {
	var all []byte
	var ends []int
	for i := range 4 {
		all = appendFrame(all, at(i), []byte(fmt.Sprintf("record %d\n\x1e\x10", i)))
		ends = append(ends, len(all))
	}
	for cut := range len(all) {
		whole := 0
		for whole < len(ends) && ends[whole] <= cut {
			whole++
		}
		assert.Len(t, texts(all[:cut]), whole, "cut off at %d", cut)
		again := slices.Concat(all[:cut], all) // what a second writer might append
		assert.Len(t, texts(again), whole+4, "cut off at %d, and written on", cut)
		var told []int64
		d := decoder{rest: again, last: true, damaged: func(offset, n int64) { told = append(told, offset, n) }}
		for _, ok := d.next(); ok; _, ok = d.next() {
		}
		begin := 0
		if whole > 0 {
			begin = ends[whole-1]
		}
		if want := []int64{int64(begin), int64(cut - begin)}; cut > begin && !slices.Equal(told, want) || cut == begin && told != nil {
			t.Errorf("cut off at %d: damage %v, want %v", cut, told, want)
		}
	}
}

// TestReadRecords: in whichever pieces the bytes come, and with the reader's error at the end.
func TestReadRecords(t *testing.T) {
	data := appendFrame(appendFrame([]byte("junk"), at(0), []byte("one")), at(1), []byte("two"))
	for name, r := range map[string]interface{ Read([]byte) (int, error) }{
		"one byte": iotest.OneByteReader(bytes.NewReader(data)), "halves": iotest.HalfReader(bytes.NewReader(data)), "error with data": iotest.DataErrReader(bytes.NewReader(data)),
	} {
		var got []string
		for record, err := range ReadRecords(r) {
			assert.NoError(t, err, name)
			got = append(got, string(record.Data))
		}
		assert.Slices(t, got, []string{"one", "two"}, name)
	}
	var last error
	n := 0
	for _, err := range ReadRecords(iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader(data)))) {
		n, last = n+1, err
	}
	if n != 1 || !errors.Is(last, iotest.ErrTimeout) {
		t.Errorf("%d, %v", n, last)
	}
	for range ReadRecords(bytes.NewReader(data)) {
		break
	}
	// Were each piece searched from the record's beginning, this would take 32 GB of looks.
	large := appendFrame(nil, at(0), make([]byte, 1<<18))
	for record := range ReadRecords(iotest.OneByteReader(bytes.NewReader(large))) {
		if n++; len(record.Data) != 1<<18 {
			t.Errorf("%d bytes", len(record.Data))
		}
	}
	assert.Equal(t, n, 2, "the large record is not read")
}

// texts are the whole records of some bytes.
func texts(b []byte) []string {
	var all []string
	d := decoder{rest: b, last: true}
	for r, ok := d.next(); ok; r, ok = d.next() {
		all = append(all, string(r.Data))
	}
	return all
}

// FuzzRecords: no bytes make the parser panic, or stand still, or read something that is not stored just so.
func FuzzRecords(f *testing.F) {
	f.Add([]byte("\x1e" + goldenRecord))
	f.Add([]byte("\x1e2026-11-20T15:04:05.123456789Z 999999999 00000000 x\n\x1e" + goldenRecord))
	f.Add([]byte("\x1e\x1e\x1e"))
	f.Add(bytes.Repeat([]byte("\x1e2026-11-20T15:04:05.123456789Z "), 3))
	f.Fuzz(func(t *testing.T, b []byte) {
		for rest := b; len(rest) > 0; {
			record, n, what := nextFrame(rest, 0, true)
			if n <= 0 || n > len(rest) || what == foundPart {
				t.Fatalf("%d of %d bytes, %d", n, len(rest), what)
			}
			if what == foundWhole {
				if again := appendFrame(nil, record.Time, record.Data); !strings.EqualFold(string(again), string(rest[:n])) {
					t.Fatalf("%q is read from %q", again, rest[:n])
				}
			}
			rest = rest[n:]
		}
		whole := texts(b)
		for size := range min(len(b), 64) { // in pieces it says the same
			var d decoder
			var got []string
			take := func() {
				for r, ok := d.next(); ok; r, ok = d.next() {
					got = append(got, string(r.Data))
				}
			}
			for piece := range slices.Chunk(b, size+1) {
				d.add(piece)
				take()
			}
			d.last = true
			if take(); !slices.Equal(got, whole) {
				t.Fatalf("in pieces of %d: %q, not %q", size+1, got, whole)
			}
		}
	})
}

// FuzzTornTail: three records, cut off at any place and followed by any bytes and by three more: all that are whole are
// read, in their order.
func FuzzTornTail(f *testing.F) {
	f.Add([]byte("data"), uint16(70), []byte("junk"))
	f.Add([]byte("\x1e\x10"), uint16(150), []byte("\x1e2026-11-20T15:04:05.123456789Z 500 00000000 "))
	f.Fuzz(func(t *testing.T, data []byte, cut uint16, junk []byte) {
		var head, tail []byte
		var ends []int
		for i := range 3 {
			head = appendFrame(head, at(i), append([]byte{'a' + byte(i)}, data...))
			tail = appendFrame(tail, at(i), append([]byte{'A' + byte(i)}, data...))
			ends = append(ends, len(head))
		}
		head = head[:min(len(head), int(cut))]
		var want []string
		for i, end := range ends {
			if end <= len(head) {
				want = append(want, string(append([]byte{'a' + byte(i)}, data...)))
			}
		}
		for i := range 3 {
			want = append(want, string(append([]byte{'A' + byte(i)}, data...)))
		}
		for _, text := range texts(slices.Concat(head, junk, tail)) {
			if len(want) > 0 && text == want[0] {
				want = want[1:]
			}
		}
		if len(want) > 0 {
			t.Fatalf("not read: %q", want)
		}
	})
}

// TestNamesAndRanges: the prefixes of a range cover all blobs that can hold its records, each once and in order, and none
// is of an hour outside.
func TestNamesAndRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &Log{prefix: "web", period: rapid.SampledFrom([]time.Duration{time.Minute, 10 * time.Minute, time.Hour}).Draw(t, "period")}
		begin := time.Date(rapid.IntRange(1, 9998).Draw(t, "year"), 1, 1, 0, 0, 0, 0, time.UTC)
		from := begin.Add(time.Duration(rapid.Int64Range(0, int64(400*24*time.Hour)).Draw(t, "from")))
		to := from.Add(1 + time.Duration(rapid.Int64Range(0, int64(500*24*time.Hour)).Draw(t, "length")))
		moment := from.Add(time.Duration(rapid.Int64Range(-int64(time.Hour), int64(to.Sub(from)+time.Hour)).Draw(t, "moment")))
		name := l.blobName(l.periodOf(moment), 7)
		period, number, ok := l.parseName(name)
		if !ok || number != 7 || moment.Before(period) || !moment.Before(period.Add(l.period)) {
			t.Fatalf("%s is period %v, number %d, %v", name, period, number, ok)
		}
		listed, last, count := 0, "", 0
		for prefix := range l.prefixes(from, to) {
			if strings.HasPrefix(name, prefix) {
				listed++
			}
			if prefix <= last {
				t.Fatalf("%s comes after %s", prefix, last)
			}
			last, count = prefix, count+1
		}
		hour := moment.Truncate(time.Hour)
		if inside := hour.Before(to) && hour.Add(time.Hour).After(from); inside != (listed == 1) || !inside && listed != 0 {
			t.Fatalf("%s is listed %d times for %v up to %v", name, listed, from, to)
		}
		if count > 2*23+2*30+2*11+2 {
			t.Fatalf("%d prefixes", count)
		}
	})
	l := &Log{prefix: "web", period: time.Hour}
	for _, c := range []struct {
		from, to time.Time
		want     []string
	}{
		{at(0), at(1), []string{"web/2026/11/20/15"}},
		{at(0), at(0).Add(time.Hour), []string{"web/2026/11/20/15", "web/2026/11/20/16"}},
		{time.Date(2026, 11, 29, 23, 59, 0, 0, time.UTC), time.Date(2028, 2, 1, 1, 0, 0, 0, time.UTC),
			[]string{"web/2026/11/29/23", "web/2026/11/30/", "web/2026/12/", "web/2027/", "web/2028/01/", "web/2028/02/01/00"}},
		{minTime(), maxTime(), []string{"web/"}},
	} {
		assert.Slices(t, slices.Collect(l.prefixes(c.from, c.to)), c.want, "%v up to %v", c.from, c.to)
	}
	for _, name := range []string{"", "web", "web/2026/11/20/1500/000001", "web/2026/11/20/1500/000000.log", "web/2026/11/20/1500/0000001.log", "web/2026/13/20/1500/000001.log",
		"web/2026/11/20/1500/+00001.log", "web2/2026/11/20/1500/000001.log", "web/x/2026/11/20/1500/000001.log", "web/2026/11/20/1500/000001.txt"} {
		if _, _, ok := l.parseName(name); ok {
			t.Errorf("%q is a name", name)
		}
	}
}

// TestMetadataThatMakeNoSense leave a blob as wide as its name.
func TestMetadataThatMakeNoSense(t *testing.T) {
	start := time.Date(2026, 11, 20, 15, 10, 0, 0, time.UTC)
	for _, c := range []struct {
		metadata    map[string]string
		first, last string
		end         time.Duration
	}{
		{nil, "", "", 50 * time.Minute},
		{map[string]string{metaPeriod: "10"}, "", "", 10 * time.Minute},
		{map[string]string{metaPeriod: "61", metaDisorder: "-1", metaFirst: "yesterday"}, "", "", 50 * time.Minute},
		{map[string]string{metaPeriod: "60", metaDisorder: "99999999", metaFirst: "2026-11-20T15:09:00.000000000Z"}, "", "", 50 * time.Minute},
		{map[string]string{"Tpfirst": "2026-11-20T15:11:00.000000000Z", "TPLAST": "2026-11-20T15:10:59.000000000Z"}, "2026-11-20T15:11:00.000000000Z", "", 50 * time.Minute},
		{map[string]string{"Tpfirst": "2026-11-20T15:11:00.000000000Z", "TPLAST": "2026-11-20T15:12:00.000000000Z"}, "2026-11-20T15:11:00.000000000Z", "2026-11-20T15:12:00.000000000Z", 50 * time.Minute},
	} {
		b := Blob{Start: start}
		b.describe(blobowner.Owner{}.Metadata(c.metadata))
		first, last := start, time.Time{}
		if c.first != "" {
			first, _ = time.Parse(timeLayout, c.first)
		}
		if c.last != "" {
			last, _ = time.Parse(timeLayout, c.last)
		}
		if !b.First.Equal(first) || !b.Last.Equal(last) || b.Final != (c.last != "") || !b.End.Equal(start.Add(c.end)) || b.disorder != time.Hour {
			t.Errorf("%v: %+v", c.metadata, b)
		}
	}
}
