package explore

import (
	"math/bits"
	"slices"
	"time"
)

// ways appends all steps from a state. Steps of the actor that made the last one come first, so that schedules are easy
// to read; deaths and pauses come last.
func (w *walker) ways(ways []way, s *walkState, last int) ([]way, error) {
	var err error
	if last >= 0 {
		if ways, err = w.calls(ways, s, last); err != nil {
			return nil, err
		}
	}
	for actor := range w.histories.actors {
		if actor != last {
			if ways, err = w.calls(ways, s, actor); err != nil {
				return nil, err
			}
		}
	}
	if ways, err = w.deaths(ways, s); err != nil {
		return nil, err
	}
	if ways, err = w.pauses(ways, s); err != nil {
		return nil, err
	}
	if len(ways) == 0 {
		ways = w.redeliver(ways, s)
	}
	return ways, nil
}

// running reports whether an actor has started and not ended. An actor counts as started when its first call
// was served.
func (w *walker) running(s *walkState, actor int) bool {
	return s.at[actor] != gone && w.histories.moments[s.at[actor]].depth > 0
}

// ready reports whether an actor's calls may be served: a worker starts only if a message is visible.
func (w *walker) ready(s *walkState, actor int) bool {
	return w.running(s, actor) || s.at[actor] != gone && (!w.worker(actor) || w.world.states[s.service].visible > 0)
}

// calls appends the steps that serve one of the actor's calls.
func (w *walker) calls(ways []way, s *walkState, actor int) ([]way, error) {
	if !w.ready(s, actor) {
		return ways, nil
	}
	at := s.at[actor]
	for i := range w.histories.moments[at].calls {
		id := w.histories.moments[at].calls[i]
		request := w.histories.requests.all[id]
		for first := range w.world.choices(s.service, request) {
			done, err := w.world.serve(serving{s.service, id, first}, request, &w.histories.answers)
			if err != nil {
				return nil, err
			}
			next, err := w.histories.answered(at, i, done.answer)
			if err != nil {
				return nil, err
			}
			to := *s
			to.service = done.state
			if to.at[actor], err = w.arrive(next); err != nil {
				return nil, err
			}
			ways = append(ways, way{to: to, kind: wayCall, actor: actor, step: step{at, int32(i), done.answer}})
		}
	}
	return ways, nil
}

// arrive returns the actor's entry in the state after it has reached a moment.
func (w *walker) arrive(moment int32) (int32, error) {
	if !w.histories.moments[moment].ended {
		return moment, nil
	}
	return w.successor(moment)
}

// successor returns the actor's entry after a life that has ended at a moment: for a worker, the beginning of its next
// life.
func (w *walker) successor(moment int32) (int32, error) {
	m := &w.histories.moments[moment]
	next := m.life
	if !w.worker(int(next.actor)) {
		return gone, nil
	}
	if m.drew {
		next.number++
	}
	return w.histories.begin(next)
}

// deaths appends the steps in which an actor dies. The death of a worker that has not started changes nothing and is
// left out.
func (w *walker) deaths(ways []way, s *walkState) ([]way, error) {
	if int(s.crashes) >= w.c.Crashes {
		return ways, nil
	}
	for actor := range w.histories.actors {
		if s.at[actor] == gone || w.worker(actor) && !w.running(s, actor) {
			continue
		}
		to := *s
		to.crashes++
		var err error
		if to.at[actor], err = w.successor(s.at[actor]); err != nil {
			return nil, err
		}
		ways = append(ways, way{to: to, kind: wayDeath, actor: actor, step: step{from: s.at[actor]}})
	}
	return ways, nil
}

// pauses appends the steps in which time passes, if a running actor notices it. Actors that have made no call yet start
// before or after the pause, so there is one step for each subset of them.
func (w *walker) pauses(ways []way, s *walkState) ([]way, error) {
	if int(s.pauses) >= w.c.Pauses {
		return ways, nil
	}
	var begun, waiting uint
	anybody := false
	for actor := range w.histories.actors {
		switch {
		case w.running(s, actor):
			begun |= 1 << actor
			anybody = true
		case s.at[actor] != gone:
			waiting |= 1 << actor
			anybody = anybody || !w.worker(actor)
		}
	}
	if !anybody {
		return ways, nil
	}
	to := *s
	to.pauses++
	to.service = w.world.wait(s.service, w.c.Pause)
	for set := uint(0); ; set = (set - waiting) & waiting { // all subsets of waiting, the empty one first
		for all := begun | set; all != 0; all &= all - 1 {
			actor := bits.TrailingZeros(all)
			next, err := w.histories.paused(s.at[actor])
			if err != nil {
				return nil, err
			}
			if to.at[actor], err = w.arrive(next); err != nil {
				return nil, err
			}
		}
		ways = append(ways, way{to: to, kind: wayPause, actor: -1})
		to.at = s.at
		if set == waiting {
			return ways, nil
		}
	}
}

// redeliver appends two steps, for a state in which nothing else can happen: the first hidden message becomes
// visible, or all of them do.
func (w *walker) redeliver(ways []way, s *walkState) []way {
	now := &w.world.states[s.service]
	if now.left == 0 || len(w.stage.Workers) == 0 || now.visible > 0 {
		return ways
	}
	for _, d := range slices.Compact([]time.Duration{now.next, now.all}) {
		to := *s
		to.service = w.world.wait(s.service, d)
		ways = append(ways, way{to: to, kind: wayRedeliver, actor: -1})
	}
	return ways
}
