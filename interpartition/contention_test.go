package interpartition_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/marks"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	rivals     = 16
	fightTime  = 20 * time.Second
	fightDelay = 10 * time.Millisecond // of each request
)

// TestContention: as many writers change one entity, or as many entities take one key from one another, as fast as they can. Changes go on
// being made, readers are right, and after the term no row is marked.
func TestContention(t *testing.T) {
	for name, change := range map[string]func(i, n int) change{
		"of an entity": func(i, n int) change {
			e := jones()
			e.Name = string(rune('a'+i)) + string(rune('a'+n%26))
			return becomes(e)
		},
		"for a key": func(i, n int) change {
			return becomes(&employee{Department: "Sales", ID: i, Email: map[int]string{0: "x"}[n%2]})
		},
	} {
		t.Run(name, func(t *testing.T) {
			storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
				ctx, w := t.Context(), newWorld(t, s, kind{unique: true, background: true})
				p := assert.Must[*process](t)(w.start(s))
				assert.Check(t, p.repo.Insert(ctx, jones()))
				for i := range rivals {
					assert.Check(t, p.repo.Insert(ctx, &employee{Department: "Sales", ID: i}))
				}
				var requests storagetest.RequestCounter
				slow, _ := s.WithTransport(func(inner policy.Transporter) policy.Transporter {
					return harness.Transport(func(req *http.Request) (*http.Response, error) {
						time.Sleep(fightDelay)
						return inner.Do(req)
					})
				}).Faulty(&requests)
				var applied, conflicts, duplicates atomic.Int64
				ends := time.Now().Add(fightTime)
				var all sync.WaitGroup
				for i := range rivals {
					rival := assert.Must[*process](t)(w.start(slow))
					all.Go(func() {
						for n := 0; time.Now().Before(ends); {
							switch err := change(i, n)(ctx, rival.repo); {
							case err == nil:
								applied.Add(1)
								n++
							case errors.Is(err, tables.ErrConflict):
								conflicts.Add(1)
							case errors.Is(err, tables.ErrDuplicate):
								duplicates.Add(1)
							default:
								t.Error(err)
							}
						}
						assert.Check(t, rival.close(context.WithoutCancel(ctx)))
					})
				}
				all.Wait()
				left := assert.Must[int](t)(p.marked(ctx))
				t.Logf("%d changes, %.0f a second; %d conflicts, %d duplicates; %d requests; %d rows are marked afterwards",
					applied.Load(), float64(applied.Load())/fightTime.Seconds(), conflicts.Load(), duplicates.Load(), requests.Count(), left)
				if applied.Load() < 100 {
					t.Error("hardly any change is made")
				}
				people := everybody(jones(), &employee{Email: "x"})
				assert.Check(t, w.agree(ctx, p, people))
				time.Sleep(marks.Term + marks.Grace + 2*time.Second)
				assert.Check(t, w.agree(ctx, p, people))
				time.Sleep(time.Second)
				if left := assert.Must[int](t)(p.marked(ctx)); left > 0 {
					t.Errorf("%d rows are marked after all have been read", left)
				}
			})
		})
	}
}
