package composition

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/denormalization"
	"github.com/tablepatterns/tablepatterns/eventual/archive"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/relationships"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
	"github.com/tablepatterns/tablepatterns/widentities"
)

// TestRefused: what the page says of more than two, or of two with certain options.
func TestRefused(t *testing.T) {
	k := newKit(t, newRegistry(t))
	sealing := func() patterns.Pattern[item] { return encrypting("encryption", k.registry) }
	clips := func() patterns.Pattern[item] {
		return largeentities.NewStream("Clip", func(v *item) *largeentities.Stream { return &v.Clip }, k.container, nil)
	}
	for what, c := range map[string]struct {
		both []patterns.Pattern[item]
		want string
	}{
		"one property encrypted and in a blob": {[]patterns.Pattern[item]{encrypting("encryption", k.registry), largeentities.NewProperty[item]("Essay", k.container, nil)}, `"encryption"`},
		"steps, and copies without a type":     {[]patterns.Pattern[item]{newType(), intrapartition.NewUnique("lean", byName, &intrapartition.Options{Project: []string{"Name"}})}, `"lean"`},
		"a layout without EntityType in front": {[]patterns.Pattern[item]{newType(), widentities.New[item](nil)}, `"wide"`},
	} {
		_, err := k.plain(c.both)
		if !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	sealed, clipped := assert.Must[*patterns.Repository[item]](t)(k.plainOn(k.table, k.queue, []patterns.Pattern[item]{sealing(), clips()})), assert.Must[*patterns.Repository[item]](t)(k.plainOn(k.away, k.queue, []patterns.Pattern[item]{clips()}))
	plain := assert.Must[*patterns.Repository[item]](t)(k.plainOn(k.account.Table("Plain"), k.queue, nil))
	for what, both := range map[string][2]*patterns.Repository[item]{`"encryption"`: {sealed, clipped}, `"Clip"`: {clipped, plain}} {
		if _, err := archive.New(k.queue, "m", both[0], archive.ToRepository(both[1], nil), nil); !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), what) {
			t.Errorf("a mover into a repository without %s: %v", what, err)
		}
	}
	assert.Must[*archive.Mover[item]](t)(archive.New(k.queue, "back", clipped, archive.ToRepository(sealed, nil), nil))
	if n := k.calls.Count(); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// TestRefusedOnWriting: what depends on the entity is refused when it is written, and nothing of it is stored.
func TestRefusedOnWriting(t *testing.T) {
	ctx, k := t.Context(), newKit(t, newRegistry(t))
	whole := interpartition.NewIndex("badge", byName, &interpartition.Options[item]{ByPartition: true})
	wide := assert.Must[*patterns.Repository[item]](t)(k.plainOn(k.away, k.queue, []patterns.Pattern[item]{whole, widentities.New[item](nil)}))
	k.wide = true
	if err := wide.Insert(ctx, k.itemOf(1, "a", false)); !errors.Is(err, tables.ErrTooLarge) {
		t.Errorf("a copy outside of an entity in several rows: %v", err)
	}
	if _, err := wide.Get(ctx, wide.KeyOf(k.itemOf(1, "a", false))); !errors.Is(err, tables.ErrNotFound) {
		t.Errorf("it is stored: %v", err)
	}
}

// TestPatternsOfOneCompanion: two patterns that write one entity beside see each other's change of it, and it may have effects outside
// of the partition.
func TestPatternsOfOneCompanion(t *testing.T) {
	ctx, k := t.Context(), newKit(t, newRegistry(t))
	one := func(v *item) tables.Key { return siteKey(v.Site, "counted0") }
	copies := denormalization.NewInPartition("beside", k.link(0, one), nil)
	byItems := interpartition.NewUnique("size", func(v *site) string { return fmt.Sprint(v.Name, "-", v.Items) }, nil)
	sites := k.sitesOn(t, k.table, copies.Holder(), byItems)
	byCount := relationships.NewParentCount("counted", sites, func(v *item) (tables.Key, bool) { return one(v), true }, func(p *site) *int { return &p.Items })
	r := assert.Must[*patterns.Repository[item]](t)(k.plain([]patterns.Pattern[item]{byCount, copies.Source()}))
	a := k.itemOf(1, "a", false)
	assert.Check(t, k.prepareFor(t, r, a), second(sites.Rebuild(ctx, nil)), r.Insert(ctx, a), clean(ctx, r), clean(ctx, sites))
	held := assert.Must[*site](t)(byItems.Get(ctx, "counted0-1"))
	if held.Items != 1 || held.Key() != one(a) {
		t.Errorf("%+v", held)
	}
	assert.Check(t, r.Delete(ctx, a), clean(ctx, r), clean(ctx, sites))
	if held := assert.Must[*site](t)(sites.Get(ctx, one(a))); held.Items != 0 {
		t.Errorf("%+v", held)
	}
}

