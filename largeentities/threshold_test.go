package largeentities_test

import (
	"os"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestThreshold holds where values leave the row, by default and with the largest Threshold: bytes count, of a string those of its UTF-8,
// and a string of more than 32,768 UTF-16 units, which no property can hold, leaves it in any case.
func TestThreshold(t *testing.T) {
	w := (&world{}).open(t, storagetest.Open(t))
	p := assert.Must[*process](t)(w.start(storagetest.Open(t)))
	open := func(name string, options *largeentities.Options) *patterns.Repository[employee] {
		video := largeentities.NewStream("Video", func(e *employee) *largeentities.Stream { return &e.Video }, p.blobs, options)
		return assert.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(p.repo.Table(),
			patterns.Schema[employee]{Name: name, Key: keyOf, Prefix: "empid"},
			largeentities.NewProperty[employee]("Photo", p.blobs, options), largeentities.NewProperty[employee]("CV", p.blobs, options), video))
	}
	byDefault, most := open("default", nil), open("most", &largeentities.Options{Threshold: tables.MaxBinarySize})
	for _, c := range []struct {
		name    string
		repo    *patterns.Repository[employee]
		photo   int
		cv      string
		inBlobs int
	}{
		{"bytes, default", byDefault, 32_768, "", 0},
		{"bytes, default, one more", byDefault, 32_769, "", 1},
		{"bytes, largest", most, 65_536, "", 0},
		{"bytes, largest, one more", most, 65_537, "", 1},
		{"ASCII, default", byDefault, 0, strings.Repeat("x", 32_768), 0},
		{"ASCII, default, one more", byDefault, 0, strings.Repeat("x", 32_769), 1},
		{"ASCII, largest", most, 0, strings.Repeat("x", 32_768), 0},
		{"ASCII, largest, one more", most, 0, strings.Repeat("x", 32_769), 1},
		{"three bytes a unit, default", byDefault, 0, strings.Repeat("€", 10_922), 0},
		{"three bytes a unit, default, one more", byDefault, 0, strings.Repeat("€", 10_923), 1},
		{"three bytes a unit, largest", most, 0, strings.Repeat("€", 21_845), 0},
		{"three bytes a unit, largest, one more", most, 0, strings.Repeat("€", 21_846), 1},
	} {
		e := with(1)
		e.Photo, e.CV = make([]byte, c.photo), c.cv
		if x := assert.Must[*patterns.Explanation](t)(c.repo.Explain(t.Context(), driver.ChangeInsert, e)); len(x.Outside) != c.inBlobs {
			t.Errorf("%s: %d values are in blobs, want %d", c.name, len(x.Outside), c.inBlobs)
		}
	}
	page := string(assert.Must[[]byte](t)(os.ReadFile("../docs/reference/largeentities.md")))
	for _, want := range []string{"`Threshold` (default 32 KiB, at most 64 KiB)", "32,768 UTF-16 units"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
