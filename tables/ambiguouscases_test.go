package tables_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// wantUnknown fails unless ours may have been applied before the service refused a repetition with this code.
func wantUnknown(t *testing.T, err error, code string) {
	t.Helper()
	if e := harness.WantKind(t, err, tables.ErrUnknownOutcome); e.Code != code {
		t.Errorf("the code is %q, want %q: %v", e.Code, code, err)
	}
}

// TestAmbiguousEchoes: the responses to a repeated attempt after a concurrent writer has changed the row.
func TestAmbiguousEchoes(t *testing.T) {
	ctx := context.Background()
	plain := harness.NewTable(t, harness.Account(t))
	a, f := faultyAccount(t, 3)
	table := a.Table(plain.Name()).Entities()
	concurrentWrites := plain.Entities()

	t.Run("insert meets a row that is not ours", func(t *testing.T) {
		f.arm(func() { concurrentWrites.Insert(ctx, harness.Bag("insert", "r", "concurrent writer's")) }, fault503)
		wantUnknown(t, table.Insert(ctx, harness.Bag("insert", "r", "ours")), "EntityAlreadyExists")
	})
	t.Run("insert was applied, and a concurrent writer replaced it", func(t *testing.T) {
		f.arm(func() { concurrentWrites.Upsert(ctx, harness.Bag("insert", "s", "concurrent writer's")) }, faultLost)
		wantUnknown(t, table.Insert(ctx, harness.Bag("insert", "s", "ours")), "EntityAlreadyExists")
	})
	t.Run("first attempt answered for certain", func(t *testing.T) {
		f.arm(nil)
		harness.WantKind(t, table.Insert(ctx, harness.Bag("insert", "r", "ours")), tables.ErrExists)
	})
	t.Run("replace meets another version", func(t *testing.T) {
		e := harness.Bag("replace", "r", "old")
		assert.Check(t, concurrentWrites.Insert(ctx, e))
		f.arm(func() { concurrentWrites.Upsert(ctx, harness.Bag("replace", "r", "concurrent writer's")) }, faultLost)
		harness.WantKind(t, table.Replace(ctx, e), tables.ErrUnknownOutcome)
	})
	t.Run("replace meets nothing", func(t *testing.T) {
		e := harness.Bag("replace", "s", "old")
		assert.Check(t, concurrentWrites.Insert(ctx, e))
		f.arm(func() { concurrentWrites.DeleteUnconditional(ctx, e.Key) }, faultLost)
		wantUnknown(t, table.Replace(ctx, e), "ResourceNotFound")
	})
	t.Run("delete meets nothing", func(t *testing.T) {
		e := harness.Bag("delete", "r", "old")
		assert.Check(t, concurrentWrites.Insert(ctx, e))
		f.arm(nil, faultLost)
		assert.Check(t, table.Delete(ctx, e))
	})
	t.Run("one row proves a transaction", func(t *testing.T) {
		f.arm(func() { concurrentWrites.Upsert(ctx, harness.Bag("proof", "a", "concurrent writer's")) }, faultLost)
		x := a.Table(plain.Name()).NewTransaction()
		x.Insert(harness.Bag("proof", "a", "ours"))
		x.Insert(harness.Bag("proof", "b", "ours"))
		etags, err := x.Commit(ctx)
		if err != nil || etags[0] != "" || etags[1] == "" {
			t.Fatalf("ETags %q, error %v: row b carries the write's id", etags, err)
		}
	})
}

// TestAmbiguousRefusals: an answer that every attempt would get settles the matter, however the earlier ones ended. That the
// table is not there, or is being deleted, is none: it may be there when the first attempt arrives.
func TestAmbiguousRefusals(t *testing.T) {
	for code, kind := range map[string]error{"TableNotFound": tables.ErrUnknownOutcome, "TableBeingDeleted": tables.ErrUnknownOutcome,
		"InvalidInput": tables.ErrInvalid, "EntityTooLarge": tables.ErrTooLarge} {
		status := map[string]int{"TableNotFound": 404, "TableBeingDeleted": 409}[code]
		if status == 0 {
			status = 400
		}
		n := 0
		a := harness.InProcessRetrying(t, func(req *http.Request) (*http.Response, error) {
			if n++; n == 1 {
				return harness.Reply(req, 500, ""), nil
			}
			return harness.Reply(req, status, `{"odata.error":{"code":"`+code+`","message":{"lang":"en-US","value":"no"}}}`, "Content-Type", "application/json"), nil
		})
		e := harness.WantKind(t, a.Table("Contoso").Entities().Insert(context.Background(), harness.Bag("p", "r", "ours")), kind)
		requests := 2
		if code == "TableNotFound" {
			requests = 3 // the row is looked for
		}
		if e.Code != code || n != requests {
			t.Errorf("%s: %v after %d requests", code, e, n)
		}
	}
}

