//go:build unix

package check_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// processVariable tells a run of this test binary to be one of the processes of TestChaos: it holds an order.
const processVariable = "TABLEPATTERNS_CHAOS_PROCESS"

const (
	chaosDeadline = 2 * time.Second // of blobs
	chaosGrace    = time.Second     // of sweeps
	chaosPeople   = 40              // numbers of people, so that writers meet
	chaosFaults   = 0.03
	chaosWriters  = 2 // goroutines of a writer
)

// role is what a process does until it is killed or its standard input ends.
type role string

const (
	writer   role = "writer"
	repairer role = "repairer"
)

// order says what a process is to be.
type order struct {
	Role role
	Seed uint64
	In   places
}

// once reports whether the process sends each request once only.
func (o order) once() bool { return o.Seed%2 == 0 }

// event is a line that a process writes: a change when it begins, and again with what its writer was told.
type event struct {
	ID      int    // of the person
	Verb    string // insert, update or delete
	Life    string
	Version int    // what the person's version is after the change; of a delete, what it was before
	Name    string // what the person is called after the change: each change has a name of its own
	Told    told   // "" when it begins
	Job     string // what a repairer has done, or a reader has read: no change
}

// told is what the writer of a change knows of it.
type told string

const (
	applied told = "applied"
	refused told = "refused"
	unknown told = "unknown"
)

// beProcess is what a process does.
func beProcess(t *testing.T, text string) {
	var o order
	ok(t, json.Unmarshal([]byte(text), &o))
	s := storagetest.Azurite(t)
	if o.once() {
		s = s.WithRetries(0)
	}
	s, _ = s.Faulty(trouble(rand.New(rand.NewPCG(o.Seed, 1))))
	w, err := openWorld(s, o.In)
	ok(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	p := &process{w: w, out: os.Stdout, once: o.once()}
	switch o.Role {
	case writer:
		var running sync.WaitGroup
		for n := range uint64(chaosWriters) {
			running.Go(func() { p.write(ctx, t, rand.New(rand.NewPCG(o.Seed, 2+n)), fmt.Sprint(o.Seed, "-", n, "-")) })
		}
		running.Wait()
	case repairer:
		p.repair(ctx, t, rand.New(rand.NewPCG(o.Seed, 2)))
	}
}

// trouble is a network that loses requests and answers, and on which some requests arrive when nobody waits for them any more.
func trouble(dice *rand.Rand) storagetest.Injector {
	return storagetest.InjectorFunc(func(call storagetest.Call) storagetest.Fault {
		if dice.Float64() >= chaosFaults {
			return nil
		}
		if dice.IntN(4) == 0 {
			margin := lease.Margin(chaosDeadline)
			return harness.LateRequest{Network: http.DefaultClient, After: margin / 2, Until: margin * 9 / 10}
		}
		faults := slices.DeleteFunc(storagetest.FaultsOf(call.Kind), func(f storagetest.Fault) bool {
			return f == storagetest.CutSilentlyAt(0.5) // reads as ErrGarbled, as a damaged row does
		})
		return faults[dice.IntN(len(faults))]
	})
}

// process is a writer or a repairer.
type process struct {
	w    *world
	once bool
	mu   sync.Mutex
	out  io.Writer
}

func (p *process) say(e event) {
	line, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out.Write(append(line, '\n'))
}

// write changes people, one change after another.
func (p *process) write(ctx context.Context, t *testing.T, dice *rand.Rand, prefix string) {
	for n := 0; ctx.Err() == nil; n++ {
		// What is under way when the end is near is brought to its end.
		if err := p.change(context.WithoutCancel(ctx), dice, fmt.Sprint(prefix, n)); err != nil {
			t.Error(err)
			return
		}
	}
}

// change makes one change of one person. An error is one that no trouble explains.
func (p *process) change(ctx context.Context, dice *rand.Rand, name string) error {
	id := dice.IntN(chaosPeople)
	found, err := p.read(ctx, dice, id)
	if err != nil && !errors.Is(err, tables.ErrNotFound) {
		return explained(err)
	}
	e := event{ID: id, Verb: "update", Name: name}
	switch {
	case found == nil:
		found = &person{Department: fmt.Sprint("D", id%2), ID: id, Life: p.newLife(name)}
		e.Verb = "insert"
	case dice.IntN(3) == 0 && mayEnd(found.Life):
		e.Verb = "delete"
	default:
		found.Version++
	}
	e.Life, e.Version = found.Life, found.Version
	change := p.w.repo.Delete
	if e.Verb != "delete" {
		// Few teams and badges, so that people meet in them.
		found.Name, found.Email = name, []string{"", "mail" + name, found.Email}[dice.IntN(3)]
		found.Badge, found.Team = []string{"", fmt.Sprint("B", dice.IntN(2*chaosPeople)), found.Badge}[dice.IntN(3)], fmt.Sprint("team", dice.IntN(3))
		if dice.IntN(2) == 0 {
			found.Photo = []byte(strings.Repeat(name, 8))
		}
		change = p.w.repo.Replace
		if e.Verb == "insert" {
			change = p.w.repo.Insert
		}
	}
	p.say(e)
	err = change(ctx, found)
	switch {
	case err == nil:
		e.Told = applied
	case harness.OutcomeUnknown(err):
		e.Told = unknown
	default:
		e.Told, err = refused, explained(err)
	}
	p.say(e)
	if e.Told == refused {
		return err
	}
	return nil
}

// repeats is longer than the insert of a person is repeated by the SDK, stalls included.
const repeats = 15 * time.Second

// newLife names a life. An insert whose answer was lost is sent again by the SDK; where somebody has deleted the person in between,
// the person is back, as docs/explanation/guarantees.md says. So who repeats requests says in the life from when on that is over.
func (p *process) newLife(name string) string {
	if p.once {
		return name
	}
	return fmt.Sprint(name, "@", time.Now().Add(repeats).UnixMilli())
}

// mayEnd reports whether no insert of the life can arrive any more.
func mayEnd(life string) bool {
	_, after, repeated := strings.Cut(life, "@")
	ms, err := strconv.ParseInt(after, 10, 64)
	return !repeated || err == nil && time.Now().UnixMilli() > ms
}

// read reads a person by number, and now and then by a copy.
func (p *process) read(ctx context.Context, dice *rand.Rand, id int) (*person, error) {
	found, err := p.w.repo.Get(ctx, personKey(&person{Department: fmt.Sprint("D", id%2), ID: id}))
	if err == nil && found.Email != "" && dice.IntN(8) == 0 {
		p.say(event{ID: id, Job: "read by a copy"})
		if _, err := p.w.mail.In(found.Department).Get(ctx, compoundkey.String(found.Email)); err != nil && !errors.Is(err, tables.ErrNotFound) {
			return nil, err
		}
	}
	return found, err
}

// explained is nil for what concurrent writers or the network can do to a request.
func explained(err error) error {
	for _, kind := range []error{tables.ErrConflict, tables.ErrExists, tables.ErrDuplicate, tables.ErrNotFound, tables.ErrUnavailable, tables.ErrUnknownOutcome} {
		if errors.Is(err, kind) {
			return nil
		}
	}
	var network net.Error
	if errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// repair runs maintenance over and over: Verify and Repair with the shortest Lag. Sweep has the shortest Grace.
func (p *process) repair(ctx context.Context, t *testing.T, dice *rand.Rand) {
	lag := time.Nanosecond
	jobs := append(harness.RepositoryJobs(func(w *world) *patterns.Repository[person] { return w.repo }, lag),
		harness.Job[*world]{Name: "Sweep", Run: func(ctx context.Context, w *world) error { return w.sweep(ctx) }})
	jobs = append(jobs, jobs[1], jobs[1]) // Repair
	for ctx.Err() == nil {
		job := jobs[dice.IntN(len(jobs))]
		if err := explained(job.Run(ctx, p.w)); err != nil && ctx.Err() == nil {
			t.Errorf("%s: %v", job.Name, err)
			return
		}
		p.say(event{Job: job.Name})
	}
}

// history is what the processes said.
type history struct {
	mu      sync.Mutex
	changes int            // that were begun
	told    map[told]int   // what their writers were told
	jobs    map[string]int // what repairers and readers did
	lives   map[string]*life
}

// life is what became of a person from an insert to a delete.
type life struct {
	id      int
	known   int             // the highest version that surely was stored; -1 for none
	deleted bool            // surely
	may     map[string]told // the names that its changes gave it; of deletes, "delete"
}

// listen reads what a process says until its end.
func (h *history) listen(r io.Reader, rest *strings.Builder) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			h.mu.Lock()
			rest.WriteString(lines.Text() + "\n")
			h.mu.Unlock()
			continue
		}
		h.add(e)
	}
}

