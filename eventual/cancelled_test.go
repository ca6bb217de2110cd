package eventual_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestCancelledPutOfAnIntent: whoever gives up while the intent is put is told so, and that nothing was begun.
func TestCancelledPutOfAnIntent(t *testing.T) {
	for name, when := range map[string]func(string, func()) storagetest.Fault{"before": storagetest.Before, "after": storagetest.After} {
		t.Run(name, func(t *testing.T) {
			s := storagetest.Simulator(t, nil)
			whole := newQueue(t, s, nil)
			ctx, cancel := context.WithCancel(t.Context())
			faulty, _ := s.Faulty(storagetest.On(storagetest.PutMessage, storagetest.Once(storagetest.Always(when("cancel", cancel)))))
			q := assert.Must[*eventual.Queue](t)(openQueue(faulty, whole.Name(), nil))
			began := false
			err := harness.Runner(q).Run(ctx, intents.Intent{ID: "1", Members: []intents.Member{{Repository: "r"}}}, func(context.Context) error { began = true; return nil }, func(context.Context) (intents.Rest, error) { return intents.Rest{}, nil })
			if !errors.Is(err, context.Canceled) || errors.Is(err, tables.ErrUnknownOutcome) || began {
				t.Errorf("%v, and the change was begun: %v", err, began)
			}
		})
	}
}