// interrupted is a pattern of items that calls a function when a change is planned.
type interrupted struct{ planned func() }

func (p *interrupted) Attach(driver.Host, *item) (driver.Implementation, error) {
	return driver.Implementation{Name: "interrupted", Rows: func(context.Context, []*driver.Change) ([]driver.RowOperation, error) {
		p.planned()
		return nil, nil
	}}, nil
}

// TestPlanBeyondItsIntent: a concurrent writer changes the parent of an item while the item is inserted. The new plan gives the parent an
// outside key that the stored intent does not name, so the change begins again under another intent, and its blob is written again.
func TestPlanBeyondItsIntent(t *testing.T) {
	ctx, k := t.Context(), newKit(t, newRegistry(t))
	parent := func(v *item) (tables.Key, bool) { return siteKey(v.Site, "counted0"), true }
	bySize := interpartition.NewUnique("size", func(v *site) string { return fmt.Sprint(v.Name, "-", v.Items) },
		nil)
	sites := k.sitesOn(t, k.table, bySize)
	plans := 0
	r := assert.Must[*patterns.Repository[item]](t)(k.plain([]patterns.Pattern[item]{
		relationships.NewParentCount("counted", sites, parent, func(p *site) *int { return &p.Items }),
		largeentities.NewProperty[item]("Photo", k.container, &largeentities.Options{Threshold: -1}),
		interpartition.NewUnique("badge", byName, &interpartition.Options[item]{ByPartition: true}),
		&interrupted{func() {
			if plans++; plans == 1 {
				assert.Must[*site](t)(sites.Update(ctx, siteKey(theSite, "counted0"), func(p *site) error { p.Items += 10; return nil }))
			}
		}}}))
	assert.Check(t, sites.Insert(ctx, &site{Partition: theSite, Name: "counted0"}))
	a := k.itemOf(1, "a", false)
	assert.Check(t, r.Insert(ctx, a), clean(ctx, r), clean(ctx, sites))
	got, err := r.Get(ctx, r.KeyOf(a))
	assert.Check(t, err, sameItem(got, a))
	if p := assert.Must[*site](t)(bySize.Get(ctx, "counted0-11")); p.Items != 11 || plans != 2 {
		t.Errorf("%+v, %d plans", p, plans)
	}
	blobs := 0
	for pager := k.container.NewListBlobsFlatPager(nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		assert.Check(t, err)
		blobs += len(page.Segment.BlobItems)
	}
	if blobs != 1 {
		t.Errorf("%d blobs", blobs)
	}
}

// TestAccountOpenedTwice: parents whose account another part of the program has opened are on the same table.
func TestAccountOpenedTwice(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	first, again := assert.Must[*tables.Account](t)(open(s)), assert.Must[*tables.Account](t)(open(s))
	assert.Check(t, first.Table("Items").Create(t.Context()))
	sites := assert.Must[*patterns.Repository[site]](t)(patterns.NewRepository(first.Table("Items"), sitesSchema("sites")))
	counted := relationships.NewParentCount("counted", sites, func(v *item) (tables.Key, bool) { return siteKey(v.Site, "counted"), true }, func(p *site) *int { return &p.Items })
	items := assert.Must[*patterns.Repository[item]](t)(patterns.NewRepository(again.Table("Items"), patterns.Schema[item]{Key: plainKey, Prefix: "item"}, counted))
	assert.Check(t, sites.Insert(t.Context(), &site{Partition: theSite, Name: "counted"}), items.Insert(t.Context(), (&kit{at: time.Now().UTC().Truncate(time.Microsecond)}).itemOf(1, "a", false)))
	if p := assert.Must[*site](t)(sites.Get(t.Context(), siteKey(theSite, "counted"))); p.Items != 1 {
		t.Errorf("%d items are counted", p.Items)
	}
}
