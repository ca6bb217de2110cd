package dataseries_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/dataseries"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// The golden tests pin what is stored: series that exist in accounts must be read for ever. docs/reference/storage-format.md
// describes the same in words. Where one of them fails, either the change is wrong or readers need a way to tell the old from the
// new.

// goldenID is an id of a write or a call: 26 characters of base32.
var goldenID = regexp.MustCompile(`\b[A-Z2-7]{26}\b`)

// rawRow is a row as it is stored, with the library's own properties.
func rawRow(ctx context.Context, table *tables.Table, key tables.Key) (string, error) {
	answer, err := table.Client().GetEntity(ctx, key.Partition, key.Row, nil)
	if err != nil {
		return "", err
	}
	var row map[string]any
	if err := json.Unmarshal(answer.Value, &row); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(row)) {
		if !strings.HasPrefix(name, "odata.") && !strings.HasPrefix(name, "Timestamp") {
			fmt.Fprintf(&b, "%s=%v\n", name, row[name])
		}
	}
	return goldenID.ReplaceAllString(b.String(), "ID"), nil
}

const goldenMarker = "\uFFFConce_3EYQ5IB5XKARZTTCTTI7ARXSROKCWG27"

func TestGoldenRows(t *testing.T) {
	for _, c := range []struct {
		world
		digits int
		rows   map[string]string
	}{
		{world{place: inRow, slots: 24}, 0, map[string]string{
			"20261120":   "Count_00=3\nCount_00@odata.type=Edm.Int64\nCount_23=5\nCount_23@odata.type=Edm.Int64\n",
			goldenMarker: "Call=ID\nDelta=1\nDelta@odata.type=Edm.Int64\nOperation=message 1\nSeries=20261120\nSlot=Count_23\n",
		}},
		{world{place: inRows, slots: 365}, 4, map[string]string{
			"20261120":      "Count_0000=3\nCount_0000@odata.type=Edm.Int64\n",
			"20261120!0001": "Count_0364=5\nCount_0364@odata.type=Edm.Int64\n",
			goldenMarker:    "Call=ID\nDelta=1\nDelta@odata.type=Edm.Int64\nOperation=message 1\nSeries=20261120\nSlot=Count_0364\n",
		}},
	} {
		t.Run(c.String(), func(t *testing.T) {
			ctx, s := t.Context(), storagetest.Open(t)
			w := c.world
			w.open(t, s)
			account := assert.Must[*tables.Account](t)(accountOf(s))
			o := w.options(account)
			o.Digits = c.digits
			counter := assert.Must[*dataseries.Counter[int64]](t)(dataseries.NewCounter[int64](account.Table(w.table), "Count_", w.slots, o))
			goldenSeries(t, counter, w.slots)
			for row, want := range c.rows {
				got, err := rawRow(ctx, counter.Table(), tables.Key{Partition: today.Partition, Row: row})
				if want += "_tpWrite=ID\n"; err != nil || sortedLines(got) != sortedLines("PartitionKey=empid_000223\nRowKey="+row+"\n"+want) {
					t.Errorf("the stored format has changed:\n%s, %v\nwant\n%s", got, err, want)
				}
			}
		})
	}
}

func (w world) String() string { return fmt.Sprint(string(w.place), w.slots) }

