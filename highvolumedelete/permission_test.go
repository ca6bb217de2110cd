package highvolumedelete_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// stands is a process that stands still behind the look at the mark, for so long that its permission to create has ended before
// any timer runs. The lease is ended in place of the clock.
type stands struct{ found *bool }

func (stands) String() string { return "stands still" }

func (f stands) Meet(_ storagetest.Call, req *http.Request, send storagetest.Send) (*http.Response, error) {
	resp, err := send()
	if l := lease.From(req.Context()); l != nil {
		*f.found = true
		l.End(lease.ErrLost)
	}
	return resp, err
}

// TestStandsStillBeforeTheCreation: the permission to create a table is looked at when the request goes out, and not only by a
// timer, which a process that was stopped may hear of too late.
func TestStandsStillBeforeTheCreation(t *testing.T) {
	s, found := storagetest.Simulator(t, nil), false
	faulty, _ := s.WithRetries(0).Faulty(storagetest.On(storagetest.GetEntity, storagetest.Once(storagetest.Always(stands{&found}))))
	c, requests := harness.CountedService(faulty)
	logins := mustStart(t, c, schemaOf("Logins", func() time.Time { return noon }))
	err := logins.Insert(t.Context(), &login{User: "june", At: noon})
	if !found || err == nil || errors.Is(err, tables.ErrUnknownOutcome) {
		t.Errorf("under a lease: %v, and the insert is %v", found, err)
	}
	if names := assert.Must[[]string](t)(logins.List(t.Context())); len(names) != 0 {
		t.Errorf("%v was made, by requests %v", names, requests.Kinds())
	}
}

// TestPermissionLasts: the look at the mark and the creation have ten seconds together.
func TestPermissionLasts(t *testing.T) {
	for under, made := range map[time.Duration]int{10*time.Second - time.Nanosecond: 1, 10 * time.Second: 0} {
		storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
			slow := storagetest.After("slow", func() { time.Sleep(under) })
			faulty, _ := s.WithRetries(0).Faulty(storagetest.On(storagetest.GetEntity, storagetest.Once(storagetest.Always(slow))))
			logins := mustStart(t, faulty, schemaOf("Logins", func() time.Time { return noon }))
			err := logins.Insert(t.Context(), &login{User: "june", At: noon})
			if tables := assert.Must[[]string](t)(mustStart(t, s, schemaOf("Logins", nil)).List(t.Context())); len(tables) != made || (err == nil) != (made == 1) {
				t.Errorf("after %v: %v are there, and the insert is %v", under, tables, err)
			}
		})
	}
}
