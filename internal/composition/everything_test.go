package composition

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/eventual/archive"
	"github.com/tablepatterns/tablepatterns/heterogeneous"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestEverything goes through all verbs with an entity type that has all patterns at once.
func TestEverything(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	o := newOffice(t, s)
	d := assert.Must[*desk](t)(o.open(s))
	a, b, c, z := d.itemOf(1, "a"), d.itemOf(1, "b"), d.itemOf(1, "c"), d.itemOf(2, "z")
	assert.Check(t, d.items.Insert(ctx, d.itemOf(1, "a")), d.consistent(ctx, []*item{a}, []*item{b}))
	if err := d.items.Insert(ctx, d.itemOf(1, "b")); !errors.Is(err, tables.ErrExists) {
		t.Errorf("a second insert: %v", err)
	}
	taken := d.itemOf(3, "a")
	taken.Number = a.Number
	if err := d.items.Insert(ctx, taken); !errors.Is(err, tables.ErrDuplicate) {
		t.Errorf("a number that is taken: %v", err)
	}
	found := assert.Must[*item](t)(d.name.In(theSite).Get(ctx, byName(a)))
	b.Meta = found.Meta
	assert.Check(t, d.items.Replace(ctx, b), d.consistent(ctx, []*item{b}, []*item{a}))
	if err := d.items.Replace(ctx, found); !errors.Is(err, tables.ErrConflict) {
		t.Errorf("a stale Replace: %v", err)
	}
	assert.Check(t, second(d.items.Update(ctx, plainKey(c), func(v *item) error {
		meta := v.Meta
		*v = *d.itemOf(1, "c")
		v.Meta = meta
		return nil
	})), d.consistent(ctx, []*item{c}, []*item{b}))
	assert.Check(t, d.items.Upsert(ctx, d.itemOf(1, "a")), d.consistent(ctx, []*item{a}, []*item{c}))
	assert.Check(t, d.items.ReplaceUnconditional(ctx, d.itemOf(1, "c")), d.items.Upsert(ctx, d.itemOf(2, "z")), d.consistent(ctx, []*item{c, z}, []*item{a, b}))
	d.refuses(t, c)
	d.reads(t, c, z)
	d.rotate(t, c, z)
	d.repairs(t, c, z)
	d.move(t, s, c, z)
	assert.Check(t, d.items.Delete(ctx, assert.Must[*item](t)(d.items.Get(ctx, plainKey(c)))), d.consistent(ctx, []*item{z}, []*item{a, b, c}))
	d.secrets(t)
	assert.Check(t, d.items.DeleteUnconditional(ctx, plainKey(z)), d.consistent(ctx, nil, []*item{c, z}), clean(ctx, d.items))
}

// refuses what does not compose with all, before any change.
func (d *desk) refuses(t *testing.T, c *item) {
	t.Helper()
	ctx := t.Context()
	v := assert.Must[*item](t)(d.items.Get(ctx, plainKey(c)))
	if err := d.items.Merge(ctx, v, "Name"); !errors.Is(err, tables.ErrInvalid) {
		t.Errorf("Merge: %v", err)
	}
	if e := assert.Must[*patterns.Explanation](t)(d.items.Explain(ctx, driver.ChangeReplace, v)); len(e.Rows) < 5 {
		t.Errorf("%d rows are explained", len(e.Rows))
	}
}

// reads by ranges of each index, and through a registry among other types.
func (d *desk) reads(t *testing.T, want ...*item) {
	t.Helper()
	ctx := t.Context()
	own := assert.Must[[]*item](t)(collect(d.items.Query().Partition(theSite).Where(tables.Eq("ID", want[0].ID)).All(ctx)))
	named := assert.Must[[]*item](t)(collect(d.name.In(theSite).Range(ctx, compoundkey.Prefix(compoundkey.String("name")))))
	badges := assert.Must[[]*item](t)(collect(d.badge.In(theSite).Range(ctx)))
	numbers := assert.Must[[]*item](t)(collect(d.number.In(theSite).Range(ctx)))
	if len(own) != 1 || len(named) != len(want) || len(badges) != len(want) || len(numbers) != len(want) {
		t.Fatalf("found %d, %d, %d and %d", len(own), len(named), len(badges), len(numbers))
	}
	assert.Check(t, sameItem(own[0], want[0]))
	for i := range want {
		assert.Check(t, sameItem(named[i], want[i]))
	}
	registry := assert.Must[*heterogeneous.Registry](t)(heterogeneous.NewRegistry(d.table, d.typ))
	items, bags := 0, 0
	for v, err := range registry.Query().Partition(theSite).All(ctx) {
		assert.Check(t, err)
		switch v := v.(type) {
		case *item:
			assert.Check(t, sameItem(v, want[items]))
			items++
		case *tables.Entity:
			bags++
		}
	}
	if items != len(want) || bags < 2 {
		t.Errorf("%d items and %d others", items, bags)
	}
	if err := registry.Modify(ctx, plainKey(want[0]), func(e *tables.Entity) error { e.Set("Name", tables.String("x")); return nil }); !errors.Is(err, tables.ErrInvalid) {
		t.Errorf("Modify, which merges: %v", err)
	}
}

