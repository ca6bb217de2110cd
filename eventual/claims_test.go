package eventual_test

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// claimed are the names of the blobs that hold bodies.
func claimed(t testing.TB, q *eventual.Queue) []string {
	t.Helper()
	var names []string
	pager := blobstorage.Container(q.Account(), q.Name()+"-claims").NewListBlobsFlatPager(&container.ListBlobsFlatOptions{})
	for pager.More() {
		page := assert.Must[container.ListBlobsFlatResponse](t)(pager.NextPage(t.Context()))
		for _, item := range page.Segment.BlobItems {
			names = append(names, *item.Name)
		}
	}
	return names
}

func wantClaims(t testing.TB, q *eventual.Queue, n int) {
	t.Helper()
	if names := claimed(t, q); len(names) != n {
		t.Fatalf("%d blobs, want %d: %q", len(names), n, names)
	}
}

// large is a body over the limit of a message.
var large = strings.Repeat("large body ", 6000)

// TestLargeBodies go through a blob, whole, and leave nothing.
func TestLargeBodies(t *testing.T) {
	q := newQueue(t, storagetest.Open(t), nil)
	for _, n := range []int{48_000, 49_000, 49_152, 65_536, 1 << 20, 16<<20 - 2} {
		id := assert.Must[string](t)(q.Send(t.Context(), "big", strings.Repeat("x", n), nil))
		if names := claimed(t, q); n > 49_152 && (len(names) != 1 || names[0] != "claims/"+id) || n == 48_000 && len(names) != 0 {
			t.Errorf("%d bytes: blobs %q", n, names)
		}
		var got string
		stats := drain(t, q, map[string]eventual.Handler{"big": func(_ context.Context, m *eventual.Message) error { return m.Decode(&got) }})
		if len(got) != n || stats.Handled != 1 || stats.Failed != 0 {
			t.Errorf("%d bytes arrive as %d, %+v", n, len(got), stats)
		}
		wantClaims(t, q, 0)
	}
}

// TestRequestsOfSend: one, or two with a large body.
func TestRequestsOfSend(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	name := newQueue(t, s, nil).Name()
	counting, counter := harness.CountedService(s)
	q := assert.Must[*eventual.Queue](t)(openQueue(counting, name, nil))
	nothing := func(context.Context, *eventual.Message) error { return nil }
	handlers := map[string]eventual.Handler{"a": nothing, "steps": func(ctx context.Context, m *eventual.Message) error {
		do := func(context.Context) error { return nil }
		return m.Steps(ctx, eventual.Step{Name: "1", Do: do}, eventual.Step{Name: "2", Do: do})
	}, "fails": func(context.Context, *eventual.Message) error { return errors.New("no") }}
	for _, tc := range []struct {
		messageType, body string
		send, handle      int // beside polls
	}{{"a", "", 1, 1}, {"a", large, 2, 3}, {"steps", "", 1, 3}, {"fails", "", 1, 4 + 2}} {
		counter.Reset()
		assert.Must[string](t)(q.Send(t.Context(), tc.messageType, tc.body, nil))
		assert.Equal(t, counter.Reset(), tc.send, "%s of %d bytes: requests to send", tc.messageType, len(tc.body))
		drain(t, q, handlers)
		if n := counter.Count() - counter.CountOf(storagetest.GetMessages); n != tc.handle {
			t.Errorf("%s of %d bytes: %d requests to handle, want %d", tc.messageType, len(tc.body), n, tc.handle)
		}
	}
}

// TestRefusedMessages: nothing is sent for what cannot be a message.
func TestRefusedMessages(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	counting, counter := harness.CountedService(s)
	q := assert.Must[*eventual.Queue](t)(openQueue(counting, "orders", nil))
	for name, tc := range map[string]struct {
		messageType string
		body        any
		delay       time.Duration
		kind        error
		says        string
	}{
		"own type":  {"tablepatterns.poison", 1, 0, tables.ErrInvalid, "reserved for the library"},
		"no type":   {"", 1, 0, tables.ErrInvalid, "empty"},
		"long type": {strings.Repeat("x", 201), 1, 0, tables.ErrInvalid, "201 bytes"},
		"control":   {"a\nb", 1, 0, tables.ErrInvalid, "control character"},
		"not UTF-8": {"a\xff", 1, 0, tables.ErrInvalid, "UTF-8"},
		"channel":   {"a", struct{ Secret chan int }{}, 0, tables.ErrInvalid, "/Secret (chan int)"},
		"too large": {"a", strings.Repeat("x", 16<<20-1), 0, tables.ErrTooLarge, "16777217 bytes"},
		"negative":  {"a", 1, -1, tables.ErrInvalid, "Delay is -1ns"},
		"long":      {"a", 1, 7*24*time.Hour + 1, tables.ErrInvalid, "168h"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := q.Send(t.Context(), tc.messageType, tc.body, &eventual.SendOptions{Delay: tc.delay})
			harness.WantKind(t, err, tc.kind)
			assert.Contains(t, err.Error(), tc.says)
		})
	}
	assert.Equal(t, counter.Count(), 0, "requests")
}

