package encryption_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/widentities"
)

// person is spread over rows by an encrypted essay, has an encrypted number that she is found by, and a sealed photo in a blob.
type person struct {
	patterns.Meta
	Department, Name string
	ID               int
	Badge            string
	Number           string `encrypt:"true"`
	Essay            string `encrypt:"true"`
	Photo            []byte
}

func personKey(id int) patterns.Key {
	return patterns.Key{Partition: "Sales", Row: compoundkey.Join("empid", compoundkey.Int(id, 6))}
}

func personOf(id int, version string) *person {
	return &person{Department: "Sales", Name: "Name " + version, ID: id, Badge: fmt.Sprintf("badge %s %d", version, id), Number: fmt.Sprintf("number %s %d", version, id),
		Essay: strings.Repeat("essay "+version, 9_500), Photo: bytes.Repeat([]byte("photo "+version), 2_000)}
}

func samePerson(got, want *person) error {
	if got == nil || got.Name != want.Name || got.Badge != want.Badge || got.Number != want.Number || got.Essay != want.Essay || !bytes.Equal(got.Photo, want.Photo) {
		return fmt.Errorf("read %+v", got)
	}
	return nil
}

// office is what everybody in a test shares: the names of its tables, and the registry, which is out of the faults' way.
type office struct {
	registry                        *encryption.Registry
	beacon                          encryption.Beacon
	table, copies, queue, container string
}

// desk is what one process has.
type desk struct {
	people   *patterns.Repository[person]
	name     *intrapartition.Index[person]
	number   *intrapartition.Index[person]
	badge    *interpartition.Index[person]
	photo    *largeentities.Property[person]
	queue    *eventual.Queue
	copies   *patterns.Table
	photos   *container.Client
	registry *encryption.Registry
}

const officeVisibility = 10 * time.Second

func newOffice(t testing.TB, s *storagetest.Service) *office {
	t.Helper()
	w := worldOn(t, storagetest.Simulator(t, nil))
	check(t, w.registry.CreateBeacon(t.Context(), "number"))
	o := &office{w.registry, must[encryption.Beacon](t)(w.registry.Beacon(t.Context(), "number", 0)), s.TableName(t), s.TableName(t), s.QueueName(t), s.ContainerName(t)}
	d := must[*desk](t)(o.open(s))
	check(t, d.people.Table().Create(t.Context()), d.copies.Create(t.Context()), d.queue.Create(t.Context()), second(d.photos.Create(t.Context(), nil)))
	return o
}

