package interpartition_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// logged collects what an account and its workers log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// lines returns the lines that hold all of these texts.
func (l *logged) lines(texts ...string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		has := true
		for _, text := range texts {
			has = has && strings.Contains(line, text)
		}
		if has {
			found = append(found, line)
		}
	}
	return found
}

// build is a program of one build: an older one does not have the index of badges.
type build struct {
	process
	log *logged
}

func newBuild(t testing.TB, s *storagetest.Service, w *world, older bool, async bool) *build {
	t.Helper()
	b := &build{log: &logged{}}
	account := harness.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString,
		&tables.AccountOptions{ClientOptions: s.ClientOptions, Logger: slog.New(slog.NewTextHandler(b.log, nil))}))
	b.queue = harness.Must[*eventual.Queue](t)(eventual.NewQueue(account, w.queue, &eventual.QueueOptions{VisibilityTimeout: w.visibility()}))
	b.badges = account.Table(w.badges)
	var indexes []patterns.Pattern[employee]
	if !older {
		b.badge = interpartition.NewIndex("badge", func(e *employee) compoundkey.Part { return text(e.Badge) }, &interpartition.Options[employee]{
			Table:   account.Table(w.badges),
			Project: []string{"Name"},
		})
		indexes = append(indexes, b.badge)
	}
	b.email = interpartition.NewIndex("email", func(e *employee) compoundkey.Part { return text(e.Email) }, &interpartition.Options[employee]{ByPartition: true})
	schema := patterns.Schema[employee]{Key: keyOf, Rows: compoundkey.Starting("empid")}
	b.repo = harness.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(harness.In(account.Table(w.table), b.queue), schema, harness.AsyncIf(async, append(indexes, b.email)...)...))
	return b
}

// TestFailureOutsideIsSeen: an insert whose effect in another table fails returns nil, since the entity is there. The
// account's log says which table of which pattern failed and what to do, and so does the worker's log.
func TestFailureOutsideIsSeen(t *testing.T) {
	for name, c := range map[string]struct {
		missing bool
		kind    error
		action  string
	}{
		"table missing":   {missing: true, kind: tables.ErrMissingResource, action: "create "},
		"table throttled": {kind: tables.ErrUnavailable, action: "spread the keys of "},
	} {
		t.Run(name, func(t *testing.T) {
			s := storagetest.Simulator(t, nil)
			w := newWorld(t, s, kind{})
			ctx := t.Context()
			faulty, _ := s.WithRetries(0).Faulty(storagetest.If(func(call storagetest.Call) bool { return call.Resource == w.badges }, storagetest.Throttled))
			if c.missing {
				faulty = s
				if err := harness.Must[*process](t)(w.start(s)).badges.Drop(ctx); err != nil {
					t.Fatal(err)
				}
			}
			b := newBuild(t, faulty, w, false, false)
			if err := b.repo.Insert(ctx, jones()); err != nil {
				t.Fatalf("the entity is there, and Insert returned %v", err)
			}
			written := b.log.lines("a change is made", "level=WARN", `table=`+w.badges, `pattern=badge`, `queue=`+w.queue, "in "+w.badges, c.action+w.badges)
			if len(written) != 1 {
				t.Errorf("%d lines of the writer name the table and what to do:\n%s", len(written), b.log.text.String())
			}
			worker := harness.Must[*eventual.Worker](t)(eventual.NewWorker(b.queue, nil, &eventual.WorkerOptions{RetryDelay: func(int) time.Duration { return 0 }}))
			for range 10 {
				harness.Must[int](t)(worker.Drain(ctx))
				s.Wait(w.visibility()) // a request without an answer leaves the message hidden that long
			}
			if stats := worker.Stats(); stats.Poisoned+stats.Failed > 0 || stats.Released < 3 {
				t.Fatalf("%+v: the intent waits for the service", stats)
			}
			if waiting := b.log.lines("event=message_postponed", "in "+w.badges, "badge"); len(waiting) != 1 || len(b.log.lines("in "+w.table)) != 0 {
				t.Errorf("%d lines:\n%s", len(waiting), b.log.text.String())
			}
			if hints := b.log.lines("event=message_postponed", "create table "+w.badges+" with Store.Create or Table.CreateIfMissing"); (len(hints) == 1) != c.missing {
				t.Errorf("%d lines say how to create the table", len(hints))
			}
			for _, value := range []string{jones().Name, jones().Email} {
				if leaks := b.log.lines(value); len(leaks) > 0 {
					t.Errorf("the log holds a value: %s", leaks[0])
				}
			}
		})
	}
}

