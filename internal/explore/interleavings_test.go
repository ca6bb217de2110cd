package explore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// tally is a table of counters that actors of walks read and write.
type tally struct{ *aztables.Client }

func tallyOf(s *storagetest.Service) tally {
	c, err := aztables.NewServiceClientFromConnectionString(s.ConnectionString, &aztables.ClientOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		panic(err) // the connection string is the simulator's own
	}
	return tally{c.NewClient("Tally")}
}

func (c tally) read(ctx context.Context, row string) (n int, etag azcore.ETag, err error) {
	got, err := c.GetEntity(ctx, "p", row, nil)
	if err != nil {
		return 0, "", err
	}
	var value struct{ N int }
	err = json.Unmarshal(got.Value, &value)
	return value.N, got.ETag, err
}

func (c tally) write(ctx context.Context, row string, n int, etag azcore.ETag) error {
	_, err := c.UpdateEntity(ctx, fmt.Appendf(nil, `{"PartitionKey":"p","RowKey":%q,"N":%d}`, row, n),
		&aztables.UpdateEntityOptions{IfMatch: &etag, UpdateMode: aztables.UpdateModeReplace})
	return err
}

// create makes the table with rows that count 0.
func (c tally) create(t testing.TB, rows ...string) {
	t.Helper()
	_, err := c.CreateTable(t.Context(), nil)
	assert.Check(t, err)
	for _, row := range rows {
		_, err = c.AddEntity(t.Context(), fmt.Appendf(nil, `{"PartitionKey":"p","RowKey":%q,"N":0}`, row), nil)
		assert.Check(t, err)
	}
}

// adder adds one to a row, n times.
func adder(n int, conditional bool) explore.Actor {
	return func(ctx context.Context, s *storagetest.Service) error {
		c := tallyOf(s)
		for n := n; n > 0; {
			value, etag, err := c.read(ctx, "r")
			if err != nil {
				return err
			}
			if !conditional {
				etag = azcore.ETagAny
			}
			switch err := c.write(ctx, "r", value+1, etag); {
			case err == nil:
				n--
			case !isConflict(err):
				return err
			}
		}
		return nil
	}
}

func isConflict(err error) bool {
	var failed *azcore.ResponseError
	return errors.As(err, &failed) && failed.StatusCode == 412
}

// counts is a case of adders, and what they must come to.
func counts(total int, actors ...explore.Actor) explore.InterleavingCase {
	return explore.InterleavingCase{Stage: func(t testing.TB, s *storagetest.Service) explore.InterleavingStage {
		tallyOf(s).create(t, "r")
		return explore.InterleavingStage{Processes: actors, Check: func(ctx context.Context, s *storagetest.Service) error {
			if n, _, err := tallyOf(s).read(ctx, "r"); err != nil || total > 0 && n != total {
				return fmt.Errorf("the row counts %d of %d (%v)", n, total, err)
			}
			return nil
		}}
	}}
}

func wantWalk(t *testing.T, w explore.Walk, states, ends int) {
	t.Helper()
	if w.States != states || w.Ends != ends || w.Divergence != nil {
		t.Errorf("%d states, %d ends, divergence %v; counted by hand: %d and %d", w.States, w.Ends, w.Divergence, states, ends)
	}
}

// Counted by hand. Each of two adders is before its read, before its write (having read 0, or what the other wrote), or done.
func TestInterleavingsOfCounters(t *testing.T) {
	// 1 at the beginning, 2 where one has read, 1 where both have; 2 where one is done and the other has not begun, 4 where
	// the other has read, before the write or after it; in the end both are counted, or one.
	wantWalk(t, explore.Interleavings(t, counts(0, adder(1, false), adder(1, false))), 12, 2)
	// With a condition: the first 10; for each one that comes too late, one in which it knows and one in which it has read
	// again; one end.
	w := explore.Interleavings(t, counts(2, adder(1, true), adder(1, true)))
	w.MustConverge(t)
	wantWalk(t, w, 15, 1)
	// One that may die before its read or before its write, which is one state; or get through.
	c := counts(0, adder(1, true))
	c.Crashes = 1
	wantWalk(t, explore.Interleavings(t, c), 4, 2)
}

// A lost update is found, and told in an order that a person can follow.
func TestInterleavingsFindALostUpdate(t *testing.T) {
	w := explore.Interleavings(t, counts(2, adder(1, false), adder(1, false)))
	w.MustDiverge(t)
	want := []string{"process 0: GetEntity", "process 1: GetEntity", "process 1: ReplaceEntity", "process 0: ReplaceEntity"}
	for i, step := range w.Divergence.Schedule {
		if len(w.Divergence.Schedule) != len(want) || !strings.HasPrefix(step, want[i]) {
			t.Fatalf("%v", w.Divergence)
		}
	}
	t.Log(w.Divergence)
}

