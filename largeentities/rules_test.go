package largeentities_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// twice is a fault: a gateway sends the request twice, and returns the second answer.
type twice struct{}

func (twice) String() string { return "Twice" }

func (twice) Meet(_ storagetest.Call, req *http.Request, send storagetest.Send) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	if first, err := send(); err == nil {
		first.Body.Close()
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	return send()
}

// TestRules: what the rules LookAgain, LeaveUnknown and InsertOnce of internal/models/blobs are for. Whatever the change returned, the entity
// does not name a blob that is gone.
func TestRules(t *testing.T) {
	replace := func(ctx context.Context, p *process) error {
		e, err := p.repo.Get(ctx, at(1))
		if err == nil {
			e.Photo = large("b")
			err = p.repo.Replace(ctx, e)
		}
		return err
	}
	for name, c := range map[string]struct {
		fault   func(held *harness.HeldRequest, other *process) storagetest.Injector
		change  func(context.Context, *process) error
		retries bool // of the SDK
		want    error
	}{
		"a gateway sends the transaction twice": {func(*harness.HeldRequest, *process) storagetest.Injector {
			return storagetest.On(storagetest.ReplaceEntity, storagetest.Once(storagetest.Always(twice{})))
		}, replace, false, tables.ErrConflict},
		"the transaction arrives when the change has returned": {func(held *harness.HeldRequest, _ *process) storagetest.Injector {
			return storagetest.On(storagetest.ReplaceEntity, storagetest.Once(storagetest.Always(held)))
		}, replace, false, tables.ErrUnknownOutcome},
		"an insert arrives, and the entity is deleted before a second attempt": {func(held *harness.HeldRequest, other *process) storagetest.Injector {
			return storagetest.First(
				storagetest.On(storagetest.InsertEntity, storagetest.Once(storagetest.Always(held))),
				storagetest.On(storagetest.InsertEntity, storagetest.Once(storagetest.Always(storagetest.Before("the first arrives", func() {
					held.Arrive()
					assert.Check(t, other.repo.DeleteUnconditional(t.Context(), at(2)))
				})))))
		}, func(ctx context.Context, p *process) error {
			e := with(2)
			e.Photo = large("c")
			return p.repo.Insert(ctx, e)
		}, true, tables.ErrUnknownOutcome},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, s := t.Context(), storagetest.Simulator(t, nil)
			w := (&world{}).open(t, s)
			other := assert.Must[*process](t)(w.start(s))
			e := with(1)
			e.Photo = large("a")
			assert.Check(t, other.repo.Insert(ctx, e))
			held := &harness.HeldRequest{Network: s.ClientOptions.Transport}
			faulty, faults := s.Faulty(c.fault(held, other))
			if !c.retries {
				faulty = faulty.WithRetries(0)
			}
			harness.WantKind(t, c.change(ctx, assert.Must[*process](t)(w.start(faulty))), c.want)
			assert.Equal(t, len(faults.Met()), 1, "the faults that were met")
			if errors.Is(c.want, tables.ErrUnknownOutcome) {
				held.Arrive()
			}
			assert.Check(t, w.sweep(ctx, s))
			found, err := w.check(ctx, s)
			if err != nil || len(found) == 0 {
				t.Errorf("%v, %v", found, err)
			}
		})
	}
}
