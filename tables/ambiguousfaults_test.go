package tables_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// fault is what one attempt at a write meets.
type fault uint8

const (
	faultNone       fault = iota
	faultNotSent          // the connection cannot be made
	faultLost             // applied, and the connection is reset in place of an answer
	faultLost500          // applied, and answered 500
	fault503              // not applied, 503 without a code, as a gateway says it
	faultBusy             // not applied, 503 ServerBusy
	fault429              // not applied, 429
	faultInside           // not applied, 202 with 503 inside; for transactions
	faultInsideLost       // applied, 202 with 500 inside; for transactions
	faultCutOff           // applied, and the answer's body breaks off with an error
	faultCutShort         // applied, and the answer's body is half as long as it was, without any error
)

func (f fault) String() string {
	return [...]string{"none", "not sent", "lost", "lost and 500", "503 before", "busy", "429 before", "503 inside", "lost and 500 inside", "cut off", "cut short"}[f]
}

// doubtful reports whether the caller cannot know from the attempt alone whether it was applied.
func (f fault) doubtful() bool {
	return f == faultLost || f == faultLost500 || f == fault503 || f == faultInside || f == faultInsideLost || f == faultCutOff || f == faultCutShort
}

// refused reports whether the answer says that the attempt was not applied.
func (f fault) refused() bool { return f == faultNotSent || f == faultBusy || f == fault429 }

// before reports whether the attempt was not applied, though nobody knows.
func (f fault) before() bool { return f == fault503 || f == faultInside }

// faulty is a Transporter in front of another. Write attempts meet the script's faults in turn, and none when
// it is at its end; reads are left alone. It remembers what really became of the writes.
type faulty struct {
	inner policy.Transporter

	mu      sync.Mutex
	script  []fault
	after   func() // runs once, after the first attempt: the concurrent writer's chance
	writes  int
	reads   int
	doubts  int
	applied bool // the service has applied one of the attempts
}

// arm begins a new script.
func (f *faulty) arm(after func(), script ...fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script, f.after, f.writes, f.reads, f.doubts, f.applied = script, after, 0, 0, 0, false
}

func (f *faulty) next() (now fault, after func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes++
	if len(f.script) > 0 {
		now, f.script = f.script[0], f.script[1:]
	}
	if now.doubtful() {
		f.doubts++
	}
	after, f.after = f.after, nil
	return now, after
}

// Do is policy.Transporter.
func (f *faulty) Do(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		f.mu.Lock()
		f.reads++
		f.mu.Unlock()
		return f.inner.Do(req)
	}
	now, after := f.next()
	resp, err := f.meet(now, req)
	if after != nil {
		after()
	}
	return resp, err
}

func (f *faulty) meet(now fault, req *http.Request) (*http.Response, error) {
	switch now {
	case faultNotSent:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case fault503:
		return harness.Reply(req, http.StatusServiceUnavailable, ""), nil
	case faultBusy:
		return refusingAll(http.StatusServiceUnavailable, "ServerBusy")(req)
	case fault429:
		return harness.Reply(req, http.StatusTooManyRequests, ""), nil
	case faultInside:
		return refusingAll(http.StatusServiceUnavailable, "")(req)
	}
	resp, err := f.inner.Do(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	f.note(resp.StatusCode, body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	switch now {
	case faultLost:
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	case faultLost500:
		return harness.Reply(req, http.StatusInternalServerError, ""), nil
	case faultInsideLost:
		return refusingAll(http.StatusInternalServerError, "OperationTimedOut")(req)
	case faultCutOff:
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body[:len(body)/2]), brokenReader{}))
	case faultCutShort:
		resp.Body = io.NopCloser(bytes.NewReader(body[:len(body)/2]))
	}
	return resp, nil
}

