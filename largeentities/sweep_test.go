package largeentities_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// die makes a world in which changes died: n blobs that nothing points at, and as many that something does.
func die(t *testing.T, w *world, s *storagetest.Service, n int) *process {
	t.Helper()
	p := assert.Must[*process](t)(w.start(s))
	for id := range n {
		e := with(id)
		e.Photo = large("a")
		ok(t, p.repo.Insert(t.Context(), e))
		faulty, _ := s.Faulty(storagetest.On(storagetest.ReplaceEntity, storagetest.Once(storagetest.DiesBefore)))
		e.Photo = large("b")
		if err := assert.Must[*process](t)(w.start(faulty)).repo.ReplaceUnconditional(t.Context(), e); !errors.Is(err, storagetest.ErrDied) {
			t.Fatalf("%v", err)
		}
	}
	return p
}

// TestSweep: what dead processes left is found when it is old enough, and nothing else is touched.
func TestSweep(t *testing.T) {
	ctx, s := context.Background(), storagetest.Simulator(t, nil)
	w := (&world{}).open(t, s)
	p := die(t, w, s, 3)
	foreign := "contents of somebody else"
	_, err := p.blobs.NewBlockBlobClient(w.table+"/Photo/else").UploadBuffer(ctx, []byte(foreign), nil)
	ok(t, err)
	for _, step := range []struct {
		wait    time.Duration
		options *largeentities.SweepOptions
		want    string
	}{
		{0, nil, "listed 7 young 6 referenced 0 deleted 0 foreign 1"},
		{grace - time.Minute, nil, "listed 7 young 6 referenced 0 deleted 0 foreign 1"},
		{time.Minute, &largeentities.SweepOptions{DryRun: true}, "listed 7 young 0 referenced 3 deleted 3 foreign 1"},
		{0, &largeentities.SweepOptions{Grace: 2 * grace}, "listed 7 young 6 referenced 0 deleted 0 foreign 1"},
		{0, nil, "listed 7 young 0 referenced 3 deleted 3 foreign 1"},
		{0, nil, "listed 4 young 0 referenced 3 deleted 0 foreign 1"},
	} {
		s.Wait(step.wait)
		r := assert.Must[largeentities.SweepReport](t)(p.photo.Sweep(ctx, step.options))
		got := fmt.Sprintf("listed %d young %d referenced %d deleted %d foreign %d", r.Listed, r.Young, r.Referenced, r.Deleted, r.Foreign)
		if got != step.want || r.Failed != 0 || r.Bytes != int64(r.Deleted*len(large("b"))) || r.Resume != "" {
			t.Errorf("%s, want %s: %+v", got, step.want, r)
		}
	}
	_, err = p.blobs.NewBlobClient(w.table+"/Photo/else").Delete(ctx, nil)
	ok(t, err)
	if found := assert.Must[map[tables.Key]string](t)(w.check(ctx, s)); len(found) != 3 {
		t.Error(found)
	}
}

// TestSweepMisuse: what would make a sweep unsafe is refused.
func TestSweepMisuse(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	w := (&world{}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	free := largeentities.NewProperty[employee]("Photo", p.blobs, nil)
	_, unattached := free.Sweep(t.Context(), nil)
	_, negative := p.photo.Sweep(t.Context(), &largeentities.SweepOptions{Grace: -1})
	_, token := p.photo.Sweep(t.Context(), &largeentities.SweepOptions{Resume: "bm9uc2Vuc2U"})
	for err, kind := range map[error]error{unattached: tables.ErrWiring, negative: tables.ErrWiring, token: tables.ErrInvalid} {
		if !errors.Is(err, kind) {
			t.Errorf("%v", err)
		}
	}
}

// TestSweepLeavesUndated: a blob that does not say for how long its writer may take is left alone at any age; what it holds stays readable.
func TestSweepLeavesUndated(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	w := (&world{}).open(t, s)
	p := die(t, w, s, 2)
	for pager := p.blobs.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Include: container.ListBlobsInclude{Metadata: true}}); pager.More(); {
		page, err := pager.NextPage(ctx)
		ok(t, err)
		for i, item := range page.Segment.BlobItems {
			for name := range item.Metadata {
				if strings.EqualFold(name, "tpterm") {
					delete(item.Metadata, name)
				}
			}
			if i%2 == 0 {
				nonsense := []string{"-600", "soon", "1e3", "99999999999999999999"}[i/2%4]
				item.Metadata["tpterm"] = &nonsense
			}
			_, err := p.blobs.NewBlobClient(*item.Name).SetMetadata(ctx, item.Metadata, nil)
			ok(t, err)
		}
	}
	s.Wait(1000 * time.Hour)
	if r := assert.Must[largeentities.SweepReport](t)(p.photo.Sweep(ctx, nil)); r.Listed != 4 || r.Foreign != 4 || r.Deleted != 0 {
		t.Errorf("%+v", r)
	}
	for id := range 2 {
		if e := assert.Must[*employee](t)(p.repo.Get(ctx, at(id))); short(e.Photo) != "a74" {
			t.Errorf("%d has %s", id, short(e.Photo))
		}
	}
}

