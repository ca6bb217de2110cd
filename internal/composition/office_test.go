package composition

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/denormalization"
	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/heterogeneous"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/relationships"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
	"github.com/tablepatterns/tablepatterns/widentities"
)

const (
	visibility = 10 * time.Second
	theSite    = "Sales" // whose items there are
)

// office is what all processes of a test share: the names of what is stored, and the registry of keys, which no fault reaches.
type office struct {
	registry                              *encryption.Registry
	beacon                                *encryption.Beacon
	table, copies, away, queue, container string
}

// desk is what one process has: an entity type with all patterns at once.
type desk struct {
	kit
	office *office
	items  *patterns.Repository[item]
	copies *tables.Table
	photos *container.Client

	name, number *intrapartition.Unique[item, compoundkey.Part]
	badge        *interpartition.Unique[item, compoundkey.Part]
	team         *indexentities.Index[item, compoundkey.Part]
	teams        *indexentities.Index[item, compoundkey.Part]
	count        *relationships.Count[item]
	lengths      *relationships.Summary[item]
	counted      *relationships.ParentCount[item, site]
	members      *relationships.Members[item]
	photo        *largeentities.Property[item]
	typ          *heterogeneous.Type[item]
	holders      *patterns.Repository[site] // of details, in a table of their own
}

func newOffice(t testing.TB, s *storagetest.Service) *office {
	t.Helper()
	return newOfficeOf(t, s, newRegistry(t))
}

func newOfficeOf(t testing.TB, s *storagetest.Service, registry *encryption.Registry) *office {
	t.Helper()
	beacon := assert.Must[*encryption.Beacon](t)(registry.Beacon("number", 0))
	assert.Check(t, beacon.Ensure(t.Context()))
	o := &office{registry, beacon, s.TableName(t), s.TableName(t), s.TableName(t), s.QueueName(t), s.ContainerName(t)}
	d := assert.Must[*desk](t)(o.open(s))
	assert.Check(t, d.items.Table().Create(t.Context()), d.copies.Create(t.Context()), d.away.Create(t.Context()), d.queue.Create(t.Context()), second(d.photos.Create(t.Context(), nil)))
	for _, h := range []*site{{Partition: theSite, Name: "beside"}, {Partition: theSite, Name: "counted"}} {
		assert.Check(t, d.sites.Insert(t.Context(), h))
	}
	assert.Check(t, d.holders.Insert(t.Context(), &site{Partition: "away", Name: "chief"}))
	return o
}

// open makes all of a process. In which order it names the patterns, shuffle decides.
func (o *office) open(s *storagetest.Service) (*desk, error) {
	return o.openShuffled(s, func([]patterns.Pattern[item]) {})
}

func (o *office) openShuffled(s *storagetest.Service, shuffle func([]patterns.Pattern[item])) (*desk, error) {
	account, err := open(s)
	if err != nil {
		return nil, err
	}
	d := &desk{office: o, copies: account.Table(o.copies), photos: blobstorage.Container(account, o.container)}
	d.kit = kit{account: account, registry: o.registry, container: d.photos, table: account.Table(o.table), away: account.Table(o.away), keyOf: plainKey, wide: true}
	if d.queue, err = eventual.NewQueue(account, o.queue, &eventual.QueueOptions{VisibilityTimeout: visibility}); err != nil {
		return nil, err
	}
	if d.sites, err = patterns.NewRepository(harness.In(d.table, d.queue), sitesSchema("sites")); err != nil {
		return nil, err
	}
	beside, away := d.links()
	if _, err = patterns.NewRepository(harness.In(d.table, d.queue), sitesSchema("sites with a chief"), beside.Holder()); err != nil {
		return nil, err
	}
	if d.holders, err = patterns.NewRepository(harness.In(d.away, d.queue), sitesSchema("holders"), away.Holder()); err != nil {
		return nil, err
	}
	all, err := d.patterns(beside.Source(), away.Source())
	if err != nil {
		return nil, err
	}
	shuffle(all)
	d.items, err = patterns.NewRepository(harness.In(d.table, d.queue), patterns.Schema[item]{Key: plainKey, Prefix: "item"}, all...)
	return d, err
}

