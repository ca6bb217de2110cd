package explore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// walkWorld is the service during a walk: its states, and its answer to each request in each state.
type walkWorld struct {
	service *storagetest.Service
	sim     *simulator.Simulator // one for all states
	queues  []string
	states  []serviceState
	known   map[[32]byte]int32
	served  map[serving]served
	waited  map[wait]int32
	checked map[int32]error
}

// serviceState is one state of the service with the properties that the walk needs.
type serviceState struct {
	snapshot  *simulator.Snapshot
	visible   int           // messages that a worker can get
	left      int           // messages, visible or not
	next, all time.Duration // time until the first, and until the last, hidden message becomes visible
}

// serving identifies the serving of a request in a state; first is the message that a get returns first.
type serving struct{ state, request, first int32 }

type served struct{ state, answer int32 }

type wait struct {
	state int32
	d     time.Duration
}

func newWalkWorld(s *storagetest.Service, sim *simulator.Simulator, queues []string) *walkWorld {
	return &walkWorld{service: s, sim: sim, queues: queues, known: map[[32]byte]int32{}, served: map[serving]served{},
		waited: map[wait]int32{}, checked: map[int32]error{}}
}

// current returns the present state of the service.
func (w *walkWorld) current() int32 {
	snapshot := w.sim.Snapshot()
	key := snapshot.Key()
	if id, known := w.known[key]; known {
		return id
	}
	s := serviceState{snapshot: snapshot}
	var next, last time.Time
	s.visible, s.left, next, last = snapshot.Waiting(w.counts)
	if s.left > s.visible {
		s.next, s.all = next.Sub(snapshot.Now()), last.Sub(snapshot.Now())
	}
	id := int32(len(w.states))
	w.known[key] = id
	w.states = append(w.states, s)
	return id
}

// counts reports whether the case's workers handle a queue.
func (w *walkWorld) counts(queue string) bool {
	return w.queues == nil || slices.Contains(w.queues, queue)
}

// choices returns the number of ways to serve a request: one for each message that may be returned first.
func (w *walkWorld) choices(state int32, r *walkRequest) int32 {
	if r.call.Kind != storagetest.GetMessages {
		return 1
	}
	visible, _, _, _ := w.states[state].snapshot.Waiting(func(queue string) bool { return queue == r.call.Resource })
	return int32(max(1, visible))
}

// serve serves a request in a state.
func (w *walkWorld) serve(s serving, r *walkRequest, answers *numbered[*walkAnswer]) (served, error) {
	if done, known := w.served[s]; known {
		return done, nil
	}
	w.sim.Restore(w.states[s.state].snapshot)
	w.sim.GetFirst(int(s.first))
	resp, err := w.sim.Do(r.request())
	if err != nil {
		return served{}, fmt.Errorf("%v: %w", r, err)
	}
	a, err := newWalkAnswer(resp)
	if err != nil {
		return served{}, err
	}
	done := served{w.current(), answers.number(a.identity, a)}
	w.served[s] = done
	return done, nil
}

// wait lets time pass in a state.
func (w *walkWorld) wait(state int32, d time.Duration) int32 {
	key := wait{state, d}
	if id, known := w.waited[key]; known {
		return id
	}
	w.sim.Restore(w.states[state].snapshot)
	w.sim.Clock().Advance(d)
	id := w.current()
	w.waited[key] = id
	return id
}

// check runs Check on a state.
func (w *walkWorld) check(ctx context.Context, state int32, holds func(context.Context, *storagetest.Service) error) error {
	err, known := w.checked[state]
	if !known {
		w.sim.Restore(w.states[state].snapshot)
		err = holds(ctx, w.service)
		w.checked[state] = err
	}
	return err
}
