package indexentities_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// sharing is how many employees have the one last name in the tests of one list.
const sharing = 60

// TestRebuildOfOneList: the entities that share one list are entered without a conflict of the run with itself, even where
// each write has one attempt, and the run does not end where others change the list at the same time.
func TestRebuildOfOneList(t *testing.T) {
	for _, o := range options {
		for _, busy := range []bool{false, true} {
			w := &world{option: o, attempts: map[bool]int{false: 1, true: 20}[busy]}
			t.Run(w.String()+map[bool]string{true: "-busy"}[busy], func(t *testing.T) {
				ctx, s := context.Background(), storagetest.Simulator(t, nil)
				p := w.withoutList(t, s)
				var writers sync.WaitGroup
				stop := make(chan struct{})
				if busy {
					writers.Go(func() { churn(t, w, s, stop) })
				}
				report, err := p.repo.Rebuild(ctx, &patterns.JobOptions{Concurrency: 16})
				close(stop)
				writers.Wait()
				if err != nil || report.Failed > 0 || !busy && report.Conflicts > 0 {
					t.Fatalf("%+v, %v", report, err)
				}
				t.Logf("%d entities, %d written, %d conflicts", report.Read, report.Written, report.Conflicts)
				if found, err := w.check(ctx, s); err != nil || len(found) != sharing {
					t.Fatalf("%d employees, %v", len(found), err)
				}
			})
		}
	}
}

// TestRepairOfOneList: so does Repair where a list has been lost.
func TestRepairOfOneList(t *testing.T) {
	for _, o := range options {
		w := &world{option: o, attempts: 1}
		t.Run(w.String(), func(t *testing.T) {
			ctx, s := context.Background(), storagetest.Simulator(t, nil)
			p := w.withoutList(t, s)
			repaired, err := harness.Findings(ctx, p.repo.Repair, &patterns.JobOptions{Lag: time.Millisecond, Concurrency: 16})
			if err != nil {
				t.Error(err)
			}
			for _, r := range repaired {
				if !r.Repaired {
					t.Error(r)
				}
			}
			if found, err := w.check(ctx, s); err != nil || len(found) != sharing {
				t.Fatalf("%d employees, %v", len(found), err)
			}
		})
	}
}

// withoutList makes a world whose employees were written by a program without the index.
func (w *world) withoutList(t *testing.T, s *storagetest.Service) *process {
	t.Helper()
	p := assert.Must[*process](t)(w.open(t, s).start(s))
	bare := assert.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(p.repo.Table(), patterns.Schema[employee]{Key: keyOf, Prefix: "empid"}))
	for id := range sharing {
		if err := bare.Insert(t.Context(), with(id, "Jones")); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// churn has one more employee enter and leave the list until it is told to stop.
func churn(t *testing.T, w *world, s *storagetest.Service, stop <-chan struct{}) {
	p, err := w.start(s)
	for err == nil {
		if err = p.repo.Insert(context.Background(), with(sharing, "Jones")); err == nil {
			err = p.repo.DeleteUnconditional(context.Background(), at(sharing))
		}
		select {
		case <-stop:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
	t.Error(err)
}
