package explore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// A process that waits between two calls goes on by itself; a pause ends what has a deadline, the call that is held with it.
func TestInterleavingsAndTime(t *testing.T) {
	c := counts(0, func(ctx context.Context, s *storagetest.Service) error {
		began := time.Now()
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, _, err := tallyOf(s).read(ctx, "r")
		if err == nil {
			_, _, err = tallyOf(s).read(ctx, "r")
		}
		return errors.Join(err, map[bool]error{true: errors.New("late")}[time.Since(began) > time.Minute])
	})
	w := explore.Interleavings(t, c)
	wantWalk(t, w, 3, 1)
	if w.Returned[""] != 1 || len(w.Returned) != 1 {
		t.Errorf("returned %v", w.Returned)
	}
	c.Pauses, c.Pause = 1, time.Hour
	w = explore.Interleavings(t, c)
	w.MustConverge(t)
	for text := range w.Returned {
		if text != "" && !strings.Contains(text, "deadline exceeded") {
			t.Errorf("returned %q", text)
		}
	}
	assert.Len(t, w.Returned, 2, "returned")
}

// A call that waits its turn besides another is a step of its own, in either order.
func TestInterleavingsOfOneProcessWithTwoCalls(t *testing.T) {
	c := counts(0, func(ctx context.Context, s *storagetest.Service) error {
		errs := make(chan error)
		go func() { errs <- tallyOf(s).write(ctx, "r", 1, azcore.ETagAny) }()
		_, _, err := tallyOf(s).read(ctx, "r")
		return errors.Join(err, <-errs)
	})
	// Neither; the read, or the write; both.
	wantWalk(t, explore.Interleavings(t, c), 4, 1)
}

// What a process draws is its own: no other process draws the same, nor does a worker in its next life; and in every replay it
// is the same.
func TestInterleavingsDrawRandomNumbers(t *testing.T) {
	var lives atomic.Int32
	c := jobs(nil, 0, "a", "b")
	stage := c.Stage
	c.Crashes = 1
	c.Stage = func(t testing.TB, s *storagetest.Service) explore.InterleavingStage {
		st := stage(t, s)
		drawing := worker(func(ctx context.Context, c tally, row string, done func() error) error {
			lives.Add(1)
			_, err := c.AddEntity(ctx, fmt.Appendf(nil, `{"PartitionKey":"drawn","RowKey":%q}`, rand.Text()), nil)
			return errors.Join(err, writeThenDelete(ctx, c, row, done)) // one that is there already is an error
		})
		st.Workers = []explore.Actor{drawing, drawing}
		return st
	}
	w := explore.Interleavings(t, c)
	w.MustConverge(t)
	if len(w.Returned) != 1 || w.Returned[""] < 10 {
		t.Errorf("returned %v", w.Returned)
	}
	t.Logf("%d lives", lives.Load())
}

// walksVariable tells this test binary, run again by the test, to walk where no walk can go.
const walksVariable = "STORAGETEST_WALKS"

func TestInterleavingsThatCannotGoOn(t *testing.T) {
	var calls atomic.Int32
	reads := func(ctx context.Context, s *storagetest.Service, row string) error {
		_, _, err := tallyOf(s).read(ctx, row)
		return err
	}
	for name, c := range map[string]struct {
		walk explore.InterleavingCase
		says string
	}{
		"for ever": {counts(0, func(ctx context.Context, s *storagetest.Service) error {
			for ctx.Err() == nil {
				reads(ctx, s, "r")
			}
			return nil
		}), "more than 1000 states"},
		"waiting": {counts(0, func(ctx context.Context, s *storagetest.Service) error {
			err := reads(ctx, s, "r")
			<-ctx.Done()
			return err
		}), "the process has neither made a call nor ended for 3m20s"},
		"whimsical": {counts(0, func(ctx context.Context, s *storagetest.Service) error {
			reads(ctx, s, "r")
			return reads(ctx, s, fmt.Sprint(calls.Add(1)))
		}, adder(1, false)), "process 0 is not deterministic"},
		"nobody": {counts(0), "a stage needs Check, and 1 to 6 Processes and Workers"},
	} {
		t.Run(name, func(t *testing.T) {
			if os.Getenv(walksVariable) != "" {
				c.walk.MaxStates = 1000
				explore.Interleavings(t, c.walk)
				return
			}
			self := assert.Must[string](t)(os.Executable())
			cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$")
			cmd.Env = append(os.Environ(), walksVariable+"=1")
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), c.says) {
				t.Errorf("%v; it does not say %q:\n%s", err, c.says, out)
			}
		})
	}
}
