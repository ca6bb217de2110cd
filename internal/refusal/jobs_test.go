package refusal_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/backup"
	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/dataseries"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/eventual/archive"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/logdata"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// doc is an entity with values in blobs, and in lists.
type doc struct {
	tables.Meta
	PartitionKey, RowKey string
	Group                string
	Text                 string
	Video                largeentities.Stream `table:",omitzero"`
}

// process is one process of a program that uses every job.
type process struct {
	service *storagetest.Service
	account *tables.Account
	store   *patterns.Store
	docs    *patterns.Repository[doc]
	text    *largeentities.Property[doc]
	groups  *indexentities.Index[doc, string]
	counter *dataseries.Counter[int64]
	mail    *eventual.Queue
	people  *patterns.Repository[person]
	mover   *archive.Mover[person]
	vault   *backup.Vault
	log     *logdata.Log
	got     []string // the bodies of handled messages

	restored *tables.Table
}

// person is an entity that is moved into a blob.
type person struct {
	tables.Meta
	PartitionKey, RowKey string
	Name                 string
}

var (
	key   = tables.Key{Partition: "p", Row: "1"}
	noon  = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	first = strings.Repeat("a", 200)
	other = strings.Repeat("b", 200)
	large = strings.Repeat("m", 100_000) // a body that is stored in a blob
)

// start starts a process on a service.
func start(s *storagetest.Service) (*process, error) {
	p := &process{service: s}
	var err error
	fail := func(next error) { err = errors.Join(err, next) }
	if p.account, err = tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}); err != nil {
		return nil, err
	}
	if p.store, err = patterns.Open("jobs", &patterns.StoreOptions{Account: p.account}); err != nil {
		return nil, err
	}
	options := &largeentities.Options{Threshold: 10}
	p.text = largeentities.NewProperty[doc]("Text", blobstorage.Open(p.store, "docs"), options)
	video := largeentities.NewStream("Video", func(d *doc) *largeentities.Stream { return &d.Video }, blobstorage.Open(p.store, "docs"), options)
	p.groups = indexentities.NewInTable("groups", func(d *doc) string { return d.Group }, p.store.Table("Lists"), nil)
	var next error
	p.docs, next = patterns.NewRepository(p.store.Table("Docs"), patterns.Schema[doc]{}, p.text, video, p.groups)
	fail(next)
	p.counter, next = dataseries.NewCounter[int64](p.store.Table("Series"), "hits", 4, &dataseries.Options{Container: blobstorage.Open(p.store, "series")})
	fail(next)
	p.mail, next = eventual.OpenQueue(p.store, "mail", nil)
	fail(next)
	p.people, next = patterns.NewRepository(p.store.Table("People"), patterns.Schema[person]{})
	fail(next)
	p.mover, next = archive.New(p.mail, "leave", p.people, archive.ToContainer(blobstorage.Open(p.store, "left"), func(v *person) string { return v.RowKey + ".json" }), nil)
	fail(next)
	p.restored = p.store.Table("Restored")
	p.vault, next = backup.OpenContainer(blobstorage.Open(p.store, "vault"), "")
	fail(next)
	p.log, next = logdata.New(blobstorage.Open(p.store, "logs"), "web", nil)
	fail(next)
	return p, err
}

// work runs a worker of a queue until no message is visible.
func (p *process) work(ctx context.Context, q *eventual.Queue) error {
	w, err := eventual.NewWorker(q, map[string]eventual.Handler{"note": func(_ context.Context, m *eventual.Message) error {
		var body string
		err := m.Decode(&body)
		p.got = append(p.got, body)
		return err
	}}, &eventual.WorkerOptions{Concurrency: 1})
	if err != nil {
		return err
	}
	_, err = w.Drain(ctx)
	return err
}

// job is an operation of the program. before prepares it, and run is what meets the refusal.
type job struct {
	name        string
	before, run func(ctx context.Context, p *process) error
	// check runs after the refusal has ended and workers are done. It returns an error if something is lost.
	check func(ctx context.Context, p *process) error
}

func insert(ctx context.Context, p *process) error {
	return p.docs.Insert(ctx, &doc{PartitionKey: key.Partition, RowKey: key.Row, Group: "x", Text: first, Video: largeentities.NewStreamBytes([]byte(first), nil)})
}

