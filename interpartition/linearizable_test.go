package interpartition_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/marks"
	"github.com/tablepatterns/tablepatterns/internal/race"
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	linearizableSeeds = 500
	// linearizableSeed is the environment variable that chooses one seed.
	linearizableSeed = "LINEARIZABLE_SEED"
	stopsAfter       = 60  // changes of a writer
	looks            = 100 // reads of a reader
)

// TestLinearizableReads: writers whose calls fail, arrive late, or kill them, take keys from one another, and readers read through both indexes, beside Verify, Repair and Rebuild. The service
// answers one request at a time, so that the test knows which entity has had which key at which moment: each answer must have been true
// between the beginning and the end of its read. Two entities never have one key.
func TestLinearizableReads(t *testing.T) {
	seeds := linearizableSeeds / 25
	switch {
	case race.Enabled, testing.Short():
		seeds = linearizableSeeds / 100
	case harness.Thorough():
		seeds = linearizableSeeds
	}
	first, last := 0, seeds
	if text := os.Getenv(linearizableSeed); text != "" {
		first = assert.Must[int](t)(strconv.Atoi(text))
		last = first + 1
	}
	var total historyCounts
	began := time.Now()
	for seed := first; seed < last && !t.Failed(); seed++ {
		storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
			h := &readHistory{seed: uint64(seed), total: &total, world: newWorld(t, s, []kind{{unique: true}, {}, {unique: true, background: true}}[seed%3])}
			if err := h.run(t, s); err != nil {
				t.Errorf("seed %d, %v: %v\nalone: %s=%d go test -run '^TestLinearizableReads$' ./interpartition", seed, h.kind, err, linearizableSeed, seed)
			}
		})
	}
	t.Logf("%d seeds: %s, in %v", last-first, &total, time.Since(began).Round(time.Millisecond))
}

// historyCounts say that the histories were rich enough to prove something.
type historyCounts struct{ reads, found, writes, applied, refused, unknown, failed, faults, deaths atomic.Int64 }

func (c *historyCounts) String() string {
	return fmt.Sprintf("%d reads (%d found somebody), %d states of the entities, %d changes applied, %d refused, %d unknown, %d failed, %d faults, %d deaths",
		c.reads.Load(), c.found.Load(), c.writes.Load(), c.applied.Load(), c.refused.Load(), c.unknown.Load(), c.failed.Load(), c.faults.Load(), c.deaths.Load())
}

// place is an index key, and an entity that may have it.
type place struct{ key, entity string }

// readHistory is one world with what has happened in it.
type readHistory struct {
	*world
	seed  uint64
	total *historyCounts
	truth *process // reads without faults and without delay
	cache bool     // readers get answers again that they have had before

	mu     sync.Mutex
	states []map[place]string // who had which key after each change of an entity, as a read shows it
	wrong  error
}

var (
	historyKeys  = []string{"a", "b", "c"}
	historyNames = []string{"x", "y"}
)

const historyEntities = 3

// run is the whole of a history.
func (h *readHistory) run(t *testing.T, s *storagetest.Service) error {
	h.truth = assert.Must[*process](t)(h.start(s))
	h.look(t.Context())
	seen := s.WithTransport(func(inner policy.Transporter) policy.Transporter { return &watchedService{h, inner} })
	var all sync.WaitGroup
	for actor := range 3 {
		all.Go(func() { h.writer(t.Context(), seen, rand.New(rand.NewPCG(h.seed, uint64(actor)))) })
		all.Go(func() { h.reader(t.Context(), h.cached(seen), rand.New(rand.NewPCG(h.seed, uint64(10+actor)))) })
	}
	if h.seed%2 == 0 {
		all.Go(func() { h.keeper(t.Context(), seen, rand.New(rand.NewPCG(h.seed, 20))) })
	}
	all.Wait()
	time.Sleep(marks.Margin + time.Second) // late requests have arrived
	if h.wrong != nil {
		return h.wrong
	}
	people := &known{emails: historyKeys, badges: historyKeys, names: historyNames}
	if err := h.agree(t.Context(), h.truth, people); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	time.Sleep(marks.Term + marks.Grace + time.Second)
	return errors.Join(h.agreesAlways(t.Context(), s, people), h.truth.close(t.Context()))
}

