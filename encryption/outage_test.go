package encryption_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestOutages: while the table does not answer, every operation says so: nothing takes it for tampering, for a key that is not there, or
// for no uses; and reads and writes do not go on without a key.
func TestOutages(t *testing.T) {
	ctx := t.Context()
	w := worldOn(t, storagetest.Simulator(t, nil))
	whole := w.employees(t, "Employees", nil)
	assert.Check(t, whole.Insert(ctx, june("Sales", 1)), assert.Err(fetchBeacon(ctx, w.registry, "number", 0)))
	old := assert.Must[map[encryption.DataKeyID]int64](t)(encryption.Uses(ctx, whole.Table()))
	current := assert.Must[encryption.DataKeyID](t)(w.registry.CreateDataKey(ctx))
	stream := sealed(t, streamOf(t, w.open(t, w.wrapper, nil), ""), content(100))
	blob := &ranged{blob: stream}
	other := localKey(t, "other", 2)
	operations := map[string]func(account *tables.Account, r *encryption.Registry) error{
		"DataKeys": func(_ *tables.Account, r *encryption.Registry) (err error) {
			for _, err = range r.DataKeys(ctx) {
			}
			return err
		},
		"Check":  func(_ *tables.Account, r *encryption.Registry) error { return r.Check(ctx) },
		"Rewrap": func(_ *tables.Account, r *encryption.Registry) error { return assert.Err(r.Rewrap(ctx)) },
		"Beacon": func(_ *tables.Account, r *encryption.Registry) error {
			return assert.Err(fetchBeacon(ctx, r, "number", 0))
		},
		"CreateBeacon": func(_ *tables.Account, r *encryption.Registry) error {
			return assert.Err(fetchBeacon(ctx, r, "another", 0))
		},
		"RemoveUnusedDataKey": func(a *tables.Account, r *encryption.Registry) error {
			r.SetNow(func() time.Time { return time.Now().Add(25 * time.Hour) })
			err := r.RemoveUnusedDataKey(ctx, encryption.DataKeyID{1}, a.Table("Employees"))
			if errors.Is(err, tables.ErrNotFound) {
				return nil // it came as far as to look for the key
			}
			return err
		},
		"Uses": func(a *tables.Account, _ *encryption.Registry) error {
			return assert.Err(encryption.Uses(ctx, a.Table("Employees")))
		},
		"Reencrypt": func(a *tables.Account, r *encryption.Registry) error {
			repository := assert.Must[*patterns.Repository[employee]](t)(employeesOf(a.Table("Employees"), r, nil))
			p, err := encryption.Reencrypt(ctx, repository, nil)
			if p.Failed > 0 {
				err = errors.New("counted as failed")
			}
			return err
		},
		"a projection": func(a *tables.Account, r *encryption.Registry) error {
			repository := assert.Must[*patterns.Repository[employee]](t)(employeesOf(a.Table("Employees"), r, nil))
			return assert.Err(repository.Query().Partition("Sales").Select("Number").First(ctx))
		},
		"Insert": func(a *tables.Account, r *encryption.Registry) error {
			err := assert.Must[*patterns.Repository[employee]](t)(employeesOf(a.Table("Employees"), r, nil)).Insert(ctx, june("Works", 1))
			_ = whole.DeleteUnconditional(ctx, employeeKey("Works", 1))
			return err
		},
		"Seal": func(_ *tables.Account, r *encryption.Registry) error {
			return assert.Err(streamOf(t, r, "").Seal(ctx, binding, bytes.NewReader(nil)))
		},
		"Open": func(_ *tables.Account, r *encryption.Registry) error {
			return assert.Err(opened(streamOf(t, r, ""), binding, stream))
		},
		"OpenRange": func(_ *tables.Account, r *encryption.Registry) error {
			return assert.Err(streamOf(t, r, "").OpenRange(ctx, binding, int64(len(stream)), 0, 5, blob.fetch))
		},
	}
	for name, run := range operations {
		points := 0
		for i := 0; ; i++ {
			faulty, faults := w.s.WithRetries(0).Faulty(storagetest.OnIndex(i, storagetest.Always(storagetest.NotSent)))
			account := open(t, faulty)
			r := assert.Must[*encryption.Registry](t)(encryption.NewRegistry(account.Table(w.keys.Name()), encryption.NewChain(w.wrapper, other), nil))
			err := run(account, r)
			if len(faults.Met()) == 0 {
				assert.Check(t, err)
				break
			}
			points++
			if err == nil || errors.Is(err, tables.ErrGarbled) || errors.Is(err, tables.ErrNotFound) || errors.Is(err, tables.ErrInvalid) {
				t.Errorf("%s, call %d: %v", name, i, err)
			}
		}
		if points == 0 {
			t.Errorf("%s makes no call", name)
		}
	}
	after := assert.Must[map[encryption.DataKeyID]int64](t)(encryption.Uses(ctx, whole.Table()))
	if len(old) != 1 || after[current] != 9 {
		t.Errorf("%v, then %v", old, after)
	}
}