// note tells an applied write by the answer that only this transport sees.
func (f *faulty) note(status int, body []byte) {
	failed := bytes.Contains(body, []byte("HTTP/1.1 4")) || bytes.Contains(body, []byte("HTTP/1.1 5"))
	if status < 300 && !failed {
		f.mu.Lock()
		f.applied = true
		f.mu.Unlock()
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// faultyAccount opens the test account behind a faulty transport. Retries come at once, or not at all.
func faultyAccount(t testing.TB, retries int32, policies ...policy.Policy) (*tables.Account, *faulty) {
	t.Helper()
	f := &faulty{}
	return harness.AccountWith(t, func(o *azcore.ClientOptions) {
		harness.Watching(policies...)(o)
		f.inner, o.Transport = o.Transport, f
		o.Retry = policy.RetryOptions{MaxRetries: retries, RetryDelay: time.Microsecond, MaxRetryDelay: time.Millisecond}
	}), f
}

// fullBag has as many properties as a row can have, and so no room for a write id.
func fullBag(partition, row, text string) *tables.Entity {
	e := harness.Bag(partition, row, text)
	for i := len(e.Properties); i < tables.MaxProperties; i++ {
		e.Properties = append(e.Properties, tables.Property{Name: fmt.Sprintf("P%d", i), Value: tables.Boolean(true)})
	}
	return e
}

// trial is one kind of write on the rows of a partition of its own. Rows whose name begins with "old" are there
// before; run gets them as read.
type trial struct {
	name    string
	old     []string
	rows    []string // the rows written, in the order of the ETags
	deletes bool     // it does nothing but delete
	full    bool     // its rows have no room for a write id
	run     func(ctx context.Context, table *tables.Table, partition string, old map[string]*tables.Entity) ([]azcore.ETag, error)
}

// single makes the trial of one verb of the property bag on one row.
func single(name string, exists bool, verb func(*tables.Rows[tables.Entity], context.Context, *tables.Entity) error) trial {
	tr := trial{name: name, rows: []string{"new"}, deletes: strings.HasPrefix(name, "Delete"), full: strings.HasPrefix(name, "Full")}
	if exists {
		tr.old, tr.rows = []string{"old"}, []string{"old"}
	}
	tr.run = func(ctx context.Context, table *tables.Table, partition string, old map[string]*tables.Entity) ([]azcore.ETag, error) {
		e := harness.Bag(partition, tr.rows[0], "ours")
		if tr.full {
			e = fullBag(partition, tr.rows[0], "ours")
		}
		if before := old[tr.rows[0]]; before != nil {
			e.ETag = before.ETag
		}
		err := verb(table.Entities(), ctx, e)
		return []azcore.ETag{e.ETag}, err
	}
	return tr
}

// transactions make the trials of more than one row.
func transactions() []trial {
	commit := func(fill func(*tables.Transaction, string, map[string]*tables.Entity)) func(context.Context, *tables.Table, string, map[string]*tables.Entity) ([]azcore.ETag, error) {
		return func(ctx context.Context, table *tables.Table, partition string, old map[string]*tables.Entity) ([]azcore.ETag, error) {
			x := table.NewTransaction()
			fill(x, partition, old)
			return x.Commit(ctx)
		}
	}
	changed := func(e *tables.Entity) *tables.Entity {
		c := e.Clone()
		c.Set("Text", tables.String("ours"))
		return c
	}
	return []trial{
		{name: "inserts", rows: []string{"a", "b", "c"}, run: commit(func(x *tables.Transaction, p string, _ map[string]*tables.Entity) {
			for _, row := range []string{"a", "b", "c"} {
				x.Insert(harness.Bag(p, row, "ours"))
			}
		})},
		{name: "mixed", old: []string{"old1", "old2", "old3"}, rows: []string{"old1", "a", "old2", "b", "old3"},
			run: commit(func(x *tables.Transaction, p string, old map[string]*tables.Entity) {
				x.Replace(changed(old["old1"]))
				x.Insert(harness.Bag(p, "a", "ours"))
				x.Merge(changed(old["old2"]))
				x.Upsert(harness.Bag(p, "b", "ours"))
				x.Delete(old["old3"])
			})},
		{name: "deletes", old: []string{"old1", "old2"}, rows: []string{"old1", "old2"}, deletes: true,
			run: commit(func(x *tables.Transaction, _ string, old map[string]*tables.Entity) {
				x.Delete(old["old1"])
				x.DeleteUnconditional(old["old2"].Key)
			})},
		{name: "full inserts", rows: []string{"a", "b"}, full: true, run: commit(func(x *tables.Transaction, p string, _ map[string]*tables.Entity) {
			x.Insert(fullBag(p, "a", "ours"))
			x.Insert(fullBag(p, "b", "ours"))
		})},
	}
}

func trials() []trial {
	type view = tables.Rows[tables.Entity]
	return append([]trial{
		single("Insert", false, (*view).Insert),
		single("Replace", true, (*view).Replace),
		single("ReplaceUnconditional", true, (*view).ReplaceUnconditional),
		single("Merge", true, func(v *view, ctx context.Context, e *tables.Entity) error { return v.Merge(ctx, e) }),
		single("MergeUnconditional", true, func(v *view, ctx context.Context, e *tables.Entity) error { return v.MergeUnconditional(ctx, e) }),
		single("Upsert of a new row", false, (*view).Upsert),
		single("Upsert of an old row", true, (*view).Upsert),
		single("UpsertMerge", false, func(v *view, ctx context.Context, e *tables.Entity) error { return v.UpsertMerge(ctx, e) }),
		single("Delete", true, (*view).Delete),
		single("DeleteUnconditional", true, func(v *view, ctx context.Context, e *tables.Entity) error {
			return v.DeleteUnconditional(ctx, e.Key)
		}),
		single("Full Insert", false, (*view).Insert),
		single("Full Replace", true, (*view).Replace),
	}, transactions()...)
}

// rowText reads what a row says, "" where there is none.
func rowText(t testing.TB, table *tables.Table, partition, row string) (text string, etag azcore.ETag) {
	t.Helper()
	e, err := table.Entities().Get(context.Background(), tables.Key{Partition: partition, Row: row})
	if errors.Is(err, tables.ErrNotFound) {
		return "", ""
	}
	assert.Check(t, err)
	text, _ = e.Get("Text").Text()
	return text, e.ETag
}