// rotate brings all items under another data key, photos too.
func (d *desk) rotate(t *testing.T, want ...*item) {
	t.Helper()
	ctx := t.Context()
	uses := assert.Must[map[encryption.DataKeyID]int64](t)(encryption.Uses(ctx, d.table, d.copies))
	next := assert.Must[encryption.DataKeyID](t)(d.registry.CreateDataKey(ctx))
	assert.Check(t, d.photo.Reseal(ctx, plainKey(want[0])))
	p := assert.Must[patterns.RewriteReport](t)(encryption.Reencrypt(ctx, d.items, nil))
	after := assert.Must[map[encryption.DataKeyID]int64](t)(encryption.Uses(ctx, d.table, d.copies))
	if len(uses) != 1 || len(after) != 1 || after[next] == 0 || p.Read != int64(len(want)) || p.Written != int64(len(want)-1) {
		t.Errorf("uses were %v and are %v; %+v", uses, after, p)
	}
	assert.Check(t, d.consistent(ctx, want, nil), clean(ctx, d.items))
}

// repairs deletes copies in the partition and outside, has them repaired, and then rebuilt.
func (d *desk) repairs(t *testing.T, want ...*item) {
	t.Helper()
	ctx := t.Context()
	lag := patterns.JobOptions{Lag: time.Millisecond}
	lost := func() {
		project, _ := projectOf(want[0])
		assert.Check(t, d.table.Entities().DeleteUnconditional(ctx, tables.Key{Partition: theSite, Row: compoundkey.Join("number", d.office.beacon.Part(tables.String(want[0].Number)))}),
			d.table.Entities().DeleteUnconditional(ctx, tables.Key{Partition: theSite, Row: compoundkey.Join("team", byTeam(want[0]))}),
			d.copies.Entities().DeleteUnconditional(ctx, tables.Key{Partition: "badge_" + theSite, Row: assert.Must[string](t)(compoundkey.Encode("", byName(want[0])))}),
			second(d.sitesOn(t, d.away).Update(ctx, siteKey("away", "chief"), func(h *site) error { h.ChiefName = "somebody"; return nil })),
			d.away.Entities().DeleteUnconditional(ctx, tables.Key{Partition: project.Partition, Row: compoundkey.Join("members", compoundkey.String(project.Row), compoundkey.String(theSite), compoundkey.String(plainKey(want[0]).Row))}))
	}
	lost()
	found := map[string]int{}
	all, err := harness.Findings(ctx, d.items.Verify, &lag)
	assert.Check(t, err)
	for _, x := range all {
		found[x.Pattern]++
	}
	for _, name := range []string{"number", "team", "badge", "away", "members"} {
		if found[name] != 1 {
			t.Errorf("%q is found %d times: %v", name, found[name], found)
		}
	}
	all, err = harness.Findings(ctx, d.items.Repair, &lag)
	assert.Check(t, err)
	for _, f := range all {
		assert.Check(t, f.NotRepaired)
	}
	assert.Check(t, clean(ctx, d.items))
	lost()
	if report, err := d.items.Rebuild(ctx, nil); err != nil || report.Written == 0 || report.Failed != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	// A row of members that was removed by hand, and entered again, has counted twice.
	project, _ := projectOf(want[0])
	if n, was, err := d.members.Recount(ctx, project); n != 1 || was != 3 || err != nil {
		t.Errorf("counted %d, and it was %d, %v", n, was, err)
	}
	assert.Check(t, clean(ctx, d.items), d.consistent(ctx, want, nil))
}

// move takes an item to another site's office, by a worker.
func (d *desk) move(t *testing.T, s *storagetest.Service, stays, moves *item) {
	t.Helper()
	ctx := t.Context()
	other := assert.Must[*desk](t)(newOffice(t, s).open(s))
	mover := assert.Must[*archive.Mover[item]](t)(archive.New(d.queue, "archive", d.items, archive.ToRepository(other.items, nil), nil))
	assert.Check(t, mover.Move(ctx, assert.Must[*item](t)(d.items.Get(ctx, plainKey(moves)))))
	drain(t, d.queue)
	assert.Check(t, d.consistent(ctx, []*item{stays}, []*item{moves}), other.consistent(ctx, []*item{moves}, []*item{stays}), clean(ctx, other.items))
	back := assert.Must[*archive.Mover[item]](t)(archive.New(other.queue, "back", other.items, archive.ToRepository(d.items, nil), nil))
	assert.Check(t, back.Move(ctx, assert.Must[*item](t)(other.items.Get(ctx, plainKey(moves)))))
	drain(t, other.queue)
	assert.Check(t, d.consistent(ctx, []*item{stays, moves}, nil), other.consistent(ctx, nil, []*item{moves}))
}