// jobs is a case in which workers carry out messages that each name a row to write; every row must be written at the end.
func jobs(worker explore.Actor, workers int, rows ...string) explore.InterleavingCase {
	return explore.InterleavingCase{Pause: 31 * time.Second, Stage: func(t testing.TB, s *storagetest.Service) explore.InterleavingStage {
		tallyOf(s).create(t, rows...)
		queue := jobsOf(s)
		_, err := queue.Create(t.Context(), nil)
		assert.Check(t, err)
		for _, row := range rows {
			assert.Check(t, assert.Err(queue.EnqueueMessage(t.Context(), row, nil)))
		}
		stage := explore.InterleavingStage{Check: func(ctx context.Context, s *storagetest.Service) error {
			for _, row := range rows {
				if n, _, err := tallyOf(s).read(ctx, row); err != nil || n != 1 {
					return fmt.Errorf("row %s is at %d (%v)", row, n, err)
				}
			}
			return nil
		}}
		for range workers {
			stage.Workers = append(stage.Workers, worker)
		}
		return stage
	}}
}

func jobsOf(s *storagetest.Service) *azqueue.QueueClient {
	c, err := azqueue.NewQueueClientFromConnectionString(s.ConnectionString, "jobs", &azqueue.ClientOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		panic(err) // the connection string is the simulator's own
	}
	return c
}

// worker takes one message and does what act does: the message's row is its text.
func worker(act func(ctx context.Context, c tally, row string, done func() error) error) explore.Actor {
	return func(ctx context.Context, s *storagetest.Service) error {
		queue := jobsOf(s)
		got, err := queue.DequeueMessage(ctx, &azqueue.DequeueMessageOptions{VisibilityTimeout: to.Ptr[int32](30)})
		if err != nil || len(got.Messages) == 0 {
			return err
		}
		m := got.Messages[0]
		return act(ctx, tallyOf(s), *m.MessageText, func() error {
			_, err := queue.DeleteMessage(ctx, *m.MessageID, *m.PopReceipt, nil)
			var gone *azcore.ResponseError
			if errors.As(err, &gone) {
				return nil // somebody else has it, or had it
			}
			return err
		})
	}
}

func writeThenDelete(ctx context.Context, c tally, row string, done func() error) error {
	if err := c.write(ctx, row, 1, azcore.ETagAny); err != nil {
		return err
	}
	return done()
}

func deleteThenWrite(ctx context.Context, c tally, row string, done func() error) error {
	if err := done(); err != nil {
		return err
	}
	return c.write(ctx, row, 1, azcore.ETagAny)
}

func TestInterleavingsOfAHandOff(t *testing.T) {
	// Before the get, the write, the delete, and after it; dead before the write or before the delete, that until the
	// message is visible and until it is got; then, alike, before the delete and after it.
	c := jobs(worker(writeThenDelete), 1, "a")
	c.Crashes = 1
	w := explore.Interleavings(t, c)
	w.MustConverge(t)
	wantWalk(t, w, 12, 2)

	c.Stage, c.Crashes, c.Pauses = jobs(worker(writeThenDelete), 2, "a", "b").Stage, 2, 2
	explore.Interleavings(t, c).MustConverge(t)

	// Who deletes the message first loses it with its life.
	c = jobs(worker(deleteThenWrite), 1, "a")
	explore.Interleavings(t, c).MustConverge(t)
	c.Crashes = 1
	w = explore.Interleavings(t, c)
	w.MustDiverge(t)
	assert.Contains(t, w.Divergence.Schedule[len(w.Divergence.Schedule)-1], "dies before ReplaceEntity", w.Divergence)
}

// Two workers that add one, each believing that the message is its own: only a pause can give it to both.
func TestInterleavingsOfAPause(t *testing.T) {
	c := jobs(worker(func(ctx context.Context, c tally, row string, done func() error) error {
		n, etag, err := c.read(ctx, row)
		if err == nil {
			err = c.write(ctx, row, n+1, etag)
		}
		if err != nil {
			return err
		}
		return done()
	}), 2, "a")
	explore.Interleavings(t, c).MustConverge(t)
	c.Pauses = 1
	w := explore.Interleavings(t, c)
	w.MustDiverge(t)
	t.Log(w.Divergence)
}

// The service promises no order: whichever of two messages comes first is walked.
func TestInterleavingsOfTheOrderOfMessages(t *testing.T) {
	c := jobs(nil, 0, "a", "b")
	seen := map[string]bool{}
	stage := c.Stage
	c.Stage = func(t testing.TB, s *storagetest.Service) explore.InterleavingStage {
		st := stage(t, s)
		st.Workers = []explore.Actor{worker(func(ctx context.Context, c tally, row string, done func() error) error {
			n, _, err := c.read(ctx, "a")
			if m, _, err2 := c.read(ctx, "b"); err == nil && err2 == nil && n == 0 && m == 0 {
				err = c.write(ctx, row, 1, azcore.ETagAny)
			}
			return errors.Join(err, done())
		})}
		st.Check = func(ctx context.Context, s *storagetest.Service) error {
			a, _, err := tallyOf(s).read(ctx, "a")
			seen[fmt.Sprint(a)] = true
			return err
		}
		return st
	}
	explore.Interleavings(t, c).MustConverge(t)
	assert.Len(t, seen, 2, "a came first")
}

func TestInterleavingsSpeed(t *testing.T) {
	c := counts(0, adder(2, true), adder(2, true), adder(2, true))
	explore.Interleavings(t, c).MustConverge(t)
	c = jobs(worker(writeThenDelete), 2, "a", "b", "c")
	c.Crashes, c.Pauses = 2, 1
	explore.Interleavings(t, c).MustConverge(t)
}