// whole reads the entity and all that belongs to it. It may have the first value or the other.
func whole(ctx context.Context, p *process) error {
	d, err := p.docs.Get(ctx, key)
	if err != nil {
		return err
	}
	if d.Text != first && d.Text != other {
		return fmt.Errorf("the text is %.10q", d.Text)
	}
	r, err := d.Video.Open(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	video, err := io.ReadAll(r)
	if err == nil && string(video) != d.Text {
		err = fmt.Errorf("the video is %.10q", video)
	}
	return err
}

func absent(ctx context.Context, p *process) error {
	if _, err := p.docs.Get(ctx, key); !errors.Is(err, tables.ErrNotFound) {
		return whole(ctx, p)
	}
	return nil
}

func replace(ctx context.Context, p *process) error {
	d, err := p.docs.Get(ctx, key)
	if err != nil {
		return err
	}
	d.Text, d.Video, d.Group = other, largeentities.NewStreamBytes([]byte(other), nil), "y"
	return p.docs.Replace(ctx, d)
}

// documents are the jobs on values in blobs, and on lists.
func documents() []job {
	return []job{
		{"insert", nil, insert, absent},
		{"replace", insert, replace, whole},
		{"delete", insert, func(ctx context.Context, p *process) error { return p.docs.DeleteUnconditional(ctx, key) }, absent},
		{"get", insert, func(ctx context.Context, p *process) error { _, err := p.docs.Get(ctx, key); return err }, whole},
		{"stream", insert, whole, whole},
		{"discard", insert, func(ctx context.Context, p *process) error {
			gone, err := largeentities.Discard(ctx, p.docs, key)
			if len(gone) > 0 {
				err = errors.Join(err, fmt.Errorf("%w: Discard removed %q", errLost, gone))
			}
			return err
		}, whole},
		{"signed URL", insert, func(ctx context.Context, p *process) error {
			_, err := p.text.SignedURL(ctx, key, time.Now().Add(time.Hour))
			return err
		}, whole},
		{"sweep", func(ctx context.Context, p *process) error {
			return errors.Join(insert(ctx, p), abandon(ctx, p, "one", "two"))
		}, func(ctx context.Context, p *process) error {
			p.service.Wait(30 * 24 * time.Hour)
			report, err := p.text.Sweep(ctx, nil)
			if err == nil && report.Young != 0 {
				err = fmt.Errorf("%w: the sweep counts a refused delete as young: %+v", errLost, report)
			}
			return errors.Join(err, report.LastFailure)
		}, whole},
		{"find", insert, func(ctx context.Context, p *process) error {
			_, err := ids(ctx, p, "x")
			return err
		}, listed},
		{"verify", insert, func(ctx context.Context, p *process) error { _, err := p.docs.Verify(ctx, nil); return err }, listed},
		{"rebuild", insert, func(ctx context.Context, p *process) error { _, err := p.docs.Rebuild(ctx, nil); return err }, listed},
	}
}

// abandon leaves blobs at which no entity points.
func abandon(ctx context.Context, p *process, names ...string) (err error) {
	for _, row := range names {
		err = errors.Join(err, p.docs.Insert(ctx, &doc{PartitionKey: "abandoned", RowKey: row, Text: first}))
	}
	err = errors.Join(err, harness.Settle(ctx, p.store)) // no intent may find the row gone
	for _, row := range names {
		_, deleteErr := p.docs.Table().Client().DeleteEntity(ctx, "abandoned", row, nil)
		err = errors.Join(err, deleteErr)
	}
	return err
}

func ids(ctx context.Context, p *process, group string) (rows []string, err error) {
	for d, err := range p.groups.Find(ctx, group, nil) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, d.RowKey)
	}
	return rows, nil
}

func listed(ctx context.Context, p *process) error {
	if found, err := ids(ctx, p, "x"); err != nil || !slices.Equal(found, []string{key.Row}) {
		return fmt.Errorf("group x has %v (%w)", found, err)
	}
	return whole(ctx, p)
}

func add(ctx context.Context, p *process) error {
	_, err := p.counter.AddOnce(ctx, key, 1, 5, "op")
	return err
}

// counted checks that the series has the first addition, and perhaps another one.
func counted(ctx context.Context, p *process) error {
	v, err := p.counter.Read(ctx, key)
	if err != nil {
		return err
	}
	if n := v.Slots[1].Value; n != 5 && n != 12 {
		return fmt.Errorf("the slot is %d", n)
	}
	return nil
}