// TestAmbiguousStrangeAnswers: a success that no table service gives is no success, and no failure either.
func TestAmbiguousStrangeAnswers(t *testing.T) {
	for _, status := range []int{200, 206, 302, 418} {
		a := harness.InProcess(t, func(req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodGet {
				return harness.Reply(req, 404, `{"odata.error":{"code":"ResourceNotFound","message":{"value":"no"}}}`), nil
			}
			return harness.Reply(req, status, "<html>"), nil
		})
		x := a.Table("Contoso").NewTransaction()
		x.Insert(harness.Bag("p", "r", "ours"))
		x.Insert(harness.Bag("p", "s", "ours"))
		_, err := x.Commit(context.Background())
		for _, err := range []error{a.Table("Contoso").Entities().Insert(context.Background(), harness.Bag("p", "r", "ours")), err} {
			if unknown := errors.Is(err, tables.ErrUnknownOutcome); err == nil || unknown != (status < 400) {
				t.Errorf("%d: error is %v", status, err)
			}
		}
	}
}

// TestAmbiguousReadFails: when the row cannot be read either, the outcome is unknown, and both causes are told.
func TestAmbiguousReadFails(t *testing.T) {
	writes := errors.New("the write's own trouble")
	a := harness.InProcess(t, func(req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodGet {
			return nil, io.ErrClosedPipe
		}
		return nil, writes
	})
	e := harness.WantKind(t, a.Table("Contoso").Entities().Insert(context.Background(), harness.Bag("p", "r", "ours")), tables.ErrUnknownOutcome)
	if !errors.Is(e, writes) || !errors.Is(e, io.ErrClosedPipe) {
		t.Errorf("%v wraps only one of the causes", e)
	}
}

// TestAmbiguousContext: a context that ends while a write is under way leaves its outcome unknown, one that ended
// before keeps it from being sent.
func TestAmbiguousContext(t *testing.T) {
	plain := harness.NewTable(t, harness.Account(t))
	for _, tr := range trials() {
		partition := tr.name
		old := map[string]*tables.Entity{}
		for _, row := range tr.old {
			old[row] = harness.Bag(partition, row, "old")
			assert.Check(t, plain.Entities().Insert(context.Background(), old[row]))
		}
		a, f := faultyAccount(t, 3)
		table := a.Table(plain.Name())
		cancelled, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := tr.run(cancelled, table, partition, old)
		if !errors.Is(err, context.Canceled) || errors.Is(err, tables.ErrUnknownOutcome) || f.writes+f.reads != 0 {
			t.Errorf("%s, cancelled before: %v after %d requests", tr.name, err, f.writes+f.reads)
		}
		// The answer arrives, and the context ends before the SDK has handed it on.
		ctx, cancel := context.WithCancel(context.Background())
		f.arm(cancel)
		_, err = tr.run(ctx, table, partition, old)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, tables.ErrUnknownOutcome) || !f.applied {
			t.Errorf("%s, cancelled with the answer: %v", tr.name, err)
		}
	}
}

// TestAmbiguousContextMoments goes through the moments at which a context can end.
func TestAmbiguousContextMoments(t *testing.T) {
	plain := harness.NewTable(t, harness.Account(t))
	insert := func(ctx context.Context, f harness.Transport) error {
		a := harness.InProcessRetrying(t, f)
		return a.Table(plain.Name()).Entities().Insert(ctx, harness.Bag("p", t.Name(), "ours"))
	}
	t.Run("on the wire", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		err := insert(ctx, func(req *http.Request) (*http.Response, error) {
			cancel()
			return nil, req.Context().Err()
		})
		harness.WantKind(t, err, tables.ErrUnknownOutcome)
		harness.WantKind(t, err, context.Canceled)
	})
	t.Run("deadline", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { // else the deadline may pass before the request is sent
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			defer cancel()
			err := insert(ctx, func(req *http.Request) (*http.Response, error) {
				<-req.Context().Done()
				return nil, req.Context().Err()
			})
			harness.WantKind(t, err, tables.ErrUnknownOutcome)
			harness.WantKind(t, err, context.DeadlineExceeded)
		})
	})
	for name, status := range map[string]int{"after a refusal": 429, "after a doubtful answer": 503} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			err := insert(ctx, func(req *http.Request) (*http.Response, error) {
				cancel()
				return harness.Reply(req, status, ""), nil
			})
			if !errors.Is(err, context.Canceled) || errors.Is(err, tables.ErrUnknownOutcome) != (status == 503) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

// meddler is a caller's own policy.
type meddler func(*policy.Request) (*http.Response, error)

