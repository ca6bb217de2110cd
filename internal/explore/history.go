package explore

import (
	"fmt"
	"hash/fnv"
	"slices"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/storagetest"
)

// histories are all that processes have lived through so far, as trees: a moment is what a process asks for after one
// history, found by running it once.
type histories struct {
	t         *testing.T
	of        *storagetest.Service
	actors    []Actor
	processes int // the first actors; the others are workers
	idle      time.Duration
	pause     time.Duration
	moments   []moment
	next      map[step]int32
	begins    map[life]int32

	requests numbered[*walkRequest]
	answers  numbered[*walkAnswer]

	alive   []*living // processes that rest at a moment; those that were of use last are last
	replays int
	fed     int // steps of all replays
}

// life is a run of an actor, or several that come one after another: a worker's next life has a new number only if this one
// has drawn random numbers. None draws what another one drew, and lives that are alike are one.
type life struct{ actor, number int32 }

// moment is where a process comes to rest.
type moment struct {
	life     life
	previous int32 // -1 at the beginning
	depth    int32
	step     step // from the previous one
	calls    []int32
	ended    bool
	drew     bool // random numbers, since the beginning
	returned string
	living   *living // a process that is just here; nil if there is none
}

// step leads from one moment to the next: an answer to one of its calls, or a pause.
type step struct {
	from   int32
	call   int32
	answer int32 // -1 for a pause
}

// living is a process that may be led on from where it is, once.
type living struct {
	process *process
	at      int32
}

// maxLiving bounds the processes that are kept at rest.
const maxLiving = 256

// begin is the first moment of a life.
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

// answered is the moment after one at which one of its calls was answered.
func (h *histories) answered(from int32, call int, answer int32) (int32, error) {
	return h.after(step{from, int32(call), answer})
}

// paused is the moment after one at which time has passed.
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

// seed is that of all that is drawn between two rests.
func (l life) seed(depth int32) uint64 {
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%d %d %d", l.actor, l.number, depth)
	return hash.Sum64()
}

// add keeps a moment that was not known before, with the process that is there.
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
	h.settle(l, id)
	if r.stuck {
		return id, fmt.Errorf("%s: %w; what it did:\n%s", h.name(m.life), r.err, h.story(id))
	}
	return id, nil
}

// settle keeps a process at a moment, or ends it if it has come to its end.
func (h *histories) settle(l *living, at int32) {
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

// bring returns a process that is at the moment: one that has stayed there, or one that is led there again.
func (h *histories) bring(to int32) (*living, error) {
	if l := h.moments[to].living; l != nil {
		return l, nil
	}
	p, err := h.replay(to)
	return &living{process: p}, err
}

// verifySamples is how many moments are run again at the end of a walk.
const verifySamples = 300

// verify runs some histories again, spread over all, since most are run just once: code that is not deterministic is not
// to be found out by luck alone.
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

// same checks that a process, run again, does as it did.
func (h *histories) same(id int32, r rest) error {
	m := &h.moments[id]
	again := make([]int32, len(r.calls))
	for i, request := range r.calls {
		again[i] = h.requests.number(request.identity, request)
	}
	if slices.Equal(again, m.calls) && r.ended == m.ended {
		return nil
	}
	return fmt.Errorf("%s is not deterministic: with the same answers it asked for\n%s\nand, run again, for\n%s\nwhat it did before:\n%s",
		h.name(m.life), h.identities(m.calls), h.identities(again), h.story(m.previous))
}

func (h *histories) identities(requests []int32) (text string) {
	for _, id := range requests {
		text += fmt.Sprintf("%q\n", h.requests.all[id].identity)
	}
	return text
}

// story is what a process did up to a moment, a line for each step.
func (h *histories) story(to int32) (text string) {
	for id := to; id >= 0 && h.moments[id].previous >= 0; id = h.moments[id].previous {
		text = h.describe(h.moments[id].step) + "\n" + text
	}
	return text
}

// describe names a step for people.
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