// cached puts a cache before the service, if there is to be one.
func (h *readHistory) cached(s *storagetest.Service) *storagetest.Service {
	if !h.cache {
		return s
	}
	var answers sync.Map // by address
	return s.WithTransport(func(inner policy.Transporter) policy.Transporter {
		return harness.Transport(func(req *http.Request) (*http.Response, error) {
			if had, ok := answers.Load(req.URL.String()); ok && len(had.(string))%3 > 0 {
				return harness.Reply(req, http.StatusOK, had.(string), "Content-Type", "application/json"), nil
			}
			resp, err := inner.Do(req)
			if err != nil || resp.StatusCode != http.StatusOK {
				return resp, err
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			resp.Body = io.NopCloser(bytes.NewReader(body))
			answers.Store(req.URL.String(), string(body))
			return resp, err
		})
	})
}

// TestLinearizableReadsFindsStaleReads: a reader with a cache is found out.
func TestLinearizableReadsFindsStaleReads(t *testing.T) {
	found := 0
	for seed := range uint64(5) {
		storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
			h := &readHistory{seed: seed, total: &historyCounts{}, world: newWorld(t, s, kind{unique: true}), cache: true}
			if err := h.run(t, s); err != nil && strings.Contains(err.Error(), "it was never so") {
				found++
			}
		})
	}
	if found < 4 {
		t.Errorf("%d of 5 seeds show the stale reads", found)
	}
}

// fails records the first thing that is wrong.
func (h *readHistory) fails(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.wrong == nil {
		h.wrong = fmt.Errorf(format, args...)
	}
}

// watchedService answers one request at a time, after some time, and looks at the entities after each write.
type watchedService struct {
	h     *readHistory
	inner policy.Transporter
}

func (w *watchedService) Do(req *http.Request) (*http.Response, error) {
	time.Sleep(time.Duration(1+rand.IntN(30)) * time.Millisecond)
	w.h.mu.Lock()
	resp, err := w.inner.Do(req)
	if req.Method != http.MethodGet && strings.Contains(req.URL.Path, w.h.table) || strings.HasSuffix(req.URL.Path, "$batch") {
		w.h.lookLocked(context.Background())
	}
	w.h.mu.Unlock()
	time.Sleep(time.Duration(1+rand.IntN(30)) * time.Millisecond)
	return resp, err
}

func (h *readHistory) look(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lookLocked(ctx)
}

// lookLocked records who has which key now.
func (h *readHistory) lookLocked(ctx context.Context) {
	now, owners := map[place]string{}, map[string]int{}
	for e, err := range h.truth.repo.Query().Partition("Sales").All(ctx) {
		if err != nil {
			h.wrong = errors.Join(h.wrong, err)
			return
		}
		for key, shows := range map[string]string{"email " + e.Email: wholeText(e), "badge " + e.Badge: shortText(e)} {
			if strings.HasSuffix(key, " ") {
				continue
			}
			now[place{key, e.Key().Row}] = shows
			if owners[key]++; h.unique && owners[key] > 1 && h.wrong == nil {
				h.wrong = fmt.Errorf("two entities have %q: %v", key, now)
			}
		}
	}
	if n := len(h.states); n == 0 || fmt.Sprint(h.states[n-1]) != fmt.Sprint(now) {
		h.states = append(h.states, now)
		h.total.writes.Add(1)
	}
}

// since returns the number of states so far.
func (h *readHistory) since() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.states) - 1
}

// between returns the states from one on.
func (h *readHistory) between(from int) []map[place]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.states[from:len(h.states):len(h.states)]
}