func (m meddler) Do(req *policy.Request) (*http.Response, error) { return m(req) }

// TestAmbiguousPolicies: a policy of the caller stands between the retries and the network, and may lose answers too.
func TestAmbiguousPolicies(t *testing.T) {
	plain := harness.NewTable(t, harness.Account(t))
	broken := errors.New("the policy broke")
	for _, retries := range []int32{3, -1} {
		lose, fake, refuse := true, true, true
		for name, m := range map[string]meddler{
			"loses an answer": func(req *policy.Request) (*http.Response, error) {
				resp, err := req.Next()
				if err == nil && lose && req.Raw().Method != http.MethodGet {
					lose = false
					return nil, broken
				}
				return resp, err
			},
			"answers 500 in its place": func(req *policy.Request) (*http.Response, error) {
				resp, err := req.Next()
				if err == nil && fake && req.Raw().Method != http.MethodGet {
					fake = false
					return harness.Reply(req.Raw(), 500, ""), nil
				}
				return resp, err
			},
		} {
			a, _ := faultyAccount(t, retries, m)
			e := harness.Bag(name, string('a'+rune(retries+1)), "ours")
			assert.NoError(t, a.Table(plain.Name()).Entities().Insert(context.Background(), e), "%s, %d retries", name, retries)
			if text, etag := rowText(t, plain, e.Key.Partition, e.Key.Row); text != "ours" || etag != e.ETag {
				t.Errorf("%s, %d retries: row says %q, ETag %q, ours is %q", name, retries, text, etag, e.ETag)
			}
		}
		a, f := faultyAccount(t, retries, meddler(func(req *policy.Request) (*http.Response, error) {
			if refuse {
				return nil, broken
			}
			return req.Next()
		}))
		err := a.Table(plain.Name()).Entities().Insert(context.Background(), harness.Bag("refused", "r", "ours"))
		if !errors.Is(err, broken) || errors.Is(err, tables.ErrUnknownOutcome) || f.writes != 0 {
			t.Errorf("a policy that sends nothing on: %v after %d writes", err, f.writes)
		}
	}
}

// TestAmbiguousTables: tables carry no id, so that there and gone are taken for done.
func TestAmbiguousTables(t *testing.T) {
	ctx := context.Background()
	for _, tc := range []struct {
		script       []fault
		retries      int32
		create, drop error
	}{
		{[]fault{faultLost}, 3, nil, nil},
		{[]fault{faultLost500}, 3, nil, nil},
		{[]fault{fault503}, 3, nil, nil},
		{[]fault{faultNotSent}, 3, nil, nil},
		{[]fault{faultLost}, -1, tables.ErrUnknownOutcome, tables.ErrUnknownOutcome},
		{[]fault{fault503}, -1, tables.ErrUnknownOutcome, tables.ErrUnknownOutcome},
		{[]fault{faultNotSent}, -1, tables.ErrUnavailable, tables.ErrUnavailable},
		{[]fault{faultLost, faultNotSent, faultNotSent, faultNotSent}, 3, tables.ErrUnknownOutcome, tables.ErrUnknownOutcome},
		{[]fault{faultLost, fault429, fault429, fault429}, 3, tables.ErrUnknownOutcome, tables.ErrUnknownOutcome},
	} {
		plain := harness.Account(t)
		a, f := faultyAccount(t, tc.retries)
		for _, create := range []func(*tables.Table, context.Context) error{(*tables.Table).Create, (*tables.Table).CreateIfMissing} {
			name := storagetest.Open(t).TableName(t)
			f.arm(nil, tc.script...)
			if err := create(a.Table(name), ctx); !errors.Is(err, tc.create) || (err == nil) != (tc.create == nil) {
				t.Errorf("create, %v, %d retries: %v, want %v", tc.script, tc.retries, err, tc.create)
			}
		}
		table := harness.NewTable(t, plain)
		f.arm(nil, tc.script...)
		if err := a.Table(table.Name()).Drop(ctx); !errors.Is(err, tc.drop) || (err == nil) != (tc.drop == nil) {
			t.Errorf("drop, %v, %d retries: %v, want %v", tc.script, tc.retries, err, tc.drop)
		}
	}
}

// TestTableContextEndedBefore: no request, and no doubt.
func TestTableContextEndedBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	a, f := faultyAccount(t, 3)
	for _, do := range []func(*tables.Table, context.Context) error{(*tables.Table).Create, (*tables.Table).CreateIfMissing, (*tables.Table).Drop} {
		if err := do(a.Table("Never"), ctx); !errors.Is(err, context.Canceled) || errors.Is(err, tables.ErrUnknownOutcome) || f.writes != 0 {
			t.Errorf("%v after %d requests", err, f.writes)
		}
	}
}
