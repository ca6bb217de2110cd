package indexentities_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// distant is a network on which a request takes as long as that.
type distant struct {
	inner policy.Transporter
	takes time.Duration
}

// Do sends the request.
func (d *distant) Do(req *http.Request) (*http.Response, error) {
	time.Sleep(d.takes / 2)
	resp, err := d.inner.Do(req)
	time.Sleep(d.takes / 2)
	return resp, err
}

// TestConcurrentWritersConverge holds how long it takes, in virtual time, until concurrent writers who enter one list at the same time are all in
// it: docs/reference/indexentities.md has the bound. Whoever writes the list has read what the writer before left, so the list
// takes no more than one of them in the time of a request. The worker is the standard one, and no intent may end on the poison
// queue.
func TestConcurrentWritersConverge(t *testing.T) {
	for _, writers := range []int{20, 100} {
		for _, takes := range []time.Duration{10 * time.Millisecond, 500 * time.Millisecond} {
			t.Run(fmt.Sprint(writers, " at ", takes), func(t *testing.T) {
				storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
					w := (&world{option: outside}).open(t, s)
					p := harness.Must[*process](t)(w.start(s.WithTransport(func(inner policy.Transporter) policy.Transporter { return &distant{inner, takes} })))
					ctx, cancel := context.WithCancel(t.Context())
					worker := harness.Must[*eventual.Worker](t)(eventual.NewWorker(p.queue, nil, nil))
					ended := make(chan error, 1)
					go func() { ended <- worker.Run(ctx) }()
					began := time.Now()
					var running sync.WaitGroup
					for id := range writers {
						running.Go(func() {
							if err := p.repo.Insert(ctx, with(id, "Jones")); err != nil {
								t.Error(err)
							}
						})
					}
					running.Wait()
					written, left := time.Since(began), harness.Must[int](t)(p.queue.Length(ctx))
					least := time.Duration(writers) * takes
					most := 4*least + 10*time.Second
					for time.Since(began) < most && harness.Must[int](t)(p.queue.Length(ctx)) > 0 {
						time.Sleep(100 * time.Millisecond)
					}
					t.Logf("%d concurrent writers, requests of %v: written in %v, %d left to the worker, converged in %v, at least %v; %+v",
						writers, takes, written.Round(time.Millisecond), left, time.Since(began).Round(time.Millisecond), least, worker.Stats())
					if n := harness.Must[int](t)(p.queue.Length(ctx)); n != 0 || worker.Stats().Poisoned != 0 {
						t.Errorf("after %v %d intents are on the queue and %d on the poison queue", most, n, worker.Stats().Poisoned)
					}
					cancel()
					if err := <-ended; err != nil {
						t.Error(err)
					}
					if found, err := w.check(context.Background(), s); err != nil || len(found) != writers {
						t.Errorf("%d employees, %v", len(found), err)
					}
				})
			})
		}
	}
}