// TestFailureOutsideIsSeenByDefault: without a logger of its own, an account logs to slog's default logger.
func TestFailureOutsideIsSeenByDefault(t *testing.T) {
	before, seen := slog.Default(), &logged{}
	slog.SetDefault(slog.New(slog.NewTextHandler(seen, nil)))
	defer slog.SetDefault(before)
	s := storagetest.Simulator(t, nil)
	w := newWorld(t, s, kind{})
	p := harness.Must[*process](t)(w.start(s))
	if err := errors.Join(p.badges.Drop(context.Background()), p.repo.Insert(context.Background(), jones())); err != nil {
		t.Fatal(err)
	}
	if n := len(seen.lines("a change is made", `table=`+w.badges)); n != 1 {
		t.Errorf("%d lines", n)
	}
}

// TestOlderWorkersLeaveNewerIntents: a worker that does not know a pattern or repository of an intent releases it with
// growing delay while the deployment may take, and a worker of the newer build then carries it out.
func TestOlderWorkersLeaveNewerIntents(t *testing.T) {
	for name, older := range map[string]func(testing.TB, *storagetest.Service, *world) *build{
		"pattern": func(t testing.TB, s *storagetest.Service, w *world) *build {
			return newBuild(t, s, w, true, false)
		},
		"repository": func(t testing.TB, s *storagetest.Service, w *world) *build {
			other := *w
			other.table = w.badges
			return newBuild(t, s, &other, true, false)
		},
	} {
		for _, deployed := range []bool{true, false} {
			t.Run(name+map[bool]string{true: "/deployed", false: "/given up"}[deployed], func(t *testing.T) {
				storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
					ctx, cancel := context.WithCancel(t.Context())
					w := newWorld(t, s, kind{})
					newer := newBuild(t, s, w, false, true)
					if err := newer.repo.Insert(ctx, jones()); err != nil {
						t.Fatal(err)
					}
					b := older(t, s, w)
					worker := harness.Must[*eventual.Worker](t)(eventual.NewWorker(b.queue, nil, &eventual.WorkerOptions{PostponeTimeout: 6 * time.Hour}))
					ended := make(chan error, 1)
					go func() { ended <- worker.Run(ctx) }()
					time.Sleep(5*time.Hour + 50*time.Minute)
					stats := worker.Stats()
					if stats.Poisoned != 0 || stats.Failed != 0 || stats.Released < 60 || stats.Released > 150 {
						t.Errorf("after 5:50 h: %+v", stats)
					}
					if lines := b.log.lines("only a newer build knows", "level=WARN", "delay=", "until="); len(lines) != 1 {
						t.Errorf("%d lines of %d releases", len(lines), stats.Released)
					}
					if !deployed {
						time.Sleep(time.Hour)
					}
					cancel()
					if err := <-ended; err != nil {
						t.Fatal(err)
					}
					if !deployed {
						if n := worker.Stats().Poisoned; n != 1 {
							t.Errorf("%d intents are poison an hour after the deployment should have ended", n)
						}
						return
					}
					time.Sleep(6 * time.Minute)
					if worker := harness.Must[*eventual.Worker](t)(eventual.NewWorker(newer.queue, nil, nil)); harness.Must[int](t)(worker.Drain(context.Background())) != 1 {
						t.Errorf("the newer build's worker: %+v", worker.Stats())
					}
					if _, err := newer.badge.Get(context.Background(), compoundkey.String(jones().Badge)); err != nil {
						t.Errorf("the intent was not carried out: %v", err)
					}
				})
			})
		}
	}
}
