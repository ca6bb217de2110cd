package storagetest_test

import (
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestInBubble: the service's clock is where the bubble's is, at each request.
func TestInBubble(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		began, serviceBegan := time.Now(), s.Clock.Now()
		staff := assert.Must[*tables.Table](t)(newStaff(t.Context(), s, "Staff"))
		for _, pause := range []time.Duration{time.Second, time.Hour} {
			time.Sleep(pause)
			check(t, assert.Err(staff.Entities().Get(t.Context(), tables.Key{Partition: "Sales", Row: "department"})))
			// The simulator's clock moves by itself from stamp to stamp, by the least there is.
			if bubble, service := time.Since(began), s.Clock.Now().Sub(serviceBegan); bubble < pause || (service-bubble).Abs() > time.Millisecond {
				t.Errorf("%v have passed here, %v on the service", bubble, service)
			}
		}
	})
}
