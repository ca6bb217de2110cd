package eventual_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/handle"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// behind is what carries intents that are closed in the background, and the log of its account.
func behind(t *testing.T) (intents.RunnerCloser, *eventual.Queue, *bytes.Buffer) {
	t.Helper()
	s, log := storagetest.Simulator(t, nil), &bytes.Buffer{}
	account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{
		ClientOptions: s.ClientOptions, Logger: slog.New(slog.NewTextHandler(log, nil))}))
	q := assert.Must[*eventual.Queue](t)(eventual.NewQueue(account, "intents", &eventual.QueueOptions{VisibilityTimeout: time.Second}))
	assert.Check(t, q.Create(t.Context()))
	return intents.Of((*handle.Any)(q)).Runner(8), q, log
}

// about is an intent of one entity.
func about(id, row string) intents.Intent {
	return intents.Intent{ID: id, Members: []intents.Member{{Repository: "r", Key: tables.Key{Partition: "p", Row: row}, Outside: map[string][]string{"email": {"k"}}}}}
}

func committed(context.Context) error { return nil }

// closing is what a writer leaves to be done in the background.
func closing(closeIntent func(context.Context) error) func(context.Context) (intents.Rest, error) {
	return func(context.Context) (intents.Rest, error) { return intents.Rest{Close: closeIntent}, nil }
}

// TestCloseWritesItsOwnEntity: another round in the background may change entities of the intent itself, such as a holder that was written
// with its source. That change does not wait for the intent, which would never be closed.
func TestCloseWritesItsOwnEntity(t *testing.T) {
	runner, q, _ := behind(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	nested := make(chan error, 1)
	assert.Check(t, runner.Run(ctx, about("1", "a"), committed, closing(func(ctx context.Context) error {
		err := runner.Run(ctx, about("2", "a"), committed, closing(func(context.Context) error { return nil }))
		nested <- err
		return err
	})))
	select {
	case err := <-nested:
		assert.Check(t, err)
	case <-ctx.Done():
		t.Fatal("the change waits for the intent that it belongs to")
	}
	assert.Check(t, runner.Close(ctx))
	if n, err := q.Length(ctx); n != 0 || err != nil {
		t.Errorf("%d messages are left, %v", n, err)
	}
}

// TestCloseFailsInBackground: a failure or a panic in the background reaches no caller, so the log has it, and the message stays for a worker.
func TestCloseFailsInBackground(t *testing.T) {
	for name, fails := range map[string]func(context.Context) error{
		"error": func(context.Context) error { return errors.New("the effect is gone") },
		"hangs": func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) },
		"panic": func(context.Context) error { panic("the effect is gone") },
	} {
		t.Run(name, func(t *testing.T) {
			runner, q, log := behind(t)
			assert.Check(t, runner.Run(t.Context(), about("1", "a"), committed, closing(fails)), runner.Close(t.Context()))
			if n, err := q.Length(t.Context()); n != 1 || err != nil {
				t.Errorf("%d messages are left, %v", n, err)
			}
			assert.Contains(t, log.String(), "a worker of the queue applies the effect", "the log")
		})
	}
}
