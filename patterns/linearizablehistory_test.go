package patterns_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	historyTeam   = "red"
	historyActors = 3
	historyKeys   = 3 // members 0, 1 and 2: few, so that concurrent writers meet
)

// history is one seed: what concurrent writers on one partition were told.
type history struct {
	seed    uint64
	rng     *rand.Rand // of the scheduler
	service *storagetest.Service
	table   *tables.Table
	retries int32   // of the SDK
	rate    float64 // of faults
	rollout bool    // one of the programs does not have the indexes yet

	mu     sync.Mutex // guards what follows
	now    int        // ticks at every beginning and end of an operation
	stamp  int64      // of the last write
	left   int        // operations to begin
	events [historyKeys][]event
	echoes [historyKeys][]event // of inserts that the SDK repeated
	log    []string
	late   []func() // requests that are on their way, and whose senders have given up

	operations, calls, faults, applied, refused, unknown, failed, lateOnes, deaths, echoed int

	// replace is the write under test that a test of the test puts something wrong in place of.
	replace func(ctx context.Context, m *members, v *member) error
}

func newHistory(t testing.TB, s *storagetest.Service, seed uint64) *history {
	h := &history{seed: seed, service: s, rng: rand.New(rand.NewPCG(seed, 0)), left: linearizableOperations,
		replace: func(ctx context.Context, m *members, v *member) error { return m.Replace(ctx, v) }}
	h.rate = []float64{0, 0.05, 0.15, 0.3}[h.rng.IntN(4)]
	h.retries = []int32{0, 3}[h.rng.IntN(2)]
	h.table = assert.Must[*tables.Table](t)(openTable(h.service, "Members"))
	if err := h.table.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h
}

// actor returns a writer whose processes have clients of s.
func (h *history) actor(id int, s *storagetest.Service) *actor {
	return &actor{h: h, id: id, service: s.WithRetries(h.retries), rng: rand.New(rand.NewPCG(h.seed, uint64(id)+1)), held: map[int]*member{}}
}

// run lets the actors take turns to their end, one storage call each, and checks what they were told. An actor is a
// coroutine that stops before each of its calls, so that one goroutine at a time runs and the seed alone decides.
func (h *history) run(ctx context.Context) error {
	var actors []func() (struct{}, bool)
	for i := range historyActors {
		a := h.actor(i, h.service)
		next, stop := iter.Pull(func(yield func(struct{}) bool) {
			stopped := false
			a.wait = func() {
				if !stopped {
					stopped = !yield(struct{}{})
				}
			}
			a.run(ctx)
		})
		defer stop()
		actors = append(actors, next)
	}
	for len(actors) > 0 {
		if h.rng.IntN(6) == 0 {
			h.deliver(h.rng)
		}
		i := h.rng.IntN(len(actors))
		if _, more := actors[i](); !more {
			actors = slices.Delete(actors, i, i+1)
		}
		if h.rng.IntN(50) == 0 {
			if _, err := h.read(ctx); err != nil {
				return err
			}
		}
	}
	return h.finish(ctx)
}

// finish lets arrive what is late, and checks what all were told.
func (h *history) finish(ctx context.Context) error {
	for h.deliver(h.rng) {
	}
	found, err := h.read(ctx)
	if err != nil {
		return err
	}
	for id := range h.events {
		h.saw(id, found[memberKey(historyTeam, id)], h.tick(), "at the end")
		all := slices.Concat(h.events[id], h.echoes[id])
		switch {
		case len(all) > 64:
			return fmt.Errorf("member %d has %d events, more than the checker takes", id, len(all))
		case linearizable(h.events[id]):
		case linearizable(all):
			h.echoed++
		default:
			return fmt.Errorf("no order of the operations on member %d explains what they were told", id)
		}
	}
	return nil
}

// read reads the whole partition in one query and checks its copies.
func (h *history) read(ctx context.Context) (map[tables.Key]*member, error) {
	rows, err := readStored(ctx, h.table, historyTeam)
	if err != nil {
		return nil, err
	}
	if h.rollout {
		rows.dropOrphans()
	}
	found, err := rows.members()
	if err != nil {
		return nil, fmt.Errorf("at %d: %w; rows:%s", h.now, err, rows.text())
	}
	return found, nil
}

func (h *history) tick() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now++
	return h.now
}

