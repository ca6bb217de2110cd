package eventual_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

var (
	oldKey = []byte("an old key of 32 bytes, as it is")
	newKey = []byte("a new key of 32 bytes, as it is.")
)

func signingKeys(t testing.TB, keys ...[]byte) *eventual.SigningKeys {
	t.Helper()
	return assert.Must[*eventual.SigningKeys](t)(eventual.NewSigningKeys(keys...))
}

// TestSigning: which messages a queue with keys handles.
func TestSigning(t *testing.T) {
	s := storagetest.Open(t)
	plain := newQueue(t, s, nil)
	with := func(until time.Time, keys ...[]byte) *eventual.Queue {
		return assert.Must[*eventual.Queue](t)(openQueue(s, plain.Name(), &eventual.QueueOptions{SigningKeys: signingKeys(t, keys...), AcceptUnsignedUntil: until}))
	}
	steps := func(ctx context.Context, m *eventual.Message) error {
		return m.Steps(ctx, eventual.Step{Name: "1", Do: func(context.Context) error { return nil }}, eventual.Step{Name: "2", Do: func(context.Context) error { return nil }})
	}
	later := time.Now().Add(24 * time.Hour)
	for name, c := range map[string]struct {
		from, to *eventual.Queue
		body     string
		change   func(text string) string // of the JSON of the message, nil for none
		handled  bool
		reason   string
	}{
		"signed":                       {from: with(time.Time{}, newKey), to: with(time.Time{}, newKey), handled: true},
		"signed, large":                {from: with(time.Time{}, newKey), to: with(time.Time{}, newKey), body: large, handled: true},
		"signed with the old key":      {from: with(time.Time{}, oldKey), to: with(time.Time{}, newKey, oldKey), handled: true},
		"signed, and no keys here":     {from: with(time.Time{}, newKey), to: plain, handled: true},
		"signed with another key":      {from: with(time.Time{}, oldKey), to: with(time.Time{}, newKey), reason: "none of QueueOptions.SigningKeys"},
		"unsigned, of the program":     {from: plain, to: with(time.Time{}, newKey), handled: true},
		"unsigned, large":              {from: plain, to: with(time.Time{}, newKey), body: large, reason: "not signed"},
		"unsigned, large, for now":     {from: plain, to: with(later, newKey), body: large, handled: true},
		"another key, for now":         {from: with(time.Time{}, oldKey), to: with(later, newKey), reason: "none of QueueOptions.SigningKeys"},
		"a changed body":               {from: with(time.Time{}, newKey), to: with(time.Time{}, newKey), body: "pay 1", change: replacing("pay 1", "pay 9"), reason: "none of QueueOptions.SigningKeys"},
		"another type":                 {from: with(time.Time{}, newKey), to: with(time.Time{}, newKey), change: replacing(`"type":"work"`, `"type":"Work"`), reason: "none of QueueOptions.SigningKeys"},
		"steps that nobody did":        {from: plain, to: with(time.Time{}, newKey), change: replacing(`"body"`, `"steps":["1"],"body"`), reason: "not signed"},
		"a MAC in another place":       {from: plain, to: with(time.Time{}, newKey), change: replacing(`{"v"`, `{"mac":"AAAA","steps":["1"],"v"`), reason: "not signed"},
		"an unsigned intent":           {from: plain, to: with(time.Time{}, newKey), change: replacing(`"type":"work"`, `"type":"tablepatterns.intent"`), reason: "not signed"},
		"an unsigned move":             {from: plain, to: with(time.Time{}, newKey), change: replacing(`"type":"work"`, `"type":"tablepatterns.move.archive"`), reason: "not signed"},
		"a signed one, doubled member": {from: with(time.Time{}, newKey), to: with(time.Time{}, newKey), change: replacing(`"body"`, `"id":"x","body"`), reason: "neither the JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Must[int](t)(plain.Poison().Purge(t.Context(), nil))
			assert.Must[string](t)(c.from.Send(t.Context(), "work", c.body, nil))
			if c.change != nil {
				raw := eventual.QueueService(c.from.Account()).NewQueueClient(c.from.Name())
				got, err := raw.DequeueMessage(t.Context(), nil)
				assert.Check(t, err)
				text := string(assert.Must[[]byte](t)(base64.StdEncoding.DecodeString(*got.Messages[0].MessageText)))
				changed := c.change(text)
				if changed == text {
					t.Fatalf("nothing was changed in %s", text)
				}
				assert.Check(t, assert.Err(raw.EnqueueMessage(t.Context(), base64.StdEncoding.EncodeToString([]byte(changed)), nil)))
				assert.Check(t, assert.Err(raw.DeleteMessage(t.Context(), *got.Messages[0].MessageID, *got.Messages[0].PopReceipt, nil)))
			}
			stats := drain(t, c.to, map[string]eventual.Handler{"work": steps, "Work": steps})
			poisoned := entries(t, plain)
			if c.handled != (stats.Handled == 1) || c.handled != (len(poisoned) == 0) {
				t.Errorf("%+v, %+v", stats, poisoned)
			}
			for _, entry := range poisoned {
				assert.Contains(t, entry.Reason, c.reason, "the reason")
			}
		})
	}
}