func series() []job {
	read := func(ctx context.Context, p *process) error {
		for _, err := range p.counter.ReadMany(ctx, key.Partition, compoundkey.All()) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	return []job{
		{"series: add", add, func(ctx context.Context, p *process) error { return p.counter.Add(ctx, key, 1, 7) }, counted},
		{"series: add once", add, func(ctx context.Context, p *process) error {
			_, err := p.counter.AddOnce(ctx, key, 1, 7, "another")
			return err
		}, counted},
		{"series: read", add, func(ctx context.Context, p *process) error { _, err := p.counter.Read(ctx, key); return err }, counted},
		{"series: read many", add, read, counted},
		{"series: sweep", add, func(ctx context.Context, p *process) error {
			p.service.Wait(24 * time.Hour)
			_, err := p.counter.SweepMarkers(ctx, 2*time.Hour, nil)
			return err
		}, counted},
		{"series: delete", add, func(ctx context.Context, p *process) error { return p.counter.Delete(ctx, key) }, nil},
	}
}

func send(ctx context.Context, p *process) error {
	_, err := p.mail.Send(ctx, "note", large, nil)
	return err
}

// arrived checks that the message that was sent has been handled, or is on a queue with its body.
func arrived(ctx context.Context, p *process) error {
	if len(p.got) == 0 {
		n, err := p.mail.Poison().Requeue(ctx, nil)
		if err != nil || n == 0 {
			return fmt.Errorf("the message is nowhere (%w)", err)
		}
		if err := p.work(ctx, p.mail); err != nil {
			return err
		}
	}
	if len(p.got) == 0 || p.got[0] != large {
		return errors.New("the message has no body")
	}
	return nil
}

func messages() []job {
	poisoned := func(ctx context.Context, p *process) error {
		_, err := p.mail.Send(ctx, "unknown", large, &eventual.SendOptions{})
		return errors.Join(err, p.work(ctx, p.mail))
	}
	return []job{
		{"queue: send", nil, send, nil},
		{"queue: handle", send, func(ctx context.Context, p *process) error { return p.work(ctx, p.mail) }, arrived},
		{"queue: length", send, func(ctx context.Context, p *process) error { _, err := p.mail.Length(ctx); return err }, arrived},
		{"queue: requeue", poisoned, func(ctx context.Context, p *process) error { _, err := p.mail.Poison().Requeue(ctx, nil); return err }, nil},
		{"queue: purge", poisoned, func(ctx context.Context, p *process) error { _, err := p.mail.Poison().Purge(ctx, nil); return err }, nil},
		{"queue: sweep", send, func(ctx context.Context, p *process) error {
			p.service.Wait(24 * time.Hour)
			report, err := p.mail.SweepClaims(ctx, nil)
			return errors.Join(err, report.LastFailure)
		}, arrived},
	}
}

func hire(ctx context.Context, p *process) error {
	return p.people.Insert(ctx, &person{PartitionKey: key.Partition, RowKey: key.Row, Name: "June"})
}

// somewhere checks that the person is at the source or in the archive.
func somewhere(ctx context.Context, p *process) error {
	v, err := p.people.Get(ctx, key)
	if errors.Is(err, tables.ErrNotFound) {
		v, err = archive.Read[person](ctx, blobstorage.Open(p.store, "left"), key.Row+".json")
	}
	if err == nil && v.Name != "June" {
		err = fmt.Errorf("the name is %q", v.Name)
	}
	return err
}

func archives() []job {
	move := func(ctx context.Context, p *process) error {
		v, err := p.people.Get(ctx, key)
		if err != nil {
			return err
		}
		return errors.Join(p.mover.Move(ctx, v), p.work(ctx, p.mail))
	}
	return []job{
		{"archive: move", hire, move, somewhere},
		{"archive: read", func(ctx context.Context, p *process) error { return errors.Join(hire(ctx, p), move(ctx, p)) }, func(ctx context.Context, p *process) error {
			_, err := archive.Read[person](ctx, blobstorage.Open(p.store, "left"), key.Row+".json")
			return err
		}, somewhere},
	}
}

func backups() []job {
	save := func(ctx context.Context, p *process) error {
		_, err := p.vault.Backup(ctx, "monday", []*tables.Table{p.people.Table()}, nil)
		return err
	}
	saved := func(ctx context.Context, p *process) error { return errors.Join(hire(ctx, p), save(ctx, p)) }
	verified := func(ctx context.Context, p *process) error { _, err := p.vault.Verify(ctx, "monday", nil); return err }
	again := func(ctx context.Context, p *process) error {
		token, err := p.vault.Unfinished(ctx, "monday")
		if err != nil || token == "" {
			return err
		}
		_, err = p.vault.Backup(ctx, "monday", []*tables.Table{p.people.Table()}, &backup.Options{Resume: token})
		return errors.Join(err, verified(ctx, p))
	}
	return []job{
		{"backup: save", hire, save, again},
		{"backup: verify", saved, verified, verified},
		{"backup: restore", saved, func(ctx context.Context, p *process) error {
			_, err := p.vault.Restore(ctx, "monday", []backup.Target{{Name: p.people.Table().Name(), To: p.restored}}, nil)
			return err
		}, verified},
	}
}

func logs() []job {
	write := func(ctx context.Context, p *process) error {
		w, err := p.log.NewWriter(nil)
		if err != nil {
			return err
		}
		return errors.Join(w.Write(ctx, logdata.Record{Time: noon, Data: []byte("one")}), w.Close(ctx))
	}
	read := func(ctx context.Context, p *process) error {
		for _, err := range p.log.Query(ctx, noon, noon.Add(time.Hour), nil) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	return []job{{"log: write", nil, write, read}, {"log: read", write, read, read}}
}

func jobs() []job {
	return slices.Concat(documents(), series(), messages(), archives(), backups(), logs())
}
