package largeentities_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestGoldenStored pins what is stored: rows and blobs of programs that are there already must stay readable.
func TestGoldenStored(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	w := (&world{}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	e := with(223)
	e.Photo, e.CV = []byte(strings.Repeat("p", 100)), strings.Repeat("c", 100)
	e.Video = largeentities.NewStreamBytes([]byte(strings.Repeat("v", 100)), &largeentities.StreamOptions{ContentType: "video/mp4; codecs=avc1"})
	f := with(224)
	f.Photo, f.CV, f.Video = []byte("p"), "c", largeentities.NewStreamBytes([]byte("v"), nil)
	ok(t, p.repo.Insert(ctx, e), p.repo.Insert(ctx, f))
	rows := assert.Must[*tables.Rows[tables.Entity]](t)(tables.RowsOf[tables.Entity](p.account.Table(w.table)))
	// The change's id is the last part of a name, the same for all of one change.
	id := regexp.MustCompile(`[A-Z2-7]{26}`)
	plain := func(text string) string { return id.ReplaceAllString(strings.ReplaceAll(text, w.table, "TABLE"), "ID") }
	for row, want := range map[int]map[string]string{
		223: {
			"Photo": "Edm.String tp1 100 abd3b172acc3c31e07e73599fee36843f0e3f7c1abe023e3225f9a46161a28d4 TABLE/Photo/ZPQP4G7J7MPKH6BITGL6UVIA/ID application/octet-stream",
			"CV":    "Edm.Binary tp1 100 bdcdc9e9204fe2099666b438af288629b1fa7f89797341bf7d435ce4ca2b706b TABLE/CV/ZPQP4G7J7MPKH6BITGL6UVIA/ID application/octet-stream",
			"Video": "Edm.String tp1 100 a71bdb64c1cbac8f2e4a8197282afd7f977ff720b330e8d1d8853f2f81ed84b2 TABLE/Video/ZPQP4G7J7MPKH6BITGL6UVIA/ID video/mp4; codecs=avc1",
		},
		224: {"Photo": "Edm.Binary p", "CV": "Edm.String c", "Video": "Edm.Binary v"},
	} {
		stored := assert.Must[*tables.Entity](t)(rows.Get(ctx, at(row)))
		for _, name := range slices.Sorted(maps.Keys(want)) {
			v := stored.Properties.Get(name)
			text, _ := v.Text()
			if b, isBinary := v.Bytes(); isBinary {
				text = string(b)
			}
			if got := plain(fmt.Sprintf("%v %s", v.Type(), text)); got != want[name] {
				t.Errorf("%d %s:\n%s\nwant\n%s", row, name, got, want[name])
			}
		}
	}
	for pager := p.blobs.NewListBlobsFlatPager(nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		ok(t, err)
		for _, item := range page.Segment.BlobItems {
			answer, err := p.blobs.NewBlobClient(*item.Name).GetProperties(ctx, nil)
			ok(t, err)
			meta := map[string]string{}
			for name, value := range answer.Metadata {
				meta[strings.ToLower(name)] = *value
			}
			if meta["tpkey"] != "U2FsZXMJZW1waWRfMDAwMjIz" || len(meta["tpsha256"]) != 64 || meta["tphome"] == "" || meta["tpterm"] != "600" || len(meta) != 4 {
				t.Errorf("%s has metadata %v", *item.Name, meta)
			}
		}
	}
}