func sortedLines(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func goldenSeries(t *testing.T, c *dataseries.Counter[int64], slots int) {
	t.Helper()
	counted, err := c.AddOnce(t.Context(), today, slots-1, 1, "message 1")
	for _, err := range []error{err, c.Set(t.Context(), today, 0, 3), c.Add(t.Context(), today, slots-1, 4)} {
		if err != nil || !counted {
			t.Fatal(counted, err)
		}
	}
}

func TestGoldenBlob(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	w := (&world{place: inBlob, slots: 365}).open(t, s)
	w.table = "Golden"
	goldenSeries(t, assert.Must[*dataseries.Counter[int64]](t)(w.start(s)), w.slots)
	name, text := goldenBlob(t, s, w, "golden/Count_/empid^1000223/20261120")
	const want = `{"v":1,"write":"ID","slots":{"Count_000@odata.type":"Edm.Int64","Count_000":"3","Count_364@odata.type":"Edm.Int64","Count_364":"5"},` +
		`"marks":[{"id":"3EYQ5IB5XKARZTTCTTI7ARXSROKCWG27","at":"TIME","call":"ID","slot":"Count_364","delta@odata.type":"Edm.Int64","delta":"1"}]}` + "\n"
	if text != want {
		t.Errorf("%s has changed:\n%s\nwant\n%s", name, text, want)
	}
}

// TestBlobNames: keys that are no good names of blobs.
func TestBlobNames(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	w := (&world{place: inBlob}).open(t, s)
	c := assert.Must[*dataseries.Counter[int64]](t)(w.start(s))
	rows := []string{"", "..", ".", "a.", "O'Brien", "a b", "ü%2F", "_", "!", "a!"}
	for i, row := range rows {
		for _, key := range []tables.Key{{Partition: row, Row: "r"}, {Partition: "p", Row: row}} {
			if err := c.Set(ctx, key, 0, int64(i)); err != nil {
				t.Fatalf("%q: %v", row, err)
			}
		}
	}
	for i, row := range rows {
		for _, key := range []tables.Key{{Partition: row, Row: "r"}, {Partition: "p", Row: row}} {
			if n, err := held(ctx, w, s, key, 0); n != int64(i) || err != nil {
				t.Errorf("%q: %d, %v", row, n, err)
			}
		}
	}
	var found []string
	for _, v := range all(t, c.ReadMany(ctx, "p", compoundkey.Span{})) {
		found = append(found, v.Key.Row)
	}
	slices.Sort(found)
	if slices.Sort(rows); !slices.Equal(found, rows) {
		t.Errorf("found %q, want %q", found, rows)
	}
}

// TestGoldenBlobIsRead reads what an earlier version has written, with slots that this program does not know.
func TestGoldenBlobIsRead(t *testing.T) {
	const stored = `{"v":1,"write":"ABCDEFGHIJKLMNOPQRSTUVWXYZ","slots":{"Count_0@odata.type":"Edm.Int64","Count_0":"3","Count_9":7,"Other":"x"},` +
		`"marks":[{"id":"3EYQ5IB5XKARZTTCTTI7ARXSROKCWG27","at":"2026-11-20T12:00:00Z","call":"ABCDEFGHIJKLMNOPQRSTUVWXYZ","slot":"Count_0","delta@odata.type":"Edm.Int64","delta":"3"}]}` + "\n"
	ctx, s := t.Context(), storagetest.Open(t)
	w := (&world{place: inBlob}).open(t, s)
	name := strings.ToLower(w.table) + "/Count_/empid^1000223/20261120"
	upload := func(text string) {
		t.Helper()
		account := assert.Must[*tables.Account](t)(accountOf(s))
		if _, err := blobstorage.Container(account, w.container).NewBlockBlobClient(name).UploadBuffer(ctx, []byte(text), nil); err != nil {
			t.Fatal(err)
		}
	}
	upload(stored)
	c := assert.Must[*dataseries.Counter[int64]](t)(w.start(s))
	if got := text(assert.Must[*dataseries.Values[int64]](t)(c.Read(ctx, today))); got != "[3 . . . . . . . . 7]" {
		t.Errorf("the series is %s", got)
	}
	if counted, err := c.AddOnce(ctx, today, 0, 3, "message 1"); counted || err != nil {
		t.Errorf("the operation was counted: %t, %v", counted, err)
	}
	if err := c.Set(ctx, today, 1, 1); err != nil {
		t.Fatal(err)
	}
	if _, text := goldenBlob(t, s, w, name); !strings.Contains(text, `"Other":"x"`) || !strings.Contains(text, `"Count_9":7`) {
		t.Errorf("what is not known is lost: %s", text)
	}
	for _, bad := range []string{stored[:len(stored)/2], "", "{}", strings.Replace(stored, `"v":1`, `"v":2`, 1), strings.Replace(stored, `"3"`, `"x"`, 1),
		strings.Replace(stored, "Edm.Int64", "Edm.Other", 1), strings.Replace(stored, `:7`, `:null`, 1), strings.Replace(stored, `"at"`, `"when"`, 1), strings.Replace(stored, `"delta":`, `"d":`, 1)} {
		upload(bad)
		_, err := c.Read(ctx, today)
		if set := c.Set(ctx, today, 1, 1); !errors.Is(err, tables.ErrGarbled) || !errors.Is(set, tables.ErrGarbled) {
			t.Errorf("%q: %v, %v", bad, err, set)
		}
	}
}

// goldenBlob returns the text of a blob, without ids and times.
func goldenBlob(t *testing.T, s *storagetest.Service, w *world, name string) (_, text string) {
	t.Helper()
	account := assert.Must[*tables.Account](t)(accountOf(s))
	answer, err := blobstorage.Container(account, w.container).NewBlobClient(name).DownloadStream(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	raw := assert.Must[[]byte](t)(io.ReadAll(answer.Body))
	if *answer.ContentType != "application/json" && w.table == "Golden" {
		t.Errorf("content type %s", *answer.ContentType)
	}
	times := regexp.MustCompile(`"at":"[0-9TZ:-]+"`)
	return name, times.ReplaceAllString(goldenID.ReplaceAllString(string(raw), "ID"), `"at":"TIME"`)
}