func replacing(old, by string) func(string) string {
	return func(text string) string { return strings.Replace(text, old, by, 1) }
}

// TestSignedForOneQueue: a signed message is no message of another queue, even under the same key.
func TestSignedForOneQueue(t *testing.T) {
	s := storagetest.Open(t)
	options := &eventual.QueueOptions{SigningKeys: signingKeys(t, newKey)}
	from, to := newQueue(t, s, options), newQueue(t, s, options)
	assert.Must[string](t)(from.Send(t.Context(), "work", 1, nil))
	peeked, err := eventual.QueueService(from.Account()).NewQueueClient(from.Name()).PeekMessage(t.Context(), nil)
	assert.Check(t, err)
	_, err = eventual.QueueService(to.Account()).NewQueueClient(to.Name()).EnqueueMessage(t.Context(), *peeked.Messages[0].MessageText, nil)
	assert.Check(t, err)
	stats := drain(t, to, map[string]eventual.Handler{"work": func(context.Context, *eventual.Message) error { t.Error("handled"); return nil }})
	assert.Equal(t, stats.Poisoned, 1, "%+v", stats)
}

// TestSignedForOneAccount: a signed message is no message of a queue of the same name in another account, even under the same key.
func TestSignedForOneAccount(t *testing.T) {
	options := &eventual.QueueOptions{SigningKeys: signingKeys(t, newKey)}
	open := func(account string) *eventual.Queue {
		s := storagetest.Simulator(t, &storagetest.SimulatorOptions{Account: account})
		q := assert.Must[*eventual.Queue](t)(openQueue(s, "orders", options))
		assert.Check(t, q.Create(t.Context()))
		return q
	}
	from := open("contoso")
	assert.Must[string](t)(from.Send(t.Context(), "work", 1, nil))
	peeked, err := eventual.QueueService(from.Account()).NewQueueClient(from.Name()).PeekMessage(t.Context(), nil)
	assert.Check(t, err)
	for account, handled := range map[string]int64{"contoso": 1, "contosostaging": 0} {
		to := open(account)
		_, err = eventual.QueueService(to.Account()).NewQueueClient(to.Name()).EnqueueMessage(t.Context(), *peeked.Messages[0].MessageText, nil)
		assert.Check(t, err)
		stats := drain(t, to, map[string]eventual.Handler{"work": func(context.Context, *eventual.Message) error { return nil }})
		if stats.Handled != handled || stats.Poisoned != 1-handled {
			t.Errorf("%s: %+v", account, stats)
		}
	}
}

// TestWorkerSignsOnlyWhatVerified: nothing that a worker stores again gets a MAC unless it had one: no finished step, no postponement, and
// nothing that comes back from the poison queue. So whoever may add and read messages gets no signature for a text of their own.
func TestWorkerSignsOnlyWhatVerified(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	later := time.Now().Add(24 * time.Hour)
	plain := newQueue(t, s, nil)
	q := assert.Must[*eventual.Queue](t)(openQueue(s, plain.Name(), &eventual.QueueOptions{SigningKeys: signingKeys(t, newKey), AcceptUnsignedUntil: later}))
	raw := eventual.QueueService(q.Account()).NewQueueClient(q.Name())
	intent := `{"v":1,"id":"x","type":"tablepatterns.intent","sent":"` + time.Now().UTC().Format(time.RFC3339) + `","body":{"id":"x","members":[{"repository":"Nobody","partition":"p","row":"r"}]}}`
	ran := map[string]int{}
	steps := func(ctx context.Context, m *eventual.Message) error {
		step := func(name string) eventual.Step {
			return eventual.Step{Name: name, Do: func(context.Context) error { ran[name]++; return nil }}
		}
		if err := m.Steps(ctx, step("1"), step("2")); err != nil {
			return err
		}
		return errors.New("again")
	}
	for name, text := range map[string]string{"steps": `{"v":1,"id":"x","type":"pay","body":"100 to Mallory"}`, "a postponed intent": intent} {
		assert.Check(t, assert.Err(raw.EnqueueMessage(t.Context(), base64.StdEncoding.EncodeToString([]byte(text)), nil)))
		for range 3 {
			drain(t, q, map[string]eventual.Handler{"pay": steps})
			s.Wait(10 * time.Minute)
		}
		assert.Must[int](t)(q.Poison().Requeue(t.Context(), nil))
		got, err := raw.DequeueMessage(t.Context(), nil)
		assert.Check(t, err)
		stored := string(assert.Must[[]byte](t)(base64.StdEncoding.DecodeString(*got.Messages[0].MessageText)))
		if strings.Contains(stored, `"mac"`) {
			t.Errorf("%s: a worker has signed %s", name, stored)
		}
		assert.Check(t, assert.Err(raw.DeleteMessage(t.Context(), *got.Messages[0].MessageID, *got.Messages[0].PopReceipt, nil)))
	}
	if ran["1"] < 2 || ran["1"] != ran["2"] {
		t.Errorf("the steps of an unsigned message ran %v times: each delivery runs all of them", ran)
	}
}

