package dataseries_test

import (
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/dataseries"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/race"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// slow is a network of some 5 ms each way.
type slow struct {
	inner policy.Transporter
	mu    sync.Mutex
	rng   *mathrand.Rand
}

func (s *slow) half() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return 4*time.Millisecond + time.Duration(s.rng.IntN(2000))*time.Microsecond
}

func (s *slow) Do(req *http.Request) (*http.Response, error) {
	time.Sleep(s.half())
	resp, err := s.inner.Do(req)
	time.Sleep(s.half())
	return resp, err
}

// TestContention measures concurrent writers who add to one slot without a pause, on a network that takes some 10 ms, in virtual time:
// docs/reference/dataseries.md has its table. What must hold is that every addition that returned nil counts once, and that an
// attempt, which is a read and a write, is refused only if a concurrent addition happened between them: so one addition
// makes at most one attempt of each concurrent writer fail, and costs at most 2 requests for each of all of them.
func TestContention(t *testing.T) {
	each := 20
	if testing.Short() || race.Enabled {
		each = 5
	}
	for _, p := range []place{inRow, inBlob} {
		for _, writers := range []int{1, 2, 5, 10} {
			for _, once := range []bool{false, true} {
				t.Run(fmt.Sprint(p, writers, once), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := storagetest.Simulator(t, nil)
						w := (&world{place: p}).open(t, s)
						network := &slow{rng: mathrand.New(mathrand.NewPCG(1, 2))}
						far, requests := counting(s.WithTransport(func(inner policy.Transporter) policy.Transporter { network.inner = inner; return network }))
						began, added := time.Now(), 0
						var running sync.WaitGroup
						var mu sync.Mutex
						for id := range writers {
							running.Go(func() {
								c := assert.Must[*dataseries.Counter[int64]](t)(w.start(far))
								for i := range each {
									err := add(t, c, once, fmt.Sprint(id, "-", i))
									mu.Lock()
									switch {
									case err == nil:
										added++
									case !errors.Is(err, tables.ErrConflict):
										t.Error(err)
									}
									mu.Unlock()
								}
							})
						}
						running.Wait()
						n, err := held(t.Context(), w, s, today, 9)
						if n != int64(added) || added == 0 || err != nil {
							t.Errorf("the slot holds %d after %d additions, %v", n, added, err)
						}
						cost := float64(requests.Count()) / float64(added)
						t.Logf("%s, %d concurrent writers, once %t: %.1f requests a success, %.0f successes a second, %d refused",
							p, writers, once, cost, float64(added)/time.Since(began).Seconds(), writers*each-added)
						if most := 2 * float64(writers); cost > most {
							t.Errorf("%.1f requests a success, want at most %.1f", cost, most)
						}
					})
				})
			}
		}
	}
}

func add(t *testing.T, c *dataseries.Counter[int64], once bool, operation string) error {
	if !once {
		return c.Add(t.Context(), today, 9, 1)
	}
	_, err := c.AddOnce(t.Context(), today, 9, 1, operation)
	return err
}
