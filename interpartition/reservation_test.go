package interpartition_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// slowCommit is a writer that has reserved its keys and takes long before it sends its entity, as one that uploads a large value
// does. It renews its message all the time.
type slowCommit struct {
	table  string
	during func()
	once   sync.Once
}

// Do is policy.Policy, before the one that checks the lease.
func (p *slowCommit) Do(req *policy.Request) (*http.Response, error) {
	if raw := req.Raw(); raw.Method == http.MethodPost && strings.HasSuffix(raw.URL.Path, "/"+p.table) {
		p.once.Do(p.during)
	}
	return req.Next()
}

// repairOnce runs Repair with a Lag that is as short as callers can make it, and returns what it found.
func repairOnce(ctx context.Context, t *testing.T, p *process) (found []patterns.Finding) {
	t.Helper()
	found, err := harness.Findings(ctx, p.repo.Repair, &patterns.JobOptions{Lag: time.Nanosecond})
	if err != nil {
		t.Error(err)
	}
	return found
}

// slowInsert inserts June Jones, and does something between the reservation of her keys and her entity. It returns how
// many employees have the email then, what the writer was told, and what another one was told who inserted an employee with it.
func slowInsert(t *testing.T, s *storagetest.Service, during func(p *process)) (owners int, writer, concurrent error) {
	w := newWorld(t, s, kind{unique: true})
	p := harness.Must[*process](t)(w.start(s))
	slow := *s
	slow.ClientOptions.PerCallPolicies = append(slow.ClientOptions.PerCallPolicies, &slowCommit{table: w.table, during: func() {
		during(p)
		concurrent = p.repo.Insert(t.Context(), &employee{Department: "Sales", ID: 224, Name: "Jim Jones", Email: jones().Email})
	}})
	writer = harness.Must[*process](t)(w.start(&slow)).repo.Insert(t.Context(), jones())
	time.Sleep(2 * visibility)
	if err := w.drainNow(t.Context(), p); err != nil {
		t.Error(err)
	}
	if _, err := w.check(t.Context(), s); err != nil {
		t.Error(err)
	}
	for e, err := range p.repo.Query().AllowTableScan().All(t.Context()) {
		if err != nil {
			t.Error(err)
		} else if e.Email == jones().Email {
			owners++
		}
	}
	return owners, writer, concurrent
}

// TestRepairLeavesLiveReservations: Repair does not free a key that a live writer has reserved, whatever Lag it is given, so that
// no second entity can take the key.
func TestRepairLeavesLiveReservations(t *testing.T) {
	for _, slow := range []time.Duration{0, time.Minute, 49 * time.Minute} {
		t.Run(slow.String(), func(t *testing.T) {
			storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
				owners, writer, concurrent := slowInsert(t, s, func(p *process) {
					time.Sleep(slow)
					if found := repairOnce(t.Context(), t, p); len(found) != 0 {
						t.Errorf("Repair reports a live reservation: %v", found)
					}
				})
				if writer != nil || !errors.Is(concurrent, tables.ErrDuplicate) || owners != 1 {
					t.Errorf("the writer was told %v, the other one %v, and %d employees have one unique email", writer, concurrent, owners)
				}
			})
		})
	}
}

// TestReservationEnds: a writer that comes to its entity when its reservation's term is over writes nothing, though its
// message is still its own. Repair may have freed the key by then.
func TestReservationEnds(t *testing.T) {
	for _, repairs := range []bool{true, false} {
		storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
			owners, writer, concurrent := slowInsert(t, s, func(p *process) {
				time.Sleep(72 * time.Minute)
				if !repairs {
					return
				}
				found := repairOnce(t.Context(), t, p)
				if len(found) != 2 || !found[0].Repaired || !found[1].Repaired {
					t.Errorf("Repair reports %v of two reservations whose term is over", found)
				}
			})
			if !errors.Is(writer, eventual.ErrLeaseLost) {
				t.Errorf("the writer was told %v", writer)
			}
			if repairs && (concurrent != nil || owners != 1) || !repairs && (!errors.Is(concurrent, tables.ErrDuplicate) || owners != 0) {
				t.Errorf("repaired %v: the other one was told %v, and %d employees have the email", repairs, concurrent, owners)
			}
			t.Log(writer)
		})
	}
}