// TestSigningKeys: how many, how long, and that no text shows them.
func TestSigningKeys(t *testing.T) {
	for name, keys := range map[string][][]byte{"none": nil, "short": {[]byte("15 bytes, no 16")}, "one is short": {newKey, nil}, "many": slices.Repeat([][]byte{newKey}, 17)} {
		_, err := eventual.NewSigningKeys(keys...)
		harness.WantKind(t, err, tables.ErrWiring)
		if strings.Contains(fmt.Sprint(err), "15 bytes, no 16") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := openQueue(storagetest.Simulator(t, nil), "orders", &eventual.QueueOptions{SigningKeys: &eventual.SigningKeys{}})
	harness.WantKind(t, err, tables.ErrWiring)
	secret := bytes.Clone(newKey)
	keys := signingKeys(t, secret, oldKey)
	secret[0] ^= 1 // the caller's slice is the caller's
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "keys", keys, "options", eventual.QueueOptions{SigningKeys: keys})
	text := log.String() + fmt.Sprintf("%v %+v %#v %s %q %x %d", keys, keys, keys, keys, keys, keys, keys) +
		fmt.Sprintf("%v %+v %#v", eventual.QueueOptions{SigningKeys: keys}, &eventual.QueueOptions{SigningKeys: keys}, []any{keys}) +
		string(assert.Must[[]byte](t)(json.Marshal(keys)))
	for _, form := range []string{"a new key", "an old key", fmt.Sprintf("%x", newKey[:8]), base64.StdEncoding.EncodeToString(newKey)[:12], "97 32 110 101"} {
		if strings.Contains(text, form) {
			t.Errorf("%q is in %s", form, text)
		}
	}
}

// TestStoredSigningKeys: one key for all programs, whoever comes first.
func TestStoredSigningKeys(t *testing.T) {
	s := storagetest.Open(t)
	q := newQueue(t, s, nil)
	table := q.Account().Table(s.TableName(t))
	signed := func(name string) *eventual.Queue {
		return assert.Must[*eventual.Queue](t)(openQueue(s, q.Name(), &eventual.QueueOptions{SigningKeys: eventual.StoredSigningKeys(table, name)}))
	}
	harness.WantKind(t, assert.Err(signed("orders").Send(t.Context(), "work", 1, nil)), tables.ErrMissingResource) // before Create
	all := make(chan *eventual.Queue, 8)
	for range cap(all) {
		go func() {
			queue := signed("orders")
			assert.NoError(t, queue.CreateIfMissing(t.Context()))
			all <- queue
		}()
	}
	queues := []*eventual.Queue{signed("orders")} // which reads the key when it needs it
	for range cap(all) {
		queues = append(queues, <-all)
	}
	for _, from := range queues {
		assert.Must[string](t)(from.Send(t.Context(), "work", large, nil))
	}
	stats := drain(t, queues[0], map[string]eventual.Handler{"work": func(context.Context, *eventual.Message) error { return nil }})
	if stats.Handled != int64(len(queues)) || stats.Failed != 0 {
		t.Errorf("%+v", stats)
	}
	foreign := signed("bills")
	assert.Check(t, foreign.CreateIfMissing(t.Context()))
	assert.Must[string](t)(foreign.Send(t.Context(), "work", large, nil))
	if stats := drain(t, queues[0], nil); stats.Poisoned != 1 {
		t.Errorf("another queue's key signs: %+v", stats)
	}
	spoiled := &tables.Entity{Key: tables.Key{Partition: "tpsigning_spoiled", Row: "key"}}
	spoiled.Set("Key", tables.String("no key"))
	assert.Check(t, table.Entities().Insert(t.Context(), spoiled))
	assert.ErrorIs(t, signed("spoiled").CreateIfMissing(t.Context()), tables.ErrGarbled, "a key that is none")
}

// TestUnsignedIsTold: a worker without keys says once what that means.
func TestUnsignedIsTold(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	log := &logged{}
	q := log.queue(t, s, newQueue(t, s, nil).Name(), nil)
	for range 2 {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		assert.Check(t, newWorker(t, q, nil, nil).Run(ended))
	}
	assert.Equal(t, strings.Count(log.String(), "not authenticated"), 1, "times told: %s", log)
}