// links copy the first item, the chief of the site, into two holders.
func (d *desk) links() (beside, away *denormalization.Copies[item, site]) {
	ofChief := func(holder tables.Key) denormalization.Link[item, site] {
		link := d.link(0, nil)
		link.Holders = func(v *item) []tables.Key {
			if v.ID != 1 {
				return nil
			}
			return []tables.Key{holder}
		}
		return link
	}
	return denormalization.New("beside", ofChief(siteKey(theSite, "beside")), nil), denormalization.New("away", ofChief(siteKey("away", "chief")), nil)
}

// patterns makes all patterns of a process, besides those of links.
func (d *desk) patterns(links ...patterns.Pattern[item]) ([]patterns.Pattern[item], error) {
	sealer, err := encryption.NewStream(d.registry, nil)
	if err != nil {
		return nil, err
	}
	lean := append(slices.Clone(kept), "Number")
	d.name = intrapartition.NewUnique("name", byName, nil)
	d.number = intrapartition.NewUnique("number", func(v *item) compoundkey.Part { return d.office.beacon.Part(tables.String(v.Number)) },
		&intrapartition.Options{Project: lean})
	d.badge = interpartition.NewUnique("badge", byName, &interpartition.Options[item]{ByPartition: true, Table: d.copies, Project: append(lean, "Photo")})
	d.team, d.teams = indexentities.NewInPartition("team", byTeam), indexentities.NewInTable("teams", byTeam, nil, &indexentities.Options[item]{ByPartition: true})
	d.photo = largeentities.NewProperty[item]("Photo", d.photos, &largeentities.Options{Sealer: sealer})
	d.count = relationships.NewCount[item]("number-of-items", nil)
	d.lengths = relationships.NewSummary("lengths", func(v *item) (int64, bool) { return int64(len(v.Team)), true }, nil)
	d.counted = relationships.NewParentCount("counted", d.sites, func(v *item) (tables.Key, bool) { return siteKey(v.Site, "counted"), true }, func(p *site) *int { return &p.Items })
	d.members = relationships.NewMembers("members", d.away, projectOf)
	d.typ = newType()
	return append(links,
		d.name, d.number, d.badge, d.team, d.teams, d.photo, d.count, d.lengths, d.counted, d.members, d.typ,
		encrypting("encryption", d.registry), widentities.New[item](&widentities.Options{FirstRow: append(slices.Clone(kept), "Photo")}),
	), nil
}

// projectOf is the parent of an item outside of its partition.
func projectOf(v *item) (tables.Key, bool) {
	return tables.Key{Partition: "projects", Row: v.Team}, true
}

// openOld is a program of the version before, and with fewer patterns.
func (o *office) openOld(s *storagetest.Service) (*patterns.Repository[itemV1], error) {
	account, err := open(s)
	if err != nil {
		return nil, err
	}
	name := intrapartition.NewUnique("name", func(v *itemV1) compoundkey.Part {
		return compoundkey.Tuple(compoundkey.String(v.FullName), compoundkey.Int(v.ID, 6))
	}, nil)
	first := slices.DeleteFunc(slices.Clone(kept), func(property string) bool { return property == "Name" })
	return patterns.NewRepository(account.Table(o.table), patterns.Schema[itemV1]{Prefix: "item", Key: func(v *itemV1) tables.Key {
		return plainKey(&item{Site: v.Site, ID: v.ID})
	}}, heterogeneous.NewType[itemV1]("Item", 1, nil), name, encryption.New[itemV1]("encryption", o.registry, nil),
		widentities.New[itemV1](&widentities.Options{FirstRow: append(first, "FullName")}))
}

func (d *desk) itemOf(id int, state string) *item {
	v := d.kit.itemOf(id, fmt.Sprint(state, " ", id), false)
	v.Entry.LoggedAt = time.Date(2026, 11, 20, 12, 0, id, 0, time.UTC)
	v.Photo, v.Doc = slices.Repeat([]byte(v.Number), 4_000), ""
	return v
}
