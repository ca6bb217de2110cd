package eventual_test

import (
	"encoding/base64"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// sweepClaims is SweepClaims that must succeed.
func sweepClaims(t *testing.T, q *eventual.Queue) eventual.SweepReport {
	t.Helper()
	return assert.Must[eventual.SweepReport](t)(q.SweepClaims(t.Context(), nil))
}

// TestSweepKeepsBodiesOfMessages: a body stays however old it is while its message is on the queue, hidden or not, or on the
// poison queue.
func TestSweepKeepsBodiesOfMessages(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	q := newQueue(t, s, &eventual.QueueOptions{Shards: 3})
	assert.Must[string](t)(q.Send(t.Context(), "big", large, &eventual.SendOptions{Delay: 6 * 24 * time.Hour}))
	s.Wait(5 * 24 * time.Hour)
	assert.Equal(t, sweepClaims(t, q), (eventual.SweepReport{Listed: 1, Held: 1}), "of a message that is hidden")
	s.Wait(2 * 24 * time.Hour)
	assert.Equal(t, sweepClaims(t, q), (eventual.SweepReport{Listed: 1, Held: 1}), "of a message that nobody gets")
	drain(t, q, nil) // there is no handler
	if r := sweepClaims(t, q); r != (eventual.SweepReport{Listed: 1, Held: 1}) || len(entries(t, q)) != 1 {
		t.Errorf("of an entry on the poison queue: %+v", r)
	}
	assert.Must[int](t)(q.Poison().Purge(t.Context(), nil))
	if r := assert.Must[eventual.SweepReport](t)(q.SweepClaims(t.Context(), &eventual.SweepOptions{DryRun: true})); r.Deleted != 1 {
		t.Errorf("a dry run: %+v", r)
	}
	wantClaims(t, q, 1)
	assert.Equal(t, sweepClaims(t, q), (eventual.SweepReport{Listed: 1, Deleted: 1}), "of nothing")
	wantClaims(t, q, 0)
}

// TestSweepKeepsForeignBodies: bodies of other queues in one container stay, and those that do not say of which queue they are, or
// for how long their message may still be put.
func TestSweepKeepsForeignBodies(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	q := newQueue(t, s, nil)
	other := newQueue(t, s, &eventual.QueueOptions{ClaimContainer: q.Name() + "-claims"})
	assert.Must[string](t)(other.Send(t.Context(), "big", large, nil))
	claims := blobstorage.Container(q.Account(), q.Name()+"-claims")
	name, nonsense := q.Name(), "soon"
	for blob, meta := range map[string]map[string]*string{"old": nil, "noterm": {"tpqueue": &name}, "nonsense": {"tpqueue": &name, "tpterm": &nonsense}} {
		assert.Check(t, assert.Err(claims.NewBlockBlobClient("claims/"+blob).UploadBuffer(t.Context(), []byte("x"), nil)))
		assert.Check(t, assert.Err(claims.NewBlobClient("claims/"+blob).SetMetadata(t.Context(), meta, nil)))
	}
	s.Wait(1000 * time.Hour)
	assert.Equal(t, sweepClaims(t, q), (eventual.SweepReport{Listed: 4, Foreign: 4}))
}

// TestGoldenClaim pins the metadata of a body's blob.
func TestGoldenClaim(t *testing.T) {
	q := newQueue(t, storagetest.Open(t), nil)
	id := assert.Must[string](t)(q.Send(t.Context(), "big", large, nil))
	answer, err := blobstorage.Container(q.Account(), q.Name()+"-claims").NewBlobClient("claims/"+id).GetProperties(t.Context(), nil)
	assert.Check(t, err)
	meta := map[string]string{}
	for name, value := range answer.Metadata {
		meta[strings.ToLower(name)] = *value
	}
	encoded := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	if !maps.Equal(meta, map[string]string{"tpmessage": encoded(id), "tptype": encoded("big"), "tpterm": "3600", "tpqueue": q.Name()}) {
		t.Errorf("the metadata is %v", meta)
	}
}

// during does something before the first call that it is for.
type during struct {
	is   func(*http.Request) bool
	do   func()
	done bool
}

// Do is policy.Policy.
func (d *during) Do(req *policy.Request) (*http.Response, error) {
	if !d.done && d.is(req.Raw()) {
		d.done = true
		d.do()
	}
	return req.Next()
}

// with is the queue as a process opens it whose calls are watched.
func (d *during) with(t *testing.T, s *storagetest.Service, name string) *eventual.Queue {
	t.Helper()
	own := *s
	own.ClientOptions.PerCallPolicies = append(slices.Clip(s.ClientOptions.PerCallPolicies), d)
	return assert.Must[*eventual.Queue](t)(openQueue(&own, name, nil))
}

// TestLateSender: a sender that comes too late to its message puts none, and a sweep beside it removes the body.
func TestLateSender(t *testing.T) {
	for slow, late := range map[time.Duration]bool{0: false, 49 * time.Minute: false, 51 * time.Minute: true, 72 * time.Minute: true} {
		storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
			q := newQueue(t, s, nil)
			var swept eventual.SweepReport
			d := &during{is: func(r *http.Request) bool {
				return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/messages")
			}, do: func() {
				time.Sleep(slow)
				swept = sweepClaims(t, q)
			}}
			_, err := d.with(t, s, q.Name()).Send(t.Context(), "big", large, nil)
			if late != errors.Is(err, eventual.ErrLeaseLost) || late != (err != nil) {
				t.Errorf("after %v Send says %v", slow, err)
			}
			if want := slow > 70*time.Minute; swept.Listed != 1 || (swept.Deleted == 1) != want {
				t.Errorf("after %v a sweep says %+v", slow, swept)
			}
			n := assert.Must[int](t)(q.Length(t.Context()))
			if (n == 0) != late {
				t.Errorf("after %v there are %d messages", slow, n)
			}
			if !late {
				wantClaims(t, q, 1)
			}
		})
	}
}

// TestSweepBesideRequeue: a body whose message goes from the poison queue to the queue, just after the sweep has seen that the queue
// is empty, stays.
func TestSweepBesideRequeue(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	q := newQueue(t, s, nil)
	assert.Must[string](t)(q.Send(t.Context(), "big", large, nil))
	drain(t, q, nil)
	s.Wait(24 * time.Hour)
	d := &during{is: func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "-poison")
	}, do: func() {
		assert.Equal(t, assert.Must[int](t)(q.Poison().Requeue(t.Context(), nil)), 1, "requeued")
	}}
	assert.Equal(t, assert.Must[eventual.SweepReport](t)(d.with(t, s, q.Name()).SweepClaims(t.Context(), nil)), (eventual.SweepReport{Listed: 1, Young: 1}))
	wantClaims(t, q, 1)
}
