package composition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
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
	"github.com/tablepatterns/tablepatterns/logtail"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/relationships"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
	"github.com/tablepatterns/tablepatterns/widentities"
)

// item has a property for each pattern, whichever it is given.
type item struct {
	tables.Meta
	logtail.Entry
	EntityType string `table:",omitempty"`
	Site       string
	ID         int
	Name, Team string
	Number     string // encrypted
	Essay      string // encrypted; too large for one row where there is a layout
	Doc        string // large
	Photo      []byte // large
	Clip, Song largeentities.Stream

	HomeRow, HomeName, WorkRow, WorkName, Region, Country string // copies

	Brittle brittle
}

// brittle is a text that cannot be read once it is among the broken.
type brittle string

var broken sync.Map

func (b brittle) MarshalText() ([]byte, error) { return []byte(b), nil }

func (b *brittle) UnmarshalText(text []byte) error {
	if _, is := broken.Load(string(text)); is {
		return errors.New("broken")
	}
	*b = brittle(text)
	return nil
}

// site is the row key and the name of a site that the item has a copy of.
func (v *item) site(n int) (row, name *string) {
	if n == 0 {
		return &v.HomeRow, &v.HomeName
	}
	return &v.WorkRow, &v.WorkName
}

// encrypting encrypts what is secret in an item. It goes by a resolver, since a repository without encryption refuses a type
// whose fields have the tag.
func encrypting(name string, registry *encryption.Registry) *encryption.Encryption[item] {
	return encryption.New[item](name, registry, &encryption.Options{
		Resolver: func(_, _, property string) bool { return property == "Number" || property == "Essay" },
		Plain:    []string{"EntityType", "Site", "ID", "Name", "Team", "Doc", "Photo", "Clip", "Song", "HomeRow", "HomeName", "WorkRow", "WorkName", "Region", "Country"},
	})
}

// itemV1 is an item of a version before there were numbers.
type itemV1 struct {
	tables.Meta
	logtail.Entry
	EntityType string `table:",omitempty"`
	Site       string
	ID         int
	FullName   string
	Team       string
	Essay      string `encrypt:"true"`
}

// fromV1 is the step between the two.
func fromV1(old *itemV1) (*item, error) {
	return &item{Entry: old.Entry, EntityType: old.EntityType, Site: old.Site, ID: old.ID, Name: old.FullName, Team: old.Team, Number: fmt.Sprint("none ", old.ID), Essay: old.Essay}, nil
}

// site is what items belong to: a parent, and a holder of details.
type site struct {
	tables.Meta
	Partition, Name string
	Items           int

	ChiefPartition, ChiefRow, ChiefName    string
	DeputyPartition, DeputyRow, DeputyName string
}

// details are the fields of a copy: of the chief, or of the deputy.
func (h *site) details(n int) (partition, row, name *string) {
	if n == 0 {
		return &h.ChiefPartition, &h.ChiefRow, &h.ChiefName
	}
	return &h.DeputyPartition, &h.DeputyRow, &h.DeputyName
}

func siteKey(partition, name string) tables.Key {
	return tables.Key{Partition: partition, Row: compoundkey.Join("site", compoundkey.String(name))}
}

// kit is what the patterns of one pair are made with.
type kit struct {
	account   *tables.Account
	registry  *encryption.Registry
	queue     *eventual.Queue
	container *container.Client
	calls     *storagetest.RequestCounter
	table     *tables.Table // of the items
	away      *tables.Table // of what Details copies into
	keyOf     func(*item) tables.Key
	sites     *patterns.Repository[site] // on table
	at        time.Time                  // of the items; the day may end while a test runs
	wide      bool                       // the entity needs several rows
	commits   *atomic.Int64              // calls of OnCommit's handlers
	made      int                        // repositories that have a name of their own
}

func newKit(t testing.TB, registry *encryption.Registry) *kit {
	t.Helper()
	s := *storagetest.Simulator(t, nil)
	k := &kit{calls: &storagetest.RequestCounter{}, commits: &atomic.Int64{}, registry: registry, at: time.Now().UTC().Truncate(time.Microsecond)}
	s.ClientOptions.PerRetryPolicies = append(s.ClientOptions.PerRetryPolicies, k.calls)
	k.account = assert.Must[*tables.Account](t)(open(&s))
	k.queue = assert.Must[*eventual.Queue](t)(eventual.NewQueue(k.account, "queue", nil))
	k.table, k.away, k.container = k.account.Table("Items"), k.account.Table("Away"), blobstorage.Container(k.account, "blobs")
	assert.Check(t, k.queue.Create(t.Context()), k.table.Create(t.Context()), k.away.Create(t.Context()), second(k.container.Create(t.Context(), nil)))
	k.sites = k.sitesOn(t, k.table)
	k.calls.Reset()
	return k
}

func (k *kit) sitesOn(t testing.TB, table *tables.Table, attached ...patterns.Pattern[site]) *patterns.Repository[site] {
	t.Helper()
	return assert.Must[*patterns.Repository[site]](t)(patterns.NewRepository(harness.In(table, k.queue), sitesSchema("sites of "+table.Name()), attached...))
}