// writer is a writer whose processes die now and then.
func (h *readHistory) writer(ctx context.Context, s *storagetest.Service, rng *rand.Rand) {
	left := stopsAfter
	trouble := []float64{0, 0.02, 0.08}[h.seed%5%3]
	for left > 0 && ctx.Err() == nil {
		fate := rand.New(rand.NewPCG(h.seed, rng.Uint64())) // of its own, since requests in the background draw from it, too
		injector := storagetest.InjectorFunc(func(call storagetest.Call) storagetest.Fault {
			switch n := fate.Float64(); {
			case n < trouble/4:
				h.total.deaths.Add(1)
				return []storagetest.Fault{storagetest.DiesBefore, storagetest.DiesAfter}[fate.IntN(2)]
			case n < trouble/2:
				return harness.LateRequest{Network: s.ClientOptions.Transport, After: marks.Margin * 9 / 10}
			case n < trouble:
				faults := storagetest.FaultsOf(call.Kind)
				return faults[fate.IntN(len(faults))]
			}
			return nil
		})
		faulty, faults := s.WithRetries(int32(rng.IntN(3))).Faulty(injector)
		alive, cancel := faults.Context(ctx)
		p, err := h.start(faulty)
		if err != nil {
			h.fails("%w", err)
			left = 0
		}
		for ; left > 0 && !faults.Dead(); left-- {
			h.told(h.change(rng)(alive, p.repo))
			if rng.IntN(40) == 0 {
				time.Sleep(marks.Term + marks.Grace) // until marks that are left expire
			}
		}
		if p != nil {
			_ = p.close(alive)
		}
		h.total.faults.Add(int64(len(faults.Met())))
		cancel()
	}
}

// keeper runs the jobs of the repository. Nothing is ever wrong, so that they find nothing.
func (h *readHistory) keeper(ctx context.Context, s *storagetest.Service, rng *rand.Rand) {
	p, err := h.start(s)
	if err != nil {
		h.fails("%w", err)
		return
	}
	jobs := []harness.RepositoryJob[tally.Report]{harness.Tallied(p.repo.Verify), harness.Tallied(p.repo.Repair), harness.Tallied(p.repo.Rebuild)}
	for range 6 {
		if err := harness.Clean(ctx, jobs[rng.IntN(len(jobs))], nil); err != nil {
			h.fails("a job beside the writers: %w", err)
		}
		time.Sleep(time.Duration(rng.IntN(20)) * time.Second)
	}
	_ = p.close(ctx)
}

// told counts what writers are told.
func (h *readHistory) told(err error) {
	switch {
	case err == nil:
		h.total.applied.Add(1)
	case errors.Is(err, tables.ErrUnknownOutcome):
		h.total.unknown.Add(1)
	case errors.Is(err, tables.ErrDuplicate), errors.Is(err, tables.ErrConflict), errors.Is(err, tables.ErrExists), errors.Is(err, tables.ErrNotFound):
		h.total.refused.Add(1)
	default:
		h.total.failed.Add(1)
	}
}

// person is one of few entities with one of few keys.
func (h *readHistory) person(rng *rand.Rand, id int) *employee {
	some := func() string { return append([]string{""}, historyKeys...)[rng.IntN(1+len(historyKeys))] }
	return &employee{Department: "Sales", ID: id, Name: historyNames[rng.IntN(len(historyNames))], Email: some(), Badge: some()}
}

func (h *readHistory) change(rng *rand.Rand) change {
	ids := rng.Perm(historyEntities)
	one, two := h.person(rng, ids[0]), h.person(rng, ids[1])
	switch rng.IntN(12) {
	case 0, 1:
		return inserts(one)
	case 2:
		return goes(one)
	case 3:
		return upserts(one)
	case 4, 5:
		return together(becoming(one), becoming(two))
	case 6:
		return together(going(one), becoming(two))
	case 7, 8: // exchange their keys
		return together(exchanging(one, two), exchanging(two, one))
	}
	return becomes(one)
}

// exchanging gives one employee the keys that another one has.
func exchanging(one, other *employee) stage {
	return func(ctx context.Context, repo *patterns.Repository[employee], x *tables.Transaction) error {
		has, err := repo.Get(ctx, keyOf(other))
		if err != nil {
			return err
		}
		return becoming(keyed(one, has))(ctx, repo, x)
	}
}