func (h *history) add(e event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.Job != "" {
		h.jobs[e.Job]++
		return
	}
	l := h.lives[e.Life]
	if l == nil {
		l = &life{id: e.ID, known: -1, may: map[string]told{}}
		h.lives[e.Life] = l
	}
	name := fmt.Sprint(e.Version, " ", e.Name)
	if e.Verb == "delete" {
		name = "delete " + e.Name
	}
	l.may[name] = e.Told
	switch e.Told {
	case "":
		h.changes++
		return
	case applied:
		if e.Verb == "delete" {
			l.deleted = true
		} else {
			l.known = max(l.known, e.Version)
		}
	}
	h.told[e.Told]++
}

// check compares what is stored with what writers were told: nothing that was applied is lost, and nothing that was refused is
// there.
func (h *history) check(stored []person) (wrong []string) {
	alive := map[string]person{}
	for _, p := range stored {
		alive[p.Life] = p
		l := h.lives[p.Life]
		switch {
		case l == nil:
			wrong = append(wrong, fmt.Sprintf("person %d has life %q, which nobody began", p.ID, p.Life))
		case l.deleted:
			wrong = append(wrong, fmt.Sprintf("person %d is back: life %q was deleted", p.ID, p.Life))
		case p.Version < l.known:
			wrong = append(wrong, fmt.Sprintf("person %d is at version %d of life %q, and a writer was told that version %d is stored", p.ID, p.Version, p.Life, l.known))
		default:
			if told, begun := l.may[fmt.Sprint(p.Version, " ", p.Name)]; !begun || told == refused {
				wrong = append(wrong, fmt.Sprintf("person %d is %q at version %d, of which its writer was told %q", p.ID, p.Name, p.Version, cmp.Or(told, "nothing")))
			}
		}
	}
	for name, l := range h.lives {
		if _, lives := alive[name]; lives || l.known < 0 {
			continue
		}
		mayBeDeleted := false
		for what, told := range l.may {
			mayBeDeleted = mayBeDeleted || strings.HasPrefix(what, "delete ") && told != refused
		}
		if !mayBeDeleted {
			wrong = append(wrong, fmt.Sprintf("person %d is lost: life %q was stored at version %d, and nobody deleted it", l.id, name, l.known))
		}
	}
	return wrong
}