// nameOf is a name that no other repository with intents on the queue has.
func (k *kit) nameOf(what string) string {
	k.made++
	return fmt.Sprint(what, k.made, k.table.Name())
}

func sitesSchema(name string) patterns.Schema[site] {
	return patterns.Schema[site]{Name: name, Key: func(v *site) tables.Key { return siteKey(v.Partition, v.Name) }, Prefix: "site"}
}

// link copies items into sites. One transaction writes a row once, so in a partition each link has sites of its own.
func (k *kit) link(n int, holder func(*item) tables.Key) denormalization.Link[item, site] {
	role := []string{"Chief", "Deputy"}[n]
	return denormalization.Link[item, site]{
		Properties: []string{role + "Partition", role + "Row", role + "Name"},
		Holders:    func(v *item) []tables.Key { return []tables.Key{holder(v)} },
		Copy: func(v *item, h *site) {
			partition, row, name := h.details(n)
			*partition, *row, *name = "", "", ""
			if v != nil {
				key := k.keyOf(v)
				*partition, *row, *name = key.Partition, key.Row, v.Name
			}
		},
		SourceOf: func(h *site) (tables.Key, bool) {
			partition, row, _ := h.details(n)
			return tables.Key{Partition: *partition, Row: *row}, *row != ""
		},
	}
}

// homeLink copies a site into the first item of its partition.
func (k *kit) homeLink(n int) denormalization.Link[site, item] {
	name := []string{"Home", "Work"}[n]
	return denormalization.Link[site, item]{
		Properties: []string{name + "Row", name + "Name"},
		Holders:    func(*site) []tables.Key { return []tables.Key{k.keyOf(k.itemOf(1, "", false))} },
		Copy: func(p *site, v *item) {
			row, name := v.site(n)
			*row, *name = "", ""
			if p != nil {
				*row, *name = siteKey(p.Partition, p.Name).Row, p.Name
			}
		},
		SourceOf: func(v *item) (tables.Key, bool) {
			row, _ := v.site(n)
			return tables.Key{Partition: k.keyOf(v).Partition, Row: *row}, *row != ""
		},
	}
}

// awayLink copies the site of all items into them.
func (k *kit) awayLink(n int) denormalization.Link[site, item] {
	return denormalization.Link[site, item]{
		Properties: []string{[]string{"Region", "Country"}[n]},
		Find:       func(items tables.Query[item], _ tables.Key) tables.Query[item] { return items.AllowTableScan() },
		Copy: func(p *site, v *item) {
			name := []*string{&v.Region, &v.Country}[n]
			*name = ""
			if p != nil {
				*name = p.Name
			}
		},
		SourceOf: func(*item) (tables.Key, bool) { return siteKey("away", "one"), true },
	}
}

// part is one pattern of the matrix. n tells two of a kind apart on one entity.
type part struct {
	name string
	make func(t testing.TB, k *kit, n int) patterns.Pattern[item]
}

func byName(v *item) compoundkey.Part {
	return compoundkey.Tuple(compoundkey.String(v.Name), compoundkey.Int(v.ID, 6))
}

func byTeam(v *item) compoundkey.Part { return compoundkey.String(v.Team) }

// kept are the properties of copies that keep less: those that say what the entity is, and its name.
var kept = []string{heterogeneous.EntityType, "LoggedAt", "LogID", "Site", "ID", "Name", "Team"}

func parts() []part {
	indexes := []part{
		{"intrapartition.Index", func(_ testing.TB, _ *kit, n int) patterns.Pattern[item] {
			return intrapartition.NewUnique(fmt.Sprint("name", n), byName, nil)
		}},
		{"interpartition.Index", func(_ testing.TB, k *kit, n int) patterns.Pattern[item] {
			options := interpartition.Options[item]{ByPartition: true}
			if k.wide {
				options.Project = kept
			}
			return interpartition.NewIndex(fmt.Sprint("badge", n), byName, &options)
		}},
		{"indexentities.NewInPartition", func(_ testing.TB, _ *kit, n int) patterns.Pattern[item] {
			return indexentities.NewInPartition(fmt.Sprint("team", n), byTeam)
		}},
		{"indexentities.NewInTable", func(_ testing.TB, _ *kit, n int) patterns.Pattern[item] {
			return indexentities.NewInTable(fmt.Sprint("teams", n), byTeam, nil, &indexentities.Options[item]{ByPartition: true})
		}},
	}
	return append(append(append(indexes, relations()...), storage()...), part{"eventual.OnCommit", newOutbox})
}