// TestSpoiledClaims: a body that is not the one that was sent reaches no handler.
func TestSpoiledClaims(t *testing.T) {
	for name, tc := range map[string]struct {
		put    string // in place of the body, "" for nothing
		reason string
	}{
		"gone":    {"", ""},
		"other":   {strings.Repeat("x", len(large)+2), "another hash"},
		"shorter": {"x", "has 1 bytes, and 66002 were sent"},
		"longer":  {large + large, "more than the 66002 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue(t, storagetest.Open(t), nil)
			id := assert.Must[string](t)(q.Send(t.Context(), "big", large, nil))
			blob := blobstorage.Container(q.Account(), q.Name()+"-claims").NewBlockBlobClient("claims/" + id)
			if tc.put == "" {
				assert.Check(t, assert.Err(blob.Delete(t.Context(), nil)))
			} else {
				own, err := blob.GetProperties(t.Context(), nil)
				assert.Check(t, err)
				assert.Check(t, assert.Err(blob.UploadBuffer(t.Context(), []byte(tc.put), &blockblob.UploadBufferOptions{Metadata: own.Metadata})))
			}
			stats := drain(t, q, map[string]eventual.Handler{"big": func(context.Context, *eventual.Message) error { t.Error("handled"); return nil }})
			poisoned := entries(t, q)
			if tc.reason == "" {
				// At the first delivery it is a failure. At the second it looks as if the first had been handled, which it may.
				if stats.Failed != 1 || stats.Duplicates != 1 || len(poisoned) != 0 {
					t.Errorf("%+v, %+v", stats, poisoned)
				}
				return
			}
			if len(poisoned) != 1 || !strings.Contains(poisoned[0].Reason, tc.reason) || poisoned[0].ID != id || poisoned[0].Body() != nil {
				t.Fatalf("%+v", poisoned)
			}
			assert.Equal(t, assert.Must[int](t)(q.Poison().Purge(t.Context(), nil)), 1, "purged")
			wantClaims(t, q, 1) // SweepClaims removes it
		})
	}
}

// TestFirstDeliveryWithoutClaim poisons when there is no second one.
func TestFirstDeliveryWithoutClaim(t *testing.T) {
	q := newQueue(t, storagetest.Open(t), nil)
	id := assert.Must[string](t)(q.Send(t.Context(), "big", large, nil))
	assert.Check(t, assert.Err(blobstorage.Container(q.Account(), q.Name()+"-claims").NewBlockBlobClient("claims/"+id).Delete(t.Context(), nil)))
	w := newWorker(t, q, map[string]eventual.Handler{"big": func(context.Context, *eventual.Message) error { return nil }}, &eventual.WorkerOptions{MaxDequeues: 1})
	assert.Must[int](t)(w.Drain(t.Context()))
	if e := entries(t, q); len(e) != 1 || e[0].Reason != "the blob that holds the message's body does not exist; send the message again" {
		t.Errorf("%+v", e)
	}
}

// TestOrphans: a body whose message surely was not put is removed at once; SweepClaims removes the others, in time.
func TestOrphans(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	whole := newQueue(t, s, nil)
	for _, fault := range []storagetest.Mode{storagetest.NotSent, storagetest.Before500, storagetest.LostAnswer} {
		faulty, _ := s.WithRetries(0).Faulty(storagetest.On(storagetest.PutMessage, fault))
		q := assert.Must[*eventual.Queue](t)(openQueue(faulty, whole.Name(), nil))
		if _, err := q.Send(t.Context(), "big", large, nil); err == nil || errors.Is(err, tables.ErrUnknownOutcome) == (fault == storagetest.NotSent) {
			t.Errorf("%v: %v", fault, err)
		}
	}
	wantClaims(t, whole, 2) // with a 500 or a lost answer, the message may be there
	s.Wait(69 * time.Minute)
	if r := sweepClaims(t, whole); r.Young != 2 {
		t.Errorf("%+v of bodies whose messages may still be put", r)
	}
	s.Wait(2 * time.Minute)
	if r := sweepClaims(t, whole); r.Held != 2 {
		t.Errorf("%+v while a message is there, whose put was not answered", r)
	}
	drain(t, whole, map[string]eventual.Handler{"big": func(context.Context, *eventual.Message) error { return nil }})
	wantClaims(t, whole, 1)
	if r := sweepClaims(t, whole); r.Deleted != 1 {
		t.Errorf("%+v of an orphan", r)
	}
	wantClaims(t, whole, 0)
}

