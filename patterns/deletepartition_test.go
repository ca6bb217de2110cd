package patterns_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// tenancy is a store whose partitions are teams: persons with an index in the partition, one over partitions, and notes in another table; and
// persons of a second repository without patterns.
type tenancy struct {
	store           *patterns.Store
	persons, others *patterns.Repository[person]
	noted           *notes[person]
}

func openTenancy(s *storagetest.Service, prefix string) (*tenancy, error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	x := &tenancy{}
	if x.store, err = patterns.Open("teams", &patterns.StoreOptions{Account: account, Prefix: prefix, MaxOpen: -1}); err != nil {
		return nil, err
	}
	x.noted = mailNotes("notes", x.store.Table("Notes"))
	mail := interpartition.NewIndex("mail", emailPart, &interpartition.Options[person]{Table: x.store.Table("Mail")})
	if x.persons, err = patterns.NewRepository(x.store.Table("Persons"), personSchema(), emailIndex(), mail, x.noted); err != nil {
		return nil, err
	}
	x.others, err = patterns.NewRepository(x.store.Table("Others"), personSchema())
	return x, err
}

// newTenancy has two persons in team red and one in blue, in both repositories.
func newTenancy(t testing.TB, s *storagetest.Service) (x *tenancy, prefix string) {
	t.Helper()
	prefix = "T" + rand.Text()[:8]
	x = assert.Must[*tenancy](t)(openTenancy(s, prefix))
	assert.Check(t, x.store.Create(t.Context()))
	for id, team := range []string{"red", "blue", "red"} {
		for _, repo := range []*patterns.Repository[person]{x.persons, x.others} {
			p := ann()
			p.ID, p.Team, p.Email, p.Photo = id, team, fmt.Sprintf("p%d@contoso.com", id), nil
			assert.Check(t, repo.Insert(t.Context(), p))
		}
	}
	assert.Check(t, harness.Settle(t.Context(), x.store))
	return x, prefix
}

// red returns what the tables still hold of team red.
func (x *tenancy) red(ctx context.Context) (left []string, err error) {
	for _, name := range []string{"Persons", "Others", "Mail", "Notes"} {
		for row, err := range x.store.Table(name).Entities().Query().AllowTableScan().All(ctx) {
			if err != nil {
				return nil, err
			}
			if team, _ := row.Get("Team").Text(); team == "red" || row.Key.Partition == "red" {
				left = append(left, name+" "+row.Key.Row)
			}
		}
	}
	for _, email := range []string{"p0@contoso.com", "p2@contoso.com"} {
		notes, err := x.noted.table.Entities().Query().Partition(email).Page(ctx, "")
		if err != nil || len(notes.Items) > 0 {
			return append(left, "note of "+email), err
		}
	}
	return left, nil
}

func (x *tenancy) deleteRed(ctx context.Context, resume string) (patterns.DeleteReport, error) {
	return x.store.DeletePartition(hasty(ctx), "red", &patterns.DeleteOptions{Resume: resume, Found: func(f patterns.Finding) error { return fmt.Errorf("not deleted: %v", f) }})
}

// TestDeletePartition: all of a team goes, whatever row cannot be decoded, and the other team stays.
func TestDeletePartition(t *testing.T) {
	ctx := t.Context()
	x, _ := newTenancy(t, storagetest.Open(t))
	damaged := readRaw(t, x.others.Table(), tables.Key{Partition: "red", Row: "person_0000"})
	damaged["ID"] = "none"
	delete(damaged, "ID@odata.type")
	damaged.write(t, x.others.Table())
	report, err := x.deleteRed(ctx, "")
	if err != nil || report.Deleted != 4 || report.Failed != 0 || report.Resume != "" {
		t.Fatalf("%v, %v", report, err)
	}
	if left, err := x.red(ctx); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
	if report, err = x.deleteRed(ctx, ""); err != nil || report.Deleted+report.Repaired != 0 {
		t.Errorf("again: %v, %v", report, err)
	}
	blue := 0
	for _, repo := range []*patterns.Repository[person]{x.persons, x.others} {
		for _, err := range repo.Query().Partition("blue").All(ctx) {
			assert.Check(t, err)
			blue++
		}
	}
	assert.Equal(t, blue, 2, "entities of the other team")
	assert.Check(t, harness.Clean(ctx, x.store.Verify, nil))
	harness.WantKind(t, assert.Err(x.store.DeletePartition(ctx, "", nil)), tables.ErrInvalid)
	harness.WantKind(t, assert.Err(x.store.DeletePartition(ctx, "blue", &patterns.DeleteOptions{RowsPerSecond: -1})), tables.ErrWiring)
	harness.WantKind(t, assert.Err(x.store.DeletePartition(ctx, "blue", &patterns.DeleteOptions{Resume: "x"})), tables.ErrInvalid)
}