// reader reads in all ways, and holds each answer against what was true meanwhile.
func (h *readHistory) reader(ctx context.Context, s *storagetest.Service, rng *rand.Rand) {
	p, err := h.start(s)
	if err != nil {
		h.fails("%w", err)
		return
	}
	for range looks {
		key := historyKeys[rng.IntN(len(historyKeys))]
		index, name, shows := p.email.In("Sales"), "email ", wholeText
		if rng.IntN(2) == 0 {
			index, name, shows = p.badge, "badge ", shortText
		}
		from, part := h.since(), compoundkey.String(key)
		switch rng.IntN(8) {
		case 0:
			h.wholeIndex(from, "Range", name, "", index.Range(ctx), shows)
		case 1:
			of := historyNames[rng.IntN(len(historyNames))]
			h.wholeIndex(from, "Query "+of, name, of, index.Query().Where(tables.Eq("Name", of)).All(ctx), shows)
		case 2:
			h.oneKey(from, "All", name+key, index.All(ctx, part), shows)
		case 3:
			h.oneKey(from, "GetFull", name+key, gotten(index.GetFull(ctx, part)), shows)
		default:
			h.oneKey(from, "Get", name+key, gotten(index.Get(ctx, part)), shows)
		}
		h.total.reads.Add(1)
		if rng.IntN(60) == 0 {
			time.Sleep(time.Duration(rng.IntN(40)) * time.Second)
		}
	}
	_ = p.close(ctx)
}

// collected reads to the end.
func (h *readHistory) collected(all iter.Seq2[*employee, error], text func(*employee) string) (found map[string]string, keys map[string]*employee) {
	found, keys = map[string]string{}, map[string]*employee{}
	for e, err := range all {
		if err != nil {
			h.fails("a read fails: %w", err)
			return nil, nil
		}
		found[e.Key().Row], keys[e.Key().Row] = text(e), e
		h.total.found.Add(1)
	}
	return found, keys
}

// oneKey checks a read of one key. Of a unique index the answer as a whole was true at one moment, of shared keys what is said of each entity.
func (h *readHistory) oneKey(from int, read, key string, all iter.Seq2[*employee, error], text func(*employee) string) {
	found, _ := h.collected(all, text)
	states := h.between(from)
	for id := range historyEntities {
		row := keyOf(&employee{ID: id}).Row
		got, first := found[row], read == "Get" || read == "GetFull"
		if got == "" && first && !h.unique && len(found) > 0 {
			continue // another one was the first
		}
		if !h.true(states, place{key, row}, got, "") {
			h.fails("%s %s: %s is %q, and it was never so in %v", read, key, row, got, states)
		}
	}
	if h.unique && len(found) == 0 {
		for _, state := range states {
			if !owned(state, key) {
				return
			}
		}
		h.fails("%s %s finds nobody, and somebody had it all the time: %v", read, key, states)
	}
}

// owned reports whether somebody has a key.
func owned(state map[place]string, key string) bool {
	for at := range state {
		if at.key == key {
			return true
		}
	}
	return false
}

// wholeIndex checks a read of all keys with those names, or of all: what it says of each key and entity was true at some moment.
func (h *readHistory) wholeIndex(from int, read, index, of string, all iter.Seq2[*employee, error], text func(*employee) string) {
	found := map[place]string{}
	for e, err := range all {
		if err != nil {
			h.fails("%s fails: %w", read, err)
			return
		}
		h.total.found.Add(1)
		var key string
		if err := compoundkey.Parse(e.ReadRow(), "", append([]compoundkey.Target{compoundkey.ToString(&key)}, h.rest()...)...); err != nil {
			h.fails("%s: %w", read, err)
		}
		found[place{index + key, e.Key().Row}] = text(e)
	}
	states := h.between(from)
	for _, key := range historyKeys {
		for id := range historyEntities {
			at := place{index + key, keyOf(&employee{ID: id}).Row}
			if !h.true(states, at, found[at], of) {
				h.fails("%s %v: %q, and it was never so in %v", read, at, found[at], states)
			}
		}
	}
}

// true reports whether an answer was true in one of the states; of is the name that was asked for, "" for all.
func (h *readHistory) true(states []map[place]string, at place, got, of string) bool {
	for _, state := range states {
		is := state[at]
		if of != "" && !strings.Contains(is, "}"+of) {
			is = ""
		}
		if is == got {
			return true
		}
	}
	return false
}