// relations are the patterns between entities.
func relations() []part {
	return []part{
		{"denormalization.NewInPartition, Source", func(t testing.TB, k *kit, n int) patterns.Pattern[item] {
			holder := func(v *item) tables.Key { return siteKey(k.keyOf(v).Partition, fmt.Sprint("beside", n)) }
			copies := denormalization.NewInPartition(fmt.Sprint("beside", n), k.link(n, holder), nil)
			k.sitesOn(t, k.table, copies.Holder())
			return copies.Source()
		}},
		{"denormalization.NewInPartition, Holder", func(t testing.TB, k *kit, n int) patterns.Pattern[item] {
			copies := denormalization.NewInPartition(fmt.Sprint("home", n), k.homeLink(n), nil)
			k.sitesOn(t, k.table, copies.Source())
			return copies.Holder()
		}},
		{"denormalization.New, Source", func(t testing.TB, k *kit, n int) patterns.Pattern[item] {
			copies := denormalization.New(fmt.Sprint("away", n), k.link(n, func(*item) tables.Key { return siteKey("away", "one") }), nil)
			assert.Must[*patterns.Repository[site]](t)(patterns.NewRepository(harness.In(k.away, k.queue), sitesSchema(k.nameOf("away")), copies.Holder()))
			return copies.Source()
		}},
		{"denormalization.New, Holder", func(t testing.TB, k *kit, n int) patterns.Pattern[item] {
			copies := denormalization.New(fmt.Sprint("region", n), k.awayLink(n), nil)
			assert.Must[*patterns.Repository[site]](t)(patterns.NewRepository(harness.In(k.away, k.queue), sitesSchema(k.nameOf("region")), copies.Source()))
			return copies.Holder()
		}},
		{"relationships.Count", func(_ testing.TB, _ *kit, n int) patterns.Pattern[item] {
			return relationships.NewCount[item](fmt.Sprint("number", n), nil)
		}},
		{"relationships.Summary", func(_ testing.TB, _ *kit, n int) patterns.Pattern[item] {
			return relationships.NewSummary(fmt.Sprint("sum", n), func(v *item) (int64, bool) { return int64(len(v.Team)), true }, nil)
		}},
		{"relationships.ParentCount", func(_ testing.TB, k *kit, n int) patterns.Pattern[item] {
			return relationships.NewParentCount(fmt.Sprint("items", n), k.sites, func(v *item) (tables.Key, bool) {
				return siteKey(k.keyOf(v).Partition, fmt.Sprint("counted", n)), true
			}, func(p *site) *int { return &p.Items })
		}},
		{"relationships.Members", func(_ testing.TB, _ *kit, n int) patterns.Pattern[item] {
			return relationships.NewMembers(fmt.Sprint("members", n), nil, func(*item) (tables.Key, bool) { return siteKey("projects", "P"), true })
		}},
	}
}

// storage are the patterns that say how an entity is stored.
func storage() []part {
	return []part{
		{"largeentities.Property", func(_ testing.TB, k *kit, n int) patterns.Pattern[item] {
			return largeentities.NewProperty[item]([]string{"Photo", "Doc"}[n], k.container, &largeentities.Options{Threshold: -1})
		}},
		{"largeentities.Stream", func(_ testing.TB, k *kit, n int) patterns.Pattern[item] {
			field := func(v *item) *largeentities.Stream { return []*largeentities.Stream{&v.Clip, &v.Song}[n] }
			return largeentities.NewStream([]string{"Clip", "Song"}[n], field, k.container, nil)
		}},
		{"widentities.Layout", func(_ testing.TB, k *kit, _ int) patterns.Pattern[item] {
			k.wide = true
			return widentities.New[item](&widentities.Options{FirstRow: kept})
		}},
		{"encryption.Encryption", func(_ testing.TB, k *kit, n int) patterns.Pattern[item] {
			return encrypting(fmt.Sprint("encryption", n), k.registry)
		}},
		{"heterogeneous.Type", func(testing.TB, *kit, int) patterns.Pattern[item] {
			return newType()
		}},
	}
}

// newOutbox is an outbox whose calls the kit counts.
func newOutbox(_ testing.TB, k *kit, n int) patterns.Pattern[item] {
	return eventual.OnCommit(fmt.Sprint("commits", n), func(context.Context, eventual.Commit[item]) error {
		k.commits.Add(1)
		return nil
	}, &eventual.OutboxOptions{On: eventual.Inserts | eventual.Updates | eventual.Deletes, Ordered: n > 0})
}

func newType() *heterogeneous.Type[item] {
	return heterogeneous.NewType[item]("Item", 2, &heterogeneous.TypeOptions{Steps: []heterogeneous.Step{heterogeneous.From(1, fromV1)}})
}

// itemOf is an item in one of its states.
func (k *kit) itemOf(id int, state string, streams bool) *item {
	v := &item{Entry: logtail.Entry{LoggedAt: k.at, LogID: fmt.Sprint("id", id)}, Site: "Sales", ID: id,
		Name: "name " + state, Team: "team " + state, Number: "number " + state, Doc: "doc " + state, Photo: []byte("photo " + state),
		HomeRow: siteKey("", "home0").Row, WorkRow: siteKey("", "home1").Row}
	if k.wide {
		v.Essay = strings.Repeat("essay "+state, 10_000)
	}
	if streams {
		v.Clip, v.Song = clip(state), clip(state)
	}
	return v
}

func clip(state string) largeentities.Stream {
	return largeentities.NewStreamBytes(bytes.Repeat([]byte("clip "+state), 10), nil)
}

func plainKey(v *item) tables.Key {
	return tables.Key{Partition: v.Site, Row: compoundkey.Join("item", compoundkey.Int(v.ID, 6))}
}