// TestOutagesOfTheVault: the same for the vault, of all that makes or opens keys.
func TestOutagesOfTheVault(t *testing.T) {
	ctx := t.Context()
	w, v := worldOn(t, storagetest.Simulator(t, nil)), newVault(t)
	registry := assert.Must[*encryption.Registry](t)(encryption.NewRegistry(w.keys, v.wrapper(t, nil), &encryption.RegistryOptions{Name: "vault", TrustTable: true}))
	assert.Check(t, assert.Err(registry.CreateDataKey(ctx)), assert.Err(fetchBeacon(ctx, registry, "number", 0)))
	kek, key, p := legacyRow(t)
	down := &counting{KeyWrapper: kek}
	down.fail.Store(true)
	a := loaderIn(t, w, "Employees", &encryption.Options{Legacy: down})
	v.status = 503
	fresh := assert.Must[*encryption.Registry](t)(encryption.NewRegistry(w.keys, v.wrapper(t, nil), &encryption.RegistryOptions{Name: "vault", TrustTable: true}))
	for what, err := range map[string]error{
		"CreateDataKey": assert.Err(fresh.CreateDataKey(ctx)), "CreateBeacon": assert.Err(fetchBeacon(ctx, fresh, "another", 0)), "Beacon": assert.Err(fetchBeacon(ctx, fresh, "number", 0)), "Rewrap": assert.Err(fresh.Rewrap(ctx)),
		"Check": fresh.Check(ctx), "Seal": assert.Err(streamOf(t, fresh, "").Seal(ctx, nil, bytes.NewReader(nil))), "a row of the old libraries": assert.Err(a.Load(ctx, allOf(key), p)),
	} {
		if err == nil || errors.Is(err, tables.ErrGarbled) || errors.Is(err, tables.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestStreamsThatBreakOff: what was not made by NewStream, what cannot be fetched, and what comes shorter than it was said to be.
func TestStreamsThatBreakOff(t *testing.T) {
	ctx := t.Context()
	w := worldOn(t, storagetest.Simulator(t, nil))
	s := streamOf(t, w.registry, "")
	c := sealed(t, s, content(3*chunk))
	var none encryption.Stream
	for what, err := range map[string]error{"Seal": assert.Err(none.Seal(ctx, nil, bytes.NewReader(nil))), "Open": assert.Err(none.Open(ctx, nil, bytes.NewReader(c)))} {
		assert.ErrorIs(t, err, tables.ErrWiring, "%s of no stream", what)
	}
	assert.ErrorIs(t, assert.Err(s.DataKey([]byte("a picture"))), encryption.ErrNotAuthentic, "the data key of something else")
	broken := errors.New("the connection broke")
	assert.ErrorIs(t, assert.Err(s.Open(ctx, binding, iotest.ErrReader(broken))), broken, "no header comes")
	blob := &ranged{blob: c}
	for what, change := range map[string]func(call int, r io.ReadCloser) (io.ReadCloser, error){
		"the header cannot be fetched": func(call int, r io.ReadCloser) (io.ReadCloser, error) { return r, onCall(call, 1, broken) },
		"the chunks cannot be fetched": func(call int, r io.ReadCloser) (io.ReadCloser, error) { return r, onCall(call, 2, broken) },
		"the chunks break off": func(call int, r io.ReadCloser) (io.ReadCloser, error) {
			if call == 2 {
				r = io.NopCloser(io.MultiReader(io.LimitReader(r, 100), iotest.ErrReader(broken)))
			}
			return r, nil
		},
		"a header that does not close": func(call int, r io.ReadCloser) (io.ReadCloser, error) {
			return closing{r, onCall(call, 1, broken)}, nil
		},
		"a short header": func(_ int, r io.ReadCloser) (io.ReadCloser, error) { return io.NopCloser(io.LimitReader(r, 50)), nil },
		"short chunks": func(call int, r io.ReadCloser) (io.ReadCloser, error) {
			if call == 2 {
				r = io.NopCloser(io.LimitReader(r, 100))
			}
			return r, nil
		},
	} {
		calls := 0
		r, err := s.OpenRange(ctx, binding, int64(len(c)), 10, chunk, func(ctx context.Context, offset, length int64) (io.ReadCloser, error) {
			calls++
			body := assert.Must[io.ReadCloser](t)(blob.fetch(ctx, offset, length))
			return change(calls, body)
		})
		if err == nil {
			_, err = io.ReadAll(r)
		}
		short := what == "a short header" || what == "short chunks"
		if err == nil || short != errors.Is(err, encryption.ErrNotAuthentic) || !short && !errors.Is(err, broken) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func onCall(call, n int, err error) error {
	if call == n {
		return err
	}
	return nil
}

// closing is a body that closes with an error.
type closing struct {
	io.Reader
	err error
}

func (c closing) Close() error { return c.err }
