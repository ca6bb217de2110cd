package explore

import (
	"fmt"
	"hash/fnv"
	"slices"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/storagetest"
)

// histories holds, as trees, all histories of processes that the walk has seen. A moment holds the calls that
// a process makes after one history, which the walk finds by running the process once.
type histories struct {
	t         *testing.T
	of        *storagetest.Service
	actors    []Actor
	processes int // number of processes; the actors after them are workers
	idle      time.Duration
	pause     time.Duration
	moments   []moment
	next      map[step]int32
	begins    map[life]int32

	requests numbered[*walkRequest]
	answers  numbered[*walkAnswer]

	alive   []*living // processes at rest at a moment, the most recently used last
	replays int
	fed     int // total number of steps in all replays
}

// life identifies a run of an actor. A worker's next run gets a new life number only if the present run has
// drawn random numbers. So no two runs draw the same numbers, and equal runs are explored once.
type life struct{ actor, number int32 }

// moment is a state in which a process is at rest.
type moment struct {
	life     life
	previous int32 // -1 at the beginning
	depth    int32
	step     step // the step from the previous moment
	calls    []int32
	ended    bool
	drew     bool // whether random numbers were drawn since the beginning
	returned string
	living   *living // a process that is at this moment now, nil if none
}

// step leads from one moment to the next: one call is answered, or time passes.
type step struct {
	from   int32
	call   int32
	answer int32 // the answered call, -1 for a pause
}

// living is a process at rest that can be continued from its moment once.
type living struct {
	process *process
	at      int32
}

// maxLiving limits the number of processes kept at rest.
const maxLiving = 256

// begin returns the first moment of a life.
func (h *histories) begin(l life) (int32, error) {
	if id, known := h.begins[l]; known {
		return id, nil
	}
	p, r := startProcess(h.t, h.actors[l.actor], h.of, h.idle, l.seed(0))
	h.replays++
	id, err := h.add(moment{life: l, previous: -1}, r, &living{process: p})
	h.begins[l] = id
	return id, err
}

// answered returns the moment that follows when one of the calls is answered.
func (h *histories) answered(from int32, call int, answer int32) (int32, error) {
	return h.after(step{from, int32(call), answer})
}

// paused returns the moment that follows when time passes.
func (h *histories) paused(from int32) (int32, error) { return h.after(step{from, 0, -1}) }

func (h *histories) after(s step) (int32, error) {
	if id, known := h.next[s]; known {
		return id, nil
	}
	l, err := h.bring(s.from)
	if err != nil {
		return 0, err
	}
	h.moments[s.from].living = nil
	from := &h.moments[s.from]
	r := l.process.step(h.processStep(s, from.life, from.depth+1))
	id, err := h.add(moment{life: from.life, previous: s.from, depth: from.depth + 1, step: s, drew: from.drew}, r, l)
	h.next[s] = id
	return id, err
}

func (h *histories) processStep(s step, l life, depth int32) processStep {
	ps := processStep{seed: l.seed(depth), call: int(s.call)}
	if s.answer < 0 {
		ps.pause = h.pause
	} else {
		ps.answer = h.answers.all[s.answer]
	}
	return ps
}

// seed returns the seed of all random numbers that are drawn between two points of rest.
func (l life) seed(depth int32) uint64 {
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%d %d %d", l.actor, l.number, depth)
	return hash.Sum64()
}

// add stores a new moment together with the process that has reached it.
func (h *histories) add(m moment, r rest, l *living) (int32, error) {
	for _, request := range r.calls {
		m.calls = append(m.calls, h.requests.number(request.identity, request))
	}
	m.ended = r.ended
	m.drew = m.drew || r.drew
	if r.ended && r.err != nil {
		m.returned = r.err.Error()
	}
	id := int32(len(h.moments))
	h.moments = append(h.moments, m)
	h.keepOrEnd(l, id)
	if r.stuck {
		return id, fmt.Errorf("%s: %w; its steps:\n%s", h.name(m.life), r.err, h.story(id))
	}
	return id, nil
}

