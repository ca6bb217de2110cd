package patterns_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

type person struct {
	tables.Meta
	Team   string
	ID     int
	Email  string
	Name   string
	Salary int64
	Photo  []byte
}

func personSchema() patterns.Schema[person] {
	return patterns.Schema[person]{
		Key: func(p *person) tables.Key {
			return tables.Key{Partition: p.Team, Row: compoundkey.Join("person", compoundkey.Int(p.ID, 4))}
		},
		Prefix: "person",
	}
}

func ann() *person {
	return &person{Team: "red", ID: 7, Email: "ann@contoso.com", Name: "Ann", Salary: 91_000, Photo: bytes.Repeat([]byte("ann"), 1000)}
}

// world is a repository with every kind of contribution attached.
type world struct {
	repo   *patterns.Repository[person]
	email  *intrapartition.Unique[person, compoundkey.Part]
	spill  *spilled
	sealed *sealed
}

func newWorld(t *testing.T) *world {
	t.Helper()
	a := harness.Account(t)
	w := &world{sealed: &sealed{property: "Salary"}}
	blobs := blobstorage.Container(a, storagetest.Open(t).ContainerName(t))
	if _, err := blobs.Create(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	w.spill = &spilled{property: "Photo", over: 100, blobs: blobs}
	w.email = intrapartition.NewUnique("email", func(p *person) compoundkey.Part { return compoundkey.String(p.Email) }, nil)
	// Attached in the order that is wrong for storing: the repository orders the stages itself.
	w.repo = assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(harness.NewTable(t, a), personSchema(), w.sealed, w.email, halved{}, w.spill, &headcount{}))
	return w
}

func (w *world) blobNames(t *testing.T) []string {
	t.Helper()
	var names []string
	for pager := w.spill.blobs.NewListBlobsFlatPager(nil); pager.More(); {
		page, err := pager.NextPage(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Segment.BlobItems {
			names = append(names, *item.Name)
		}
	}
	return names
}

func (w *world) rows(t *testing.T) map[string]*tables.Entity {
	t.Helper()
	rows := map[string]*tables.Entity{}
	for e, err := range w.repo.Table().Entities().Query().AllowTableScan().All(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		rows[e.Key.Row] = e
	}
	return rows
}

func same(t *testing.T, got, want *person) {
	t.Helper()
	g, w := *got, *want
	g.Meta, w.Meta = tables.Meta{}, tables.Meta{}
	if fmt.Sprint(g) != fmt.Sprint(w) {
		t.Fatalf("read %.80v..., wrote %.80v...", g, w)
	}
}

func TestSpikeAllKindsCompose(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	e := ann()
	if err := w.repo.Insert(ctx, e); err != nil {
		t.Fatal(err)
	}
	rows := w.rows(t)
	if want := []string{"email_ann@contoso.com", "email_ann@contoso.com\uFFFB\uFFFB01", "person_0007", "person_0007\uFFFB\uFFFB01", "tally"}; !slices.Equal(sortedKeys(rows), want) {
		t.Fatalf("rows are %q", sortedKeys(rows))
	}
	for key, row := range rows {
		if row.Properties.Has("Photo") {
			t.Fatalf("row %s holds the photo", key)
		}
		if salary := row.Get("Salary"); !salary.IsNull() && salary.Type() != tables.TypeBinary {
			t.Fatalf("row %s holds the salary in clear", key)
		}
	}
	if n := len(w.blobNames(t)); n != 1 {
		t.Fatalf("%d blobs", n)
	}
	got, err := w.email.In("red").Get(ctx, compoundkey.String("ann@contoso.com"))
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, ann())

	got.Photo, got.Email = bytes.Repeat([]byte("new"), 2000), "ann@fabrikam.com"
	if err := w.repo.Replace(ctx, got); err != nil {
		t.Fatal(err)
	}
	again, err := w.repo.Get(ctx, got.Key())
	if err != nil {
		t.Fatal(err)
	}
	same(t, again, got)
	if n := len(w.blobNames(t)); n != 1 {
		t.Fatalf("%d blobs after the replacement", n)
	}
	if err := w.repo.Merge(ctx, again, "Name"); !errors.Is(err, tables.ErrInvalid) {
		t.Fatalf("merge of a rewritten entity: %v", err)
	}
	found := 0
	for p, err := range w.repo.Query().Partition("red").All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		same(t, p, got)
		found++
	}
	if found != 1 {
		t.Fatalf("the query found %d entities", found)
	}
	if err := w.repo.Delete(ctx, again); err != nil {
		t.Fatal(err)
	}
	if rows := w.rows(t); len(rows) != 1 || rows["tally"].Get("N") != tables.Int64(0) {
		t.Fatalf("left %q", sortedKeys(rows))
	}
	if names := w.blobNames(t); len(names) != 0 {
		t.Fatalf("left blobs %q", names)
	}
}

func sortedKeys(rows map[string]*tables.Entity) []string {
	var keys []string
	for key := range rows {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func TestSpikeFailedInsertLeavesNoBlob(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	if err := w.repo.Insert(ctx, ann()); err != nil {
		t.Fatal(err)
	}
	if err := w.repo.Insert(ctx, ann()); !errors.Is(err, tables.ErrExists) {
		t.Fatalf("error is %v", err)
	}
	if names := w.blobNames(t); len(names) != 1 {
		t.Fatalf("blobs are %q", names)
	}
}

func TestSpikeMovedCiphertextDoesNotOpen(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	if err := w.repo.Insert(ctx, ann()); err != nil {
		t.Fatal(err)
	}
	client := w.repo.Table().Client()
	for _, row := range []string{"person_0007", "person_0007\uFFFB\uFFFB01"} {
		stored, err := client.GetEntity(ctx, "red", row, nil)
		if err != nil {
			t.Fatal(err)
		}
		moved := map[string]any{}
		if err := json.Unmarshal(bytes.ReplaceAll(stored.Value, []byte("person_0007"), []byte("person_0008")), &moved); err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(moved, func(name string, _ any) bool {
			return strings.HasPrefix(name, "odata.") || strings.HasPrefix(name, "Timestamp")
		})
		body, err := json.Marshal(moved)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.AddEntity(ctx, body, nil); err != nil {
			t.Fatal(err)
		}
	}
	_, err := w.repo.Get(ctx, tables.Key{Partition: "red", Row: "person_0008"})
	if e := harness.WantKind(t, err, tables.ErrGarbled); e.Pattern != "sealed" {
		t.Fatalf("%+v", e)
	}
}

func TestSpikeSharedRowUnderConflicts(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	const writers = 8
	var running sync.WaitGroup
	errs := make([]error, writers)
	for i := range writers {
		running.Go(func() {
			p := ann()
			p.ID, p.Email = i, fmt.Sprintf("p%d@contoso.com", i)
			errs[i] = w.repo.Insert(ctx, p)
		})
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if n := w.rows(t)["tally"].Get("N"); n != tables.Int64(writers) {
		t.Fatalf("the tally is %#v", n)
	}
}

func TestSpikeExplainWritesNothing(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	x, err := w.repo.Explain(ctx, driver.ChangeInsert, ann())
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Rows) != 5 || len(x.Outside) != 1 || len(x.Requests) != 3 || x.Requests[0] != "reads to plan: 1" || !strings.Contains(x.String(), `email_ann@contoso.com\ufffb\ufffb01`) {
		t.Fatalf("%s", x)
	}
	if rows, blobs := w.rows(t), w.blobNames(t); len(rows)+len(blobs) != 0 {
		t.Fatalf("explaining wrote %q and %q", sortedKeys(rows), blobs)
	}
}