// secrets looks for what is encrypted in all rows of all tables, and counts the photos.
func (d *desk) secrets(t *testing.T) {
	t.Helper()
	for _, table := range []*tables.Table{d.table, d.copies, d.away} {
		for row, err := range table.Entities().Query().AllowTableScan().All(t.Context()) {
			assert.Check(t, err)
			for _, p := range row.Properties {
				raw, _ := p.Value.Bytes()
				text, _ := p.Value.Text()
				for _, secret := range []string{"number ", "essay "} {
					if strings.Contains(text, secret) || bytes.Contains(raw, []byte(secret)) {
						t.Errorf("%v of %s has %q in clear", row.Key, p.Name, secret)
					}
				}
			}
		}
	}
	photos, prefix := 0, d.table.Name()+"/Photo"
	for pager := d.photos.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix}); pager.More(); {
		photos += len(assert.Must[container.ListBlobsFlatResponse](t)(pager.NextPage(t.Context())).Segment.BlobItems)
	}
	if photos != 1 {
		t.Errorf("%d photos are left, of one item", photos)
	}
}

// TestEverythingUpgrades: items of a program of the version before, which had fewer patterns too, are read as the current version,
// get the rows of the further patterns by Rebuild, and are written as the current version by Upgrade.
func TestEverythingUpgrades(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	o := newOffice(t, s)
	d, old := assert.Must[*desk](t)(o.open(s)), assert.Must[*patterns.Repository[itemV1]](t)(o.openOld(s))
	var want, written []*item
	for id := 1; id <= 3; id++ {
		v := d.itemOf(id, "a")
		v1 := &itemV1{Entry: v.Entry, Site: v.Site, ID: id, FullName: v.Name, Team: v.Team, Essay: v.Essay}
		assert.Check(t, old.Insert(ctx, v1))
		upgraded := assert.Must[*item](t)(fromV1(v1))
		want = append(want, upgraded)
	}
	for _, v := range want {
		assert.Check(t, sameItem(assert.Must[*item](t)(d.items.Get(ctx, plainKey(v))), v), sameItem(assert.Must[*item](t)(d.name.In(theSite).Get(ctx, byName(v))), v))
	}
	assert.Check(t, third(d.counted.Recount(ctx, siteKey(theSite, "counted"))))
	if report := assert.Must[patterns.RebuildReport](t)(d.items.Rebuild(ctx, nil)); report.Failed != 0 || report.Written != 3 {
		t.Errorf("%+v", report)
	}
	assert.Check(t, clean(ctx, d.items), d.consistent(ctx, want, nil))
	// One is written by its owner, the rest by Upgrade.
	assert.Check(t, d.items.Upsert(ctx, d.itemOf(2, "b")))
	report := assert.Must[patterns.RewriteReport](t)(d.typ.Upgrade(ctx, nil))
	written = []*item{want[0], d.itemOf(2, "b"), want[2]}
	assert.Check(t, d.consistent(ctx, written, []*item{want[1]}), clean(ctx, d.items))
	t.Logf("%+v", report)
	if again := assert.Must[patterns.RewriteReport](t)(d.typ.Upgrade(ctx, nil)); again.Read != 0 {
		t.Errorf("a second time: %+v", again)
	}
	if _, err := old.Get(ctx, plainKey(want[0])); !errors.Is(err, tables.ErrGarbled) {
		t.Errorf("the old program reads the new version: %v", err)
	}
	for _, v := range written {
		assert.Check(t, d.items.DeleteUnconditional(ctx, plainKey(v)))
	}
	assert.Check(t, d.consistent(ctx, nil, written))
}

// TestOrder: programs that name the patterns in other orders read and write what the others have written.
func TestOrder(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	o := newOffice(t, s)
	var before []*item
	for seed := range uint64(12) {
		order := rand.New(rand.NewPCG(seed, 0))
		d := assert.Must[*desk](t)(o.openShuffled(s, func(all []patterns.Pattern[item]) {
			order.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		}))
		next := d.itemOf(1, string(rune('a'+seed)))
		if before == nil {
			assert.Check(t, d.items.Insert(ctx, d.itemOf(1, "a")))
		} else {
			old := assert.Must[*item](t)(d.items.Get(ctx, plainKey(next)))
			assert.Check(t, sameItem(old, before[0]))
			write := *next
			write.Meta = old.Meta
			assert.Check(t, d.items.Replace(ctx, &write))
		}
		assert.Check(t, d.consistent(ctx, []*item{next}, before), clean(ctx, d.items))
		before = []*item{next}
	}
}