// TestDeletePartitionResumes: the report of a run that failed in the second repository continues there.
func TestDeletePartitionResumes(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	x, prefix := newTenancy(t, s)
	faulty, _ := s.WithRetries(0).Faulty(storagetest.If(func(c storagetest.Call) bool { return c.Resource == prefix+"Persons" && c.Kind == storagetest.Batch }, storagetest.Throttled))
	cut := assert.Must[*tenancy](t)(openTenancy(faulty, prefix))
	report, err := cut.deleteRed(ctx, "")
	if tables.KindOf(err) != tables.ErrUnavailable || report.Resume == "" || report.Deleted != 2 {
		t.Fatalf("%v, %v", report, err)
	}
	harness.WantKind(t, assert.Err(x.store.DeletePartition(ctx, "blue", &patterns.DeleteOptions{Resume: report.Resume})), tables.ErrInvalid)
	if report, err = x.deleteRed(ctx, report.Resume); err != nil || report.Deleted != 4 {
		t.Errorf("%v, %v", report, err)
	}
	if left, err := x.red(ctx); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

// TestDeletePartitionWaits: copies whose deletion has failed are deleted once no change can rely on their marks.
func TestDeletePartitionWaits(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		_, prefix := newTenancy(t, s)
		batches := 0
		faulty, _ := s.WithRetries(0).Faulty(storagetest.If(func(c storagetest.Call) bool {
			if c.Resource != prefix+"Mail" || c.Kind != storagetest.Batch {
				return false
			}
			batches++
			return batches == 2 // the first marks the copies, the second would delete them
		}, storagetest.Throttled))
		cut := assert.Must[*tenancy](t)(openTenancy(faulty, prefix))
		report, err := cut.store.DeletePartition(t.Context(), "red", nil)
		if err != nil || report.Deleted != 4 {
			t.Fatalf("%v, %v", report, err)
		}
		if left, err := cut.red(t.Context()); err != nil || len(left) > 0 {
			t.Errorf("left: %q, %v", left, err)
		}
	})
}

// TestDeletePartitionSweep breaks the deletion at every storage call, in every way: another run deletes the rest.
func TestDeletePartitionSweep(t *testing.T) {
	storagetest.Sweep(t, storagetest.SweepCase{Floor: 692, Every: harness.SweepEvery(), World: func(t testing.TB, s *storagetest.Service) storagetest.World {
		_, prefix := newTenancy(t, s)
		remove := func(ctx context.Context, s *storagetest.Service) (*tenancy, error) {
			x, err := openTenancy(s, prefix)
			if err == nil {
				_, err = x.deleteRed(ctx, "")
			}
			return x, err
		}
		return storagetest.World{
			Operate: func(ctx context.Context, s *storagetest.Service) error { _, err := remove(ctx, s); return err },
			Recover: func(ctx context.Context, s *storagetest.Service) error {
				x, err := openTenancy(s, prefix)
				if err != nil {
					return err
				}
				worker, err := eventual.NewWorker(eventual.Intents(x.store), nil, nil)
				if err == nil {
					_, err = worker.Drain(ctx)
				}
				return err
			},
			Check: func(ctx context.Context, s *storagetest.Service, end storagetest.Ending) error {
				s.Clock.Advance(time.Minute) // copies that are still marked stay until then, since a change could be under way
				x, err := remove(ctx, s)
				if err != nil {
					return fmt.Errorf("after %v: %w", end.Err, err)
				}
				if left, err := x.red(ctx); err != nil || len(left) > 0 {
					return fmt.Errorf("left: %q, %w", left, err)
				}
				return harness.Clean(hasty(ctx), x.store.Verify, &patterns.JobOptions{Lag: 1})
			},
		}
	}})
}