// TestSweepUnreadable: where the entity cannot be read, its blobs stay.
func TestSweepUnreadable(t *testing.T) {
	ctx, s := context.Background(), storagetest.Simulator(t, nil)
	w := (&world{}).open(t, s)
	die(t, w, s, 2)
	s.Wait(grace)
	faulty, _ := s.Faulty(storagetest.On(storagetest.GetEntity, storagetest.Once(storagetest.Before500)))
	r := assert.Must[largeentities.SweepReport](t)(assert.Must[*process](t)(w.start(faulty.WithRetries(0))).photo.Sweep(ctx, nil))
	if r.Failed != 2 || r.Deleted != 1 || r.Referenced != 1 || !errors.Is(r.LastFailure, tables.ErrUnavailable) {
		t.Errorf("%+v", r)
	}
}

// TestDeleteFails: a blob that cannot be deleted after its change is logged, and swept.
func TestDeleteFails(t *testing.T) {
	ctx, s := context.Background(), storagetest.Simulator(t, nil)
	w := (&world{}).open(t, s)
	faulty, _ := s.Faulty(storagetest.On(storagetest.DeleteBlob, storagetest.Always(storagetest.Before500)))
	var log bytes.Buffer
	w.logger = slog.New(slog.NewTextHandler(&log, nil))
	p := assert.Must[*process](t)(w.start(faulty.WithRetries(0)))
	e := with(5)
	e.Photo = large("c")
	ok(t, p.repo.Insert(ctx, e), p.repo.Delete(ctx, e))
	if !strings.Contains(log.String(), "event=blob_left") {
		t.Errorf("the log says\n%s", log.String())
	}
	if r := assert.Must[largeentities.SweepReport](t)(w.sweepAll(ctx, s)); r.Deleted != 1 {
		t.Errorf("%+v", r)
	}
}

// twoPerPage has blobs listed by two.
type twoPerPage struct{}

func (twoPerPage) Do(req *policy.Request) (*http.Response, error) {
	if query := req.Raw().URL.Query(); query.Get("comp") == "list" {
		query.Set("maxresults", "2")
		req.Raw().URL.RawQuery = query.Encode()
	}
	return req.Next()
}

// TestSweepGoesOn: a sweep that is stopped goes on by its token, and looks at no blob twice.
func TestSweepGoesOn(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	w := (&world{}).open(t, s)
	die(t, w, s, 3)
	s.Wait(grace)
	paged := *s
	paged.ClientOptions.PerCallPolicies = append(slices.Clip(paged.ClientOptions.PerCallPolicies), twoPerPage{})
	p := assert.Must[*process](t)(w.start(&paged))
	listed, deleted, runs, token := 0, 0, 0, ""
	for ; runs < 3 && (runs == 0 || token != ""); runs++ {
		ctx, cancel := context.WithCancel(t.Context())
		told := largeentities.SweepReport{}
		r, err := p.photo.Sweep(ctx, &largeentities.SweepOptions{Resume: token, Progress: func(r largeentities.SweepReport) { told = r; cancel() }})
		if r.Resume != "" && !errors.Is(err, context.Canceled) || r.Resume == "" && err != nil || told != r {
			t.Errorf("run %d: %+v, told %+v, %v", runs, r, told, err)
		}
		listed, deleted, token = listed+r.Listed, deleted+r.Deleted, r.Resume
	}
	if listed != 6 || deleted != 3 || runs != 3 || token != "" {
		t.Errorf("%d blobs listed and %d deleted in %d runs", listed, deleted, runs)
	}
	if _, err := w.check(t.Context(), s); err != nil {
		t.Error(err)
	}
}

// TestSweepOfOneOfTwoRepositories: of two repositories on one table, a sweep of one leaves the blobs of the other's entities, however
// the schemas separate them, although it does not find these entities.
func TestSweepOfOneOfTwoRepositories(t *testing.T) {
	ctx, s := context.Background(), storagetest.Simulator(t, nil)
	for name, schemas := range map[string][2]patterns.Schema[employee]{
		"rows":  {{Rows: compoundkey.Range("empid_000001", "empid_000002")}, {Rows: compoundkey.Range("empid_000002", "empid_000003")}},
		"where": {{Where: tables.Eq("Note", "first")}, {Where: tables.Eq("Note", "second")}},
	} {
		w := (&world{}).open(t, s)
		account := assert.Must[*process](t)(w.start(s)).account
		open := func(name string, schema patterns.Schema[employee]) (*patterns.Repository[employee], *largeentities.Property[employee]) {
			schema.Name, schema.Key = name, keyOf
			photo := largeentities.NewProperty[employee]("Photo", blobstorage.Container(account, w.container), &largeentities.Options{Threshold: threshold})
			return assert.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(account.Table(w.table), schema, photo)), photo
		}
		first, photo := open("first", schemas[0])
		second, _ := open("second", schemas[1])
		mine, other := with(1), with(2)
		mine.Photo, other.Photo, other.Note = large("m"), large("o"), "second"
		ok(t, first.Insert(ctx, mine), second.Insert(ctx, other))
		s.Wait(2 * grace)
		report := assert.Must[largeentities.SweepReport](t)(photo.Sweep(ctx, nil))
		if report.Referenced != 1 || report.Foreign != 1 || report.Deleted != 0 || report.Failed != 0 {
			t.Errorf("%s: %+v", name, report)
		}
		if e, err := second.Get(ctx, at(2)); err != nil || string(e.Photo) != string(large("o")) {
			t.Errorf("%s: the other repository reads %v, %v", name, e, err)
		}
	}
}
