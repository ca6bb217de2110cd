package dataseries_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/dataseries"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestSweepBesideALiveOperation: an AddOnce whose first attempt was applied and not answered, and which stands still before the next
// one, does not count twice, also if its marker is swept meanwhile, by the shortest age that a sweep takes.
func TestSweepBesideALiveOperation(t *testing.T) {
	const shortest = 70 * time.Minute
	for _, p := range places {
		for _, slow := range []time.Duration{time.Minute, 49 * time.Minute, 72 * time.Minute} {
			t.Run(string(p)+slow.String(), func(t *testing.T) {
				storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
					w := (&world{place: p}).open(t, s)
					concurrent := assert.Must[*dataseries.Counter[int64]](t)(w.start(s))
					key := tables.Key{Partition: "p", Row: "day0"}
					reads := 0
					lost := storagetest.Once(storagetest.LostAnswer)
					// The answers to the first write, and to the readings that would tell what became of it, are lost.
					faulty, _ := s.WithRetries(0).Faulty(storagetest.InjectorFunc(func(c storagetest.Call) storagetest.Fault {
						switch c.Kind {
						case storagetest.GetEntity, storagetest.GetBlob:
							reads++
						}
						if reads != 2 {
							return storagetest.First(storagetest.On(storagetest.Batch, lost), storagetest.On(storagetest.PutBlob, lost)).Inject(c)
						}
						time.Sleep(slow)
						for _, age := range []time.Duration{time.Second, shortest - 1} {
							if _, err := concurrent.SweepMarkers(t.Context(), age, nil); !errors.Is(err, tables.ErrInvalid) {
								t.Errorf("a sweep of markers older than %v says %v", age, err)
							}
						}
						if _, err := concurrent.SweepMarkers(t.Context(), shortest, nil); err != nil {
							t.Error(err)
						}
						return storagetest.NotSent
					}))
					counted, err := assert.Must[*dataseries.Counter[int64]](t)(w.start(faulty)).AddOnce(t.Context(), key, 0, 1, "once")
					if slow < 50*time.Minute != (counted && err == nil) || err != nil && !errors.Is(err, tables.ErrUnknownOutcome) {
						t.Errorf("AddOnce says %v, %v", counted, err)
					}
					if n, err := held(t.Context(), w, s, key, 0); n != 1 || err != nil {
						t.Errorf("the slot holds %d, %v", n, err)
					}
				})
			})
		}
	}
}