// TestWithoutBlobs: an account without a blob endpoint can do all but large bodies, and says so.
func TestWithoutBlobs(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	account := assert.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(tables.Endpoints{Table: s.TableEndpoint, Queue: s.QueueEndpoint},
		s.AccountName, s.AccountKey, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
	q := assert.Must[*eventual.Queue](t)(eventual.NewQueue(account, "orders", nil))
	assert.Check(t, q.Create(t.Context()))
	harness.WantKind(t, assert.Err(q.Send(t.Context(), "big", large, nil)), tables.ErrTooLarge)
	harness.WantKind(t, assert.Err(q.SweepClaims(t.Context(), nil)), tables.ErrWiring)

	// One that nearly fills a message leaves no room for a reason beside it, and is not lost for that.
	body := strings.Repeat("x", 48_900)
	id := assert.Must[string](t)(q.Send(t.Context(), "nobody's", body, nil))
	drain(t, q, nil)
	e := entries(t, q)
	if len(e) != 1 || e[0].ID != id || e[0].Type != "nobody's" || len(e[0].Body()) != len(body)+2 {
		t.Fatalf("%d entries", len(e))
	}
	assert.Equal(t, assert.Must[int](t)(q.Poison().Requeue(t.Context(), nil)), 1, "requeued")
	var got string
	drain(t, q, map[string]eventual.Handler{"nobody's": func(_ context.Context, m *eventual.Message) error { return m.Decode(&got) }})
	assert.Equal(t, got, body, "the body")
	assert.Check(t, q.Drop(t.Context()))
}

// TestForgedClaim: a message that names the body of another message, as somebody with the right to add messages can put,
// neither gets that body nor deletes it.
func TestForgedClaim(t *testing.T) {
	q := newQueue(t, storagetest.Open(t), nil)
	id := assert.Must[string](t)(q.Send(t.Context(), "big", large, nil))
	raw := eventual.QueueService(q.Account()).NewQueueClient(q.Name())
	peeked, err := raw.PeekMessage(t.Context(), nil)
	assert.Check(t, err)
	text := string(assert.Must[[]byte](t)(base64.StdEncoding.DecodeString(*peeked.Messages[0].MessageText)))
	for name, forged := range map[string]string{
		"another type":        strings.Replace(text, `"type":"big"`, `"type":"small"`, 1),
		"another id":          strings.Replace(text, `"id":"`+id+`"`, `"id":"FORGED"`, 1),
		"another id and type": strings.Replace(strings.Replace(text, `"id":"`+id+`"`, `"id":"FORGED"`, 1), `"type":"big"`, `"type":"small"`, 1),
		"a way up":            strings.Replace(text, `"blob":"`+id+`"`, `"blob":"../claims/`+id+`"`, 1),
		"poison":              strings.Replace(text, `"type":"big"`, `"type":"tablepatterns.poison"`, 1),
	} {
		if forged == text {
			t.Fatalf("%s: the message is the same: %s", name, text)
		}
		assert.Check(t, assert.Err(raw.EnqueueMessage(t.Context(), base64.StdEncoding.EncodeToString([]byte(forged)), nil)))
	}
	var got []string
	note := func(_ context.Context, m *eventual.Message) error {
		got = append(got, m.Type)
		return nil
	}
	fails := true
	stats := drain(t, q, map[string]eventual.Handler{"small": note, "big": func(ctx context.Context, m *eventual.Message) error {
		if fails { // an ordinary failure of the real message, after which its body must still be there
			fails = false
			return errors.New("not now")
		}
		return note(ctx, m)
	}})
	if !slices.Equal(got, []string{"big"}) {
		t.Errorf("handled: %q, %+v; want the real message alone", got, stats)
	}
	poisoned := entries(t, q)
	// A forged message that comes once more when the real one has been handled counts as a duplicate of it.
	if n := len(poisoned) + int(stats.Duplicates); n != 5 || len(poisoned) < 3 {
		t.Errorf("%d entries on the poison queue and %d duplicates, want 5 together", len(poisoned), stats.Duplicates)
	}
	for _, entry := range poisoned {
		if entry.Type != "tablepatterns.poison" && !strings.Contains(entry.Reason, "does not belong to the message") && !strings.Contains(entry.Reason, "body of another message") {
			t.Errorf("the reason is %q", entry.Reason)
		}
	}
}

// TestForgedPoisonEntry: purging an entry of the poison queue that names the body of a message leaves that body.
func TestForgedPoisonEntry(t *testing.T) {
	q := newQueue(t, storagetest.Open(t), nil)
	id := assert.Must[string](t)(q.Send(t.Context(), "big", large, nil))
	peeked, err := eventual.QueueService(q.Account()).NewQueueClient(q.Name()).PeekMessage(t.Context(), nil)
	assert.Check(t, err)
	text := string(assert.Must[[]byte](t)(base64.StdEncoding.DecodeString(*peeked.Messages[0].MessageText)))
	forged := strings.Replace(text, `"type":"big"`, `"type":"tablepatterns.poison"`, 1)
	_, err = eventual.QueueService(q.Account()).NewQueueClient(q.Poison().Name()).EnqueueMessage(t.Context(), base64.StdEncoding.EncodeToString([]byte(forged)), nil)
	assert.Check(t, err)
	assert.Equal(t, assert.Must[int](t)(q.Poison().Purge(t.Context(), nil)), 1, "entries purged")
	if names := claimed(t, q); !slices.Equal(names, []string{"claims/" + id}) {
		t.Errorf("blobs %q, want the message's body", names)
	}
}