func (o *office) open(s *storagetest.Service) (*desk, error) {
	account, err := patterns.NewAccountFromConnectionString(s.ConnectionString, &patterns.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	sealer, err := encryption.NewStream(o.registry, nil)
	if err != nil {
		return nil, err
	}
	id := func(p *person) compoundkey.Part { return compoundkey.Int(p.ID, 6) }
	d := &desk{copies: account.Table(o.copies), photos: account.Container(o.container), registry: o.registry}
	d.name = intrapartition.NewIndex("name", func(p *person) compoundkey.Part { return compoundkey.Tuple(compoundkey.String(p.Name), id(p)) })
	d.number = intrapartition.NewIndex("number", func(p *person) compoundkey.Part { return o.beacon.Part(patterns.String(p.Number)) }).Keep("Name", "Number")
	d.badge = interpartition.NewIndex("badge", func(p *person) compoundkey.Part { return compoundkey.String(p.Badge) }).In(d.copies).Keep("Name", "Number", "Photo")
	d.photo = largeentities.NewProperty[person]("Photo", d.photos, &largeentities.Options{Sealer: sealer})
	if d.queue, err = eventual.NewQueue(account, o.queue, &eventual.QueueOptions{VisibilityTimeout: officeVisibility}); err != nil {
		return nil, err
	}
	d.people, err = patterns.NewRepository(account.Table(o.table), patterns.Schema[person]{
		Key: func(p *person) patterns.Key { return personKey(p.ID) }, RowPrefix: "empid", Intents: d.queue,
	}, d.name, encryption.New("encryption", o.registry, nil), d.photo, d.number, d.badge,
		widentities.New(&widentities.Options{FirstRow: []string{"Department", "Name", "ID", "Badge", "Photo"}}))
	return d, err
}

// agrees checks that a person is what is wanted by her key and by each index, and is found by nothing of the other; a nil want is nobody.
func (d *desk) agrees(ctx context.Context, o *office, id int, want, other *person) error {
	got, err := d.people.Get(ctx, personKey(id))
	if want == nil {
		if !errors.Is(err, patterns.ErrNotFound) {
			return fmt.Errorf("there is still %+v, %v", got, err)
		}
	} else if err = errors.Join(err, samePerson(got, want)); err != nil {
		return err
	}
	for _, p := range []*person{want, other} {
		if p == nil {
			continue
		}
		byName, err := d.name.GetPart(ctx, "Sales", compoundkey.Tuple(compoundkey.String(p.Name), compoundkey.Int(p.ID, 6)))
		byNumber, numberErr := d.number.GetPart(ctx, "Sales", o.beacon.Part(patterns.String(p.Number)))
		whole, wholeErr := d.number.GetWhole(ctx, "Sales", o.beacon.Part(patterns.String(p.Number)))
		byBadge, badgeErr := d.badge.GetPart(ctx, "Sales", compoundkey.String(p.Badge))
		all := errors.Join(err, numberErr, wholeErr, badgeErr)
		if p == other {
			for _, err := range []error{err, numberErr, wholeErr, badgeErr} {
				if !errors.Is(err, patterns.ErrNotFound) {
					return fmt.Errorf("%s is still found: %w", p.Name, errors.Join(all, errors.New("one is")))
				}
			}
			continue
		}
		if all != nil {
			return all
		}
		if err := errors.Join(samePerson(byName, p), samePerson(whole, p)); err != nil {
			return err
		}
		if byNumber.Number != p.Number || byNumber.Essay != "" || byBadge.Number != p.Number || !bytes.Equal(byBadge.Photo, p.Photo) || byBadge.Essay != "" {
			return fmt.Errorf("the lean copies are %+v and %+v", byNumber, byBadge)
		}
	}
	return nil
}

// TestEverything goes through all verbs with an entity that has all patterns at once.
func TestEverything(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	o := newOffice(t, s)
	d := must[*desk](t)(o.open(s))
	a, b, c := personOf(1, "a"), personOf(1, "b"), personOf(1, "c")
	check(t, d.people.Insert(ctx, personOf(1, "a")), d.agrees(ctx, o, 1, a, b))
	found := must[*person](t)(d.name.GetPart(ctx, "Sales", compoundkey.Tuple(compoundkey.String(a.Name), compoundkey.Int(1, 6))))
	b.Meta = found.Meta
	check(t, d.people.Replace(ctx, b), d.agrees(ctx, o, 1, b, a))
	must[*person](t)(d.people.Update(ctx, personKey(1), func(p *person) error {
		p.Name, p.Badge, p.Number, p.Essay, p.Photo = c.Name, c.Badge, c.Number, c.Essay, c.Photo
		return nil
	}))
	check(t, d.agrees(ctx, o, 1, c, b))
	if err := d.people.Merge(ctx, must[*person](t)(d.people.Get(ctx, personKey(1))), "Name"); !errors.Is(err, patterns.ErrInvalid) {
		t.Errorf("a merge: %v", err)
	}
	check(t, d.people.Insert(ctx, personOf(2, "z")))
	d.rotate(t, o, c)
	d.mend(t, o, c)
	check(t, d.people.Delete(ctx, must[*person](t)(d.people.Get(ctx, personKey(1)))), d.agrees(ctx, o, 1, nil, c))
	check(t, d.agrees(ctx, o, 2, personOf(2, "z"), c))
	for row, err := range d.people.Table().Entities().Query().AllowTableScan().All(ctx) {
		check(t, err)
		for _, p := range row.Properties {
			raw, _ := p.Value.Bytes()
			text, _ := p.Value.Str()
			for _, secret := range []string{"number z", "essay z", "photo z"} {
				if strings.Contains(text, secret) || bytes.Contains(raw, []byte(secret)) {
					t.Errorf("%v of %s has %q in clear", row.Key, p.Name, secret)
				}
			}
		}
	}
	n := 0
	for pager := d.photos.NewListBlobsFlatPager(nil); pager.More(); {
		n += len(must[container.ListBlobsFlatResponse](t)(pager.NextPage(ctx)).Segment.BlobItems)
	}
	if n != 1 {
		t.Errorf("%d blobs are left, of one person", n)
	}
}

// TestSpilledIsRefused: what is to be encrypted and leaves its row in clear is refused, whichever pattern is named first.
func TestSpilledIsRefused(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	w := worldOn(t, s)
	queue := must[*eventual.Queue](t)(eventual.NewQueue(w.account, "queue", nil))
	refused := func(what string, o *encryption.Options, property string, sealed bool) {
		t.Helper()
		for _, spillFirst := range []bool{true, false} {
			options := &largeentities.Options{}
			if sealed {
				options.Sealer = streamOf(t, w.registry, "")
			}
			both := []patterns.Pattern{largeentities.NewProperty[person](property, w.account.Container("photos"), options), encryption.New("encryption", w.registry, o)}
			if !spillFirst {
				both[0], both[1] = both[1], both[0]
			}
			_, err := patterns.NewRepository(w.account.Table("People"), patterns.Schema[person]{Key: func(p *person) patterns.Key { return personKey(p.ID) }, Intents: queue}, both...)
			if !errors.Is(err, patterns.ErrInvalid) || !strings.Contains(err.Error(), property) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	all := &encryption.Options{Resolver: func(_, _, _ string) bool { return true }}
	refused("a tag", nil, "Essay", false)
	refused("a tag, and a sealer", nil, "Essay", true)
	refused("a resolver", all, "Photo", false)
}

// TestUsesInPackedRows: a value that is packed in texts is counted once, wherever the texts are cut.
func TestUsesInPackedRows(t *testing.T) {
	a := loader(t, nil)
	seal, _ := a.stored(t, aKey, text("A", "1")).Get(encryption.SealProperty).Bytes()
	id := encryption.DataKeyID(seal[8:24])
	packed := "VFBFnone:s1:x_encryptionSeal:b200:" + base64.StdEncoding.EncodeToString(seal)
	table := a.account.Table("Packed")
	check(t, table.Create(t.Context()))
	for cut := range 90 {
		first, last := packed[:cut], packed[cut:]
		put(t, table, &patterns.Entity{Key: patterns.Key{Partition: "p", Row: "1"}, Properties: patterns.Properties{text("Pack01", first[len(first)/2:]), text("Pack00", first[:len(first)/2])}})
		put(t, table, &patterns.Entity{Key: patterns.Key{Partition: "p", Row: "2"}, Properties: patterns.Properties{text("Pack00", last)}})
		if uses := must[map[encryption.DataKeyID]int64](t)(encryption.Uses(t.Context(), table)); uses[id] != 1 {
			t.Errorf("cut at %d: %v", cut, uses)
		}
	}
}

// rotate brings all people under another data key, photos too. Every row of every copy counts as a use.
func (d *desk) rotate(t *testing.T, o *office, want *person) {
	t.Helper()
	ctx := t.Context()
	uses := must[map[encryption.DataKeyID]int64](t)(encryption.Uses(ctx, d.people.Table(), d.copies))
	next := must[encryption.DataKeyID](t)(d.registry.CreateDataKey(ctx))
	for id := 1; id <= 2; id++ {
		check(t, d.photo.Reseal(ctx, personKey(id))) // writes the entity, and so its properties
	}
	p, err := encryption.Reencrypt(ctx, d.people, nil)
	check(t, err)
	after := must[map[encryption.DataKeyID]int64](t)(encryption.Uses(ctx, d.people.Table(), d.copies))
	// Number, Essay and seal in the rows of a person and of the copy by name, within packed values; Number in two lean copies.
	const each = 3 + 3 + 1 + 1
	for _, n := range uses {
		if n != 2*each {
			t.Errorf("%d uses", n)
		}
	}
	if len(uses) != 1 || len(after) != 1 || after[next] != 2*each || p.Entities != 2 || p.Rewritten != 0 {
		t.Errorf("uses were %v and are %v; %+v", uses, after, p)
	}
	check(t, d.agrees(ctx, o, 1, want, nil))
}

// mend takes copies away, and has them repaired, and all rebuilt.
func (d *desk) mend(t *testing.T, o *office, want *person) {
	t.Helper()
	ctx := t.Context()
	options := patterns.VerifyOptions{Lag: time.Millisecond}
	for found, err := range d.people.Verify(ctx, &options) {
		t.Errorf("%+v, %v", found, err)
	}
	lean := patterns.Key{Partition: "Sales", Row: compoundkey.Join("number", o.beacon.Part(patterns.String(want.Number)))}
	var outside patterns.Key
	for row, err := range d.copies.Entities().Query().Partition("badge_Sales").Select("Name").All(ctx) {
		check(t, err)
		if row.Properties.Get("Name") == patterns.String(want.Name) {
			outside = row.Key
		}
	}
	check(t, d.people.Table().Entities().DeleteUnconditional(ctx, lean), d.copies.Entities().DeleteUnconditional(ctx, outside))
	missing := 0
	for found, err := range d.people.Verify(ctx, &options) {
		check(t, err)
		if found.Kind == patterns.Missing {
			missing++
		}
	}
	if missing != 2 {
		t.Errorf("%d copies are found to be missing", missing)
	}
	for one, err := range d.people.Repair(ctx, &patterns.RepairOptions{VerifyOptions: options}) {
		check(t, err, one.Err)
	}
	check(t, d.agrees(ctx, o, 1, want, nil), d.copies.Entities().DeleteUnconditional(ctx, outside))
	if report, err := d.people.Rebuild(ctx, nil); err != nil || report.Written != 1 || report.Failed != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	check(t, d.agrees(ctx, o, 1, want, nil))
	for found, err := range d.people.Verify(ctx, &options) {
		t.Errorf("after all is mended: %+v, %v", found, err)
	}
}

// TestEverythingFaults breaks an insert and a replace of a person at every storage call; who she is afterwards is agreed on by all
// indexes, the blob, and the rows.
func TestEverythingFaults(t *testing.T) {
	dies := []storagetest.Caller{storagetest.ProcessDies}
	for _, c := range []struct {
		name          string
		before, after *person
		callers       []storagetest.Caller
		floor         int
	}{
		{"Insert", nil, personOf(1, "b"), dies, 14},
		{"Replace", personOf(1, "a"), personOf(1, "b"), dies, 24},
		{"Lost", personOf(1, "a"), personOf(1, "b"), []storagetest.Caller{storagetest.CallerGivesUp}, 24},
	} {
		if c.name != "Insert" && testing.Short() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			storagetest.Sweep(t, storagetest.SweepCase{Floor: c.floor, Callers: c.callers, Faults: []storagetest.Fault{storagetest.LostAnswer}, World: func(t testing.TB, s *storagetest.Service) storagetest.World {
				return sweptOffice(t, s, c.before, c.after)
			}})
		})
	}
}

func sweptOffice(t testing.TB, s *storagetest.Service, before, after *person) storagetest.World {
	o := newOffice(t, s)
	if before != nil {
		fresh := *before
		check(t, must[*desk](t)(o.open(s)).people.Insert(t.Context(), &fresh))
	}
	var mu sync.Mutex
	surely := false
	return storagetest.World{
		Operate: func(ctx context.Context, s *storagetest.Service) error {
			d, err := o.open(s)
			if err != nil {
				return err
			}
			next := *after
			if before == nil {
				err = d.people.Insert(ctx, &next)
			} else if old, getErr := d.people.Get(ctx, personKey(1)); getErr != nil {
				err = getErr
			} else {
				next.Meta = old.Meta
				err = d.people.Replace(ctx, &next)
			}
			mu.Lock()
			defer mu.Unlock()
			surely = surely || err == nil
			return err
		},
		Recover: func(ctx context.Context, s *storagetest.Service) error {
			for range 3 {
				s.Wait(officeVisibility + time.Second)
				d, err := o.open(s)
				if err != nil {
					return err
				}
				worker, err := eventual.NewWorker(d.queue, nil, &eventual.WorkerOptions{MaxDequeues: 1000})
				if err != nil {
					return err
				}
				if _, err := worker.Drain(ctx); err != nil {
					return err
				}
			}
			return nil
		},
		Check: func(ctx context.Context, s *storagetest.Service, _ storagetest.Ending) error {
			d, err := o.open(s)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			is := d.agrees(ctx, o, 1, after, before)
			if is != nil && !surely {
				is = d.agrees(ctx, o, 1, before, after)
			}
			if is != nil {
				return is
			}
			s.Wait(3 * time.Hour)
			report, err := d.photo.Sweep(ctx, nil)
			if err != nil || report.Listed != report.Referenced {
				return fmt.Errorf("the sweep of the blobs: %+v, %w", report, err)
			}
			return nil
		},
	}
}
