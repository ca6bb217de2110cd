package interpartition_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// stall is the process of a change that stands still before one of its calls. Meanwhile its message appears, a worker carries
// it out, and a concurrent writer changes the entity and its copies; then the process goes on.
type stall struct {
	before  int64 // calls that it makes first
	during  func()
	calls   atomic.Int64
	stalled atomic.Bool
}

// Do is policy.Policy, before the one that checks the lease: a process that stands still after that and before it sends is
// what the library's margin is for.
func (p *stall) Do(req *policy.Request) (*http.Response, error) {
	if p.stalled.Load() && req.Raw().Method == http.MethodPut && strings.Contains(req.Raw().URL.Path, "/messages/") {
		// A renewal, in whose goroutine time stands still, too. What it would be told ends the lease, so it is told nothing.
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	if p.calls.Add(1) == p.before+1 {
		p.stalled.Store(true)
		p.during()
	}
	return req.Next()
}

// stalledChange is a change that stands still once, with a concurrent writer who comes meanwhile.
type stalledChange struct {
	kind
	concurrent func(ctx context.Context, repo *patterns.Repository[employee]) error
	waive      lease.Rules
}

// run is one point: the change stands still before call number before, and its process dies after more calls than that.
// It returns how many calls the change made and what does not hold in the end.
func (c stalledChange) run(t *testing.T, before, more int) (calls int, err error) {
	synctest.Test(t, func(t *testing.T) {
		s := storagetest.Simulator(t, nil)
		w := newWorld(t, s, c.kind)
		if err := harness.Must[*process](t)(w.start(s)).repo.Insert(t.Context(), jones()); err != nil {
			t.Fatal(err)
		}
		faulty, faults := s.WithRetries(0).Faulty(storagetest.OnIndex(before+more, storagetest.DiesAfter))
		p := &stall{before: int64(before), during: func() {
			for _, act := range []func(context.Context, *patterns.Repository[employee]) error{nil, c.concurrent} {
				s.Wait(visibility + time.Second)
				time.Sleep(visibility + time.Second)
				other := harness.Must[*process](t)(w.start(s))
				if err := w.drainNow(t.Context(), other); err != nil {
					t.Error(err)
				}
				if act == nil {
					continue
				}
				if err := act(t.Context(), other.repo); err != nil && !(c.unique && errors.Is(err, tables.ErrDuplicate)) {
					t.Errorf("the concurrent writer was told %v", err)
				}
			}
		}}
		faulty.ClientOptions.PerCallPolicies = append(faulty.ClientOptions.PerCallPolicies, p)
		alive, cancel := faults.Context(lease.Waive(t.Context(), c.waive))
		defer cancel()
		_ = updateJones(alive, harness.Must[*process](t)(w.start(faulty)).repo)
		calls = len(faults.Calls())
		if err = w.drain(t.Context(), s); err == nil {
			_, err = w.check(t.Context(), s)
		}
	})
	return calls, err
}

// each runs all points, or one in every: a stall before each call, and a death after each later one, or none.
func (c stalledChange) each(t *testing.T, every int, judge func(name string, err error)) (points int) {
	calls, err := c.run(t, 1000, 0)
	if err != nil {
		t.Fatalf("without a stall: %v", err)
	}
	for before := range calls {
		for more := range calls - before + 1 {
			if points++; (points-1)%every == 0 {
				_, err := c.run(t, before, more)
				judge(fmt.Sprintf("stands still before call %d, dies after %d more", before, more), err)
			}
		}
	}
	return points
}

var stallWriters = map[string]func(context.Context, *patterns.Repository[employee]) error{
	"renames": writerRenames, "keeps keys": writerKeepsKeys, "replaces": writerReplaces}

// TestStall: whoever stood still for too long does nothing more for the message that is no longer its own.
func TestStall(t *testing.T) {
	for name, concurrent := range stallWriters {
		for _, k := range []kind{{}, {unique: true}, {async: true}, {async: true, unique: true}} {
			t.Run(name+"/"+k.String(), func(t *testing.T) {
				points := stalledChange{kind: k, concurrent: concurrent}.each(t, harness.SweepEvery(), func(name string, err error) {
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
				})
				t.Logf("%d points, every %d run", points, harness.SweepEvery())
			})
		}
	}
}

// TestStallFindsNoExpiry: without the end of leases, some of these points leave indexes that do not agree.
func TestStallFindsNoExpiry(t *testing.T) {
	found, points, first := 0, 0, ""
	for writerName, concurrent := range stallWriters {
		points += stalledChange{concurrent: concurrent, waive: lease.Expiry}.each(t, 1, func(name string, err error) {
			if err != nil {
				if found++; first == "" {
					first = fmt.Sprintf("%s, %s: %v", writerName, name, err)
				}
			}
		})
	}
	if found == 0 {
		t.Fatalf("none of %d points diverges: they show nothing", points)
	}
	t.Logf("%d of %d points diverge, one of them: %s", found, points, first)
}
