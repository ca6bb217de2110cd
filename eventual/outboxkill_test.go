package eventual_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	// outboxKillVariable tells a run of this test binary to be a process to be killed: the names of its tables and store, and its series.
	outboxKillVariable = "EVENTUAL_OUTBOX_KILL_CHILD"
	outboxKillWriters  = 4
	// changeBegun is the line that such a process writes before each change.
	changeBegun = "begun\n"
)

// TestKilledOutboxes makes some thousand changes in two processes with an outbox, of which one after the other is killed in the middle
// of its work. In the end the handler has had its effect exactly once for each change that was committed, since it is idempotent by
// the ID, and none for those that were not.
func TestKilledOutboxes(t *testing.T) {
	if names := os.Getenv(outboxKillVariable); names != "" {
		beOutbox(t, strings.Fields(names))
		return
	}
	storagetest.AzuriteOnly(t)
	n, each := 150, 25
	if harness.Thorough() && os.Getenv(careless) == "" {
		n, each = 10_000, 150
	}
	s := storagetest.Azurite(t)
	names, effectsName := saleNames(t, s), s.TableName(t)
	store, repo, err := salesOf(s, names, (&destination{}).outbox(nil, nil))
	assert.Check(t, err)
	eventual.Intents(store)
	table := store.Table(effectsName)
	assert.Check(t, store.Create(t.Context()))
	newEffects(t, table)

	began := time.Now()
	start := func(n int) *victim {
		return startChild(t, "TestKilledOutboxes", s.ConnectionString, fmt.Sprintf("%s=%s %s %s s%d", outboxKillVariable, names[0], names[1], effectsName, n))
	}
	begun := func(all []*victim) (n int) {
		for _, v := range all {
			n += v.said(changeBegun)
		}
		return n
	}
	killed := killInTurn(t, start, func(v *victim) bool { return v.said(changeBegun) >= each }, func(all []*victim) bool { return begun(all) < n })
	took := time.Since(began)
	changes, again, twice := begun(killed), 0, 0
	for _, v := range killed {
		again, twice = again+v.said(redelivered), twice+v.said(duplicate)
	}
	committed, wrong := checkEffects(t, repo, table)
	t.Logf("%d changes in %.1f s, %d of them committed; %d processes killed; %d calls that were not the first, or for an ID whose effect was there; %d entities wrong",
		changes, took.Seconds(), committed, len(killed)-2, again+twice, wrong)
	if len(killed) < 4 || changes < n || committed < n*9/10 {
		t.Error("the kills did not meet changes under way, so the test has not tested anything")
	}
	if poisoned := assert.Must[int](t)(eventual.Intents(store).Poison().Length(t.Context())); poisoned != 0 {
		t.Errorf("%d intents are poisoned; the first: %+v", poisoned, entries(t, eventual.Intents(store))[0])
	}
}

// TestKilledOutboxesCanFail: a handler that does not use the ID has its effect twice for some changes. It takes some seconds, so only
// thorough runs on Azurite have it.
func TestKilledOutboxesCanFail(t *testing.T) {
	if !harness.Thorough() || !harness.OnAzurite(t) {
		return
	}
	cmd := exec.CommandContext(t.Context(), assert.Must[string](t)(os.Executable()), "-test.run=^TestKilledOutboxes$")
	cmd.Env = append(os.Environ(), careless+"=1")
	out, err := cmd.CombinedOutput()
	if said := regexp.MustCompile(`sale [^\n]* effects after [^\n]*`).FindString(string(out)); err == nil || said == "" {
		t.Fatalf("effects that are not idempotent were not caught: %v\n%s", err, out)
	}
}