// keepOrEnd keeps a process at a moment, or ends it if it has returned.
func (h *histories) keepOrEnd(l *living, at int32) {
	h.alive = slices.DeleteFunc(h.alive, func(other *living) bool { return other == l })
	if h.moments[at].ended {
		l.process.kill()
		return
	}
	l.at = at
	h.moments[at].living = l
	h.alive = append(h.alive, l)
	if len(h.alive) > maxLiving {
		oldest := h.alive[0]
		h.alive = slices.Delete(h.alive, 0, 1)
		h.moments[oldest.at].living = nil
		oldest.process.kill()
	}
}

// bring returns a process that is at the moment: a kept one, or one that is replayed up to it.
func (h *histories) bring(to int32) (*living, error) {
	if l := h.moments[to].living; l != nil {
		return l, nil
	}
	p, err := h.replay(to)
	return &living{process: p}, err
}

// verifySamples is the number of moments that are replayed at the end of a walk.
const verifySamples = 300

// verify replays a sample of histories. Most histories run only once, so without verify the walk would find
// code that is not deterministic only by chance.
func (h *histories) verify() error {
	samples := min(verifySamples, len(h.moments))
	for i := range samples {
		p, err := h.replay(int32(len(h.moments) * i / samples))
		if err != nil {
			return err
		}
		p.kill()
	}
	return nil
}

// replay runs a process up to a moment.
func (h *histories) replay(to int32) (*process, error) {
	var way []int32
	for id := to; id >= 0; id = h.moments[id].previous {
		way = append(way, id)
	}
	slices.Reverse(way)
	own := h.moments[to].life
	p, r := startProcess(h.t, h.actors[own.actor], h.of, h.idle, own.seed(0))
	h.replays++
	for i, id := range way {
		if i > 0 {
			r = p.step(h.processStep(h.moments[id].step, own, int32(i)))
			h.fed++
		}
		if err := h.same(id, r); err != nil {
			p.kill()
			return nil, err
		}
	}
	return p, nil
}

// same fails unless a replayed process does the same as in its first run.
func (h *histories) same(id int32, r rest) error {
	m := &h.moments[id]
	again := make([]int32, len(r.calls))
	for i, request := range r.calls {
		again[i] = h.requests.number(request.identity, request)
	}
	if slices.Equal(again, m.calls) && r.ended == m.ended {
		return nil
	}
	return fmt.Errorf("%s is not deterministic: after the same answers it first made the calls\n%s\nand, run again, the calls\n%s\nits steps before:\n%s",
		h.name(m.life), h.identities(m.calls), h.identities(again), h.story(m.previous))
}

func (h *histories) identities(requests []int32) (text string) {
	for _, id := range requests {
		text += fmt.Sprintf("%q\n", h.requests.all[id].identity)
	}
	return text
}

// story lists the steps of a process up to a moment, one on each line.
func (h *histories) story(to int32) (text string) {
	for id := to; id >= 0 && h.moments[id].previous >= 0; id = h.moments[id].previous {
		text = h.describe(h.moments[id].step) + "\n" + text
	}
	return text
}

// describe returns the text of a step.
func (h *histories) describe(s step) string {
	from := &h.moments[s.from]
	name := h.name(from.life)
	if s.answer < 0 {
		return fmt.Sprintf("%s: %v pass", name, h.pause)
	}
	return fmt.Sprintf("%s: %v: %v", name, h.requests.all[from.calls[s.call]], h.answers.all[s.answer])
}

func (h *histories) name(l life) string {
	if int(l.actor) < h.processes {
		return fmt.Sprintf("process %d", l.actor)
	}
	return fmt.Sprintf("worker %d", int(l.actor)-h.processes)
}

// close ends all processes.
func (h *histories) close() {
	for _, l := range h.alive {
		l.process.kill()
	}
	h.alive = nil
}