// saw notes that a member was read, nil for one that is not there.
func (h *history) saw(id int, m *member, call int, what string) {
	e := event{what: what, kind: eventRead, call: call, end: h.tick()}
	if m != nil {
		e.from = m.Stamp
	}
	h.add(id, e)
}

func (h *history) add(id int, e event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events[id] = append(h.events[id], e)
}

func (h *history) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log = append(h.log, fmt.Sprintf("%4d %s", h.now, text))
}

func (h *history) count(n *int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*n++
}

// begin reports whether there is another operation to make.
func (h *history) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left == 0 {
		return false
	}
	h.left--
	h.operations++
	return true
}

func (h *history) nextStamp() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stamp++
	return h.stamp
}

// text prints the history: all that happened, and the events of each member.
func (h *history) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "faults %g, SDK retries %d, roll-out %v\n%s\n", h.rate, h.retries, h.rollout, strings.Join(h.log, "\n"))
	for id := range h.events {
		fmt.Fprintf(&b, "member %d:\n", id)
		for _, e := range slices.Concat(h.events[id], h.echoes[id]) {
			fmt.Fprintf(&b, "  %v\n", &e)
		}
	}
	return b.String()
}

// deliver lets a late request arrive, if there is one.
func (h *history) deliver(rng *rand.Rand) bool {
	h.mu.Lock()
	if len(h.late) == 0 {
		h.mu.Unlock()
		return false
	}
	i := rng.IntN(len(h.late))
	send := h.late[i]
	h.late = slices.Delete(h.late, i, i+1)
	h.mu.Unlock()
	send()
	return true
}

// turnTaking is the transport of an actor: each call waits for the actor's turn.
type turnTaking struct {
	inner policy.Transporter
	wait  func()
}

// Do is policy.Transporter.
func (g turnTaking) Do(req *http.Request) (*http.Response, error) {
	g.wait()
	return g.inner.Do(req)
}

// inject chooses an actor's faults.
func (h *history) inject(a *actor) storagetest.InjectorFunc {
	modes := []storagetest.Fault{storagetest.NotSent, storagetest.LostAnswer, storagetest.LostAnswer, storagetest.Applied500, storagetest.Before500,
		storagetest.Throttled, storagetest.CutAnswerAt(0.5), storagetest.CutSilentlyAt(0.5), storagetest.DiesBefore, storagetest.DiesAfter, late{a}, late{a}}
	return func(call storagetest.Call) storagetest.Fault {
		h.count(&h.calls)
		if a.rng.Float64() >= h.rate {
			return nil
		}
		fault := modes[a.rng.IntN(len(modes))]
		h.count(&h.faults)
		h.note("actor %d: %v meets %v", a.id, call, fault)
		return fault
	}
}

// late is a write whose connection is reset while the request is on its way: the service takes it later, when nobody
// waits for it any more. A read is only lost.
type late struct{ a *actor }

// String names the fault.
func (late) String() string { return "Late" }

// Meet implements storagetest.Fault.
func (l late) Meet(call storagetest.Call, req *http.Request, send storagetest.Send) (*http.Response, error) {
	h := l.a.h
	reset := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		req.Body.Close()
	}
	// An insert has no condition. One that is repeated and arrives late as well would be applied twice if the entity was
	// deleted between, and no client can prevent that; so only those arrive late that are not repeated.
	conditional := bytes.Contains(body, []byte("If-Match: W/")) || strings.HasPrefix(req.Header.Get("If-Match"), "W/")
	if !call.Writes() || h.retries > 0 && !conditional {
		return nil, reset
	}
	h.count(&h.lateOnes)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.late = append(h.late, func() {
		again := req.Clone(context.WithoutCancel(req.Context()))
		again.Body = io.NopCloser(bytes.NewReader(body))
		*req = *again // send passes this request on
		resp, err := send()
		if err != nil {
			h.note("late from actor %d: %v: %v", l.a.id, call, err)
			return
		}
		answer, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		h.note("late from actor %d: %v: %s", l.a.id, call, firstStatus(resp, answer))
	})
	return nil, reset
}

// firstStatus is the status that counts: in a batch, that of an operation.
func firstStatus(resp *http.Response, answer []byte) string {
	for line := range bytes.Lines(answer) {
		if bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
			return strings.TrimSpace(string(line))
		}
	}
	return resp.Status
}