// checkEffects holds the effects against the sales: one for each change, which is as many as the sale's total. committed is the number
// of changes, and wrong of sales with other effects.
func checkEffects(t *testing.T, repo *patterns.Repository[sale], table *tables.Table) (committed, wrong int) {
	t.Helper()
	effects, rows, counted := map[string]int{}, 0, int64(0)
	for row, err := range table.Entities().Query().AllowTableScan().All(t.Context()) {
		assert.Check(t, err)
		if row.Key == counterOf(row.Key.Partition) {
			n, _ := row.Get(countProperty).Int()
			counted += n
			continue
		}
		id, _ := row.Get(numberProperty).Text()
		effects[id]++
		rows++
	}
	for v, err := range repo.Query().Partition("shop").All(t.Context()) {
		assert.Check(t, err)
		committed += v.Total
		if effects[v.ID] != v.Total {
			wrong++
			t.Errorf("sale %s has %d effects after %d changes", v.ID, effects[v.ID], v.Total)
		}
		delete(effects, v.ID)
	}
	for id, n := range effects {
		wrong++
		t.Errorf("sale %s does not exist and has %d effects", id, n)
	}
	assert.Equal(t, int64(rows), counted, "the counters, of %d effects", rows)
	return committed, wrong
}

// beOutbox inserts and replaces sales of its own series, and handles what others have left, until standard input ends. Then it handles
// what there is.
func beOutbox(t *testing.T, names []string) {
	s := storagetest.Azurite(t)
	account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
	store := assert.Must[*patterns.Store](t)(patterns.Open(names[1], &patterns.StoreOptions{Account: account, Intents: eventual.IntentQueue(&eventual.QueueOptions{VisibilityTimeout: killVisibility},
		&eventual.WorkerOptions{Concurrency: killConcurrency, MaxDequeues: killDequeues, MinPoll: 20 * time.Millisecond, MaxPoll: 200 * time.Millisecond, RetryDelay: atOnce})}))
	seen := saleEffects{effects: effects{table: account.Table(names[2]), told: os.Stdout}}
	repo := assert.Must[*patterns.Repository[sale]](t)(patterns.NewRepository(store.Table(names[0]), patterns.Schema[sale]{Key: func(v *sale) tables.Key { return saleKey(v.ID) }},
		eventual.OnCommit("calls", seen.count, nil)))
	var over atomic.Bool
	go func() {
		io.Copy(io.Discard, os.Stdin)
		over.Store(true)
	}()
	ctx, stop := t.Context(), assert.Must[func() error](t)(store.Start(t.Context()))
	var writers sync.WaitGroup
	var next atomic.Int64
	for range outboxKillWriters {
		writers.Go(func() {
			for !over.Load() {
				err := sellTwice(ctx, repo, fmt.Sprintf("%s-%06d", names[3], next.Add(1)))
				stalled := errors.Is(err, eventual.ErrLeaseLost) || errors.Is(err, tables.ErrUnknownOutcome) // for seconds, as on a busy machine
				if err != nil && !stalled {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	assert.Check(t, harness.Settle(ctx, store))
	for assert.Must[int](t)(eventual.Intents(store).Length(ctx)) > 0 {
		time.Sleep(50 * time.Millisecond)
	}
	assert.Check(t, stop())
}

// sellTwice inserts a sale and replaces it: its total is the number of its changes.
func sellTwice(ctx context.Context, repo *patterns.Repository[sale], id string) error {
	v := saleOf(id, 1)
	io.WriteString(os.Stdout, changeBegun)
	if err := repo.Insert(ctx, v); err != nil {
		return err
	}
	io.WriteString(os.Stdout, changeBegun)
	v.Total = 2
	return repo.Replace(ctx, v)
}

// saleEffects has an effect for each change of a sale.
type saleEffects struct {
	effects
	calls sync.Map // by Commit.ID
}

// count has the effect of a change, unless the handler is to be careless: then it has one for each call.
func (e *saleEffects) count(ctx context.Context, c eventual.Commit[sale]) error {
	if _, again := e.calls.LoadOrStore(c.ID, true); again {
		io.WriteString(e.told, redelivered)
	}
	row := c.ID
	if os.Getenv(careless) != "" {
		row += rand.Text()
	}
	return e.add(ctx, c.ID, row, tables.String(c.Entity.ID))
}
