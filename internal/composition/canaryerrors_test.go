package composition

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/eventual/archive"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/logdata"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// job returns options that check what a job finds.
func (x *sensitive) job(name string) *patterns.JobOptions {
	return &patterns.JobOptions{Found: func(f patterns.Finding) error {
		x.value(f, x.birds.keys, x.plain)
		x.error(name, f.Err)
		return nil
	}}
}

// operations are those that send requests to tables, queues and blobs. Each returns its error.
func (x *sensitive) operations(ctx context.Context, d *desk) map[string]func() error {
	first, table := x.item(1), d.table
	key := plainKey(first)
	log, logErr := logdata.New(d.photos, "web", nil)
	worker, workerErr := eventual.NewWorker(d.queue, nil, &eventual.WorkerOptions{MaxDequeues: 1})
	return map[string]func() error{
		"Insert": func() error { return d.items.Insert(ctx, x.item(3)) }, "Upsert": func() error { return d.items.Upsert(ctx, first) },
		"Get": func() error { return second(d.items.Get(ctx, key)) }, "Delete": func() error { return d.items.DeleteUnconditional(ctx, key) },
		"Query": func() error { return second(d.items.Query().Partition(theSite).Page(ctx, "")) },
		"Update": func() error {
			return second(d.items.Update(ctx, key, func(v *item) error { v.Name = "other"; return nil }))
		},
		"Verify": func() error {
			return second(d.items.Verify(ctx, x.job("Verify")))
		},
		"Rebuild": func() error {
			r, err := d.items.Rebuild(ctx, x.job("Rebuild"))
			x.value(r, x.birds.keys, x.plain)
			return err
		},
		"Reencrypt": func() error {
			r, err := encryption.Reencrypt(ctx, d.items, nil)
			x.value(r, x.birds.keys, x.plain)
			return err
		},
		"Uses": func() error { return second(encryption.Uses(ctx, table)) }, "Reseal": func() error { return d.photo.Reseal(ctx, key) },
		"Sweep":     func() error { return second(d.photo.Sweep(ctx, nil)) },
		"SignedURL": func() error { return second(d.photo.SignedURL(ctx, key, time.Now().Add(time.Hour))) },
		"SignBlob": func() error {
			return second(blobstorage.Sign(ctx, d.account, "photos", "x", time.Now().Add(time.Hour)))
		},
		"Keys": func() error { return second(d.teams.In(theSite).Keys(ctx, compoundkey.String("team"))) },
		"Send": func() error { return second(d.queue.Send(ctx, "work", make([]byte, 60_000), nil)) }, "SweepClaims": func() error { return second(d.queue.SweepClaims(ctx, nil)) },
		"Peek":         func() error { return second(d.queue.Poison().Peek(ctx, 32)) },
		"archive.Read": func() error { return second(archive.Read[item](ctx, d.photos, "x")) },
		"Drain": func() error {
			if workerErr != nil {
				return workerErr
			}
			return second(worker.Drain(ctx))
		},
		"Log": func() error {
			if logErr != nil {
				return logErr
			}
			for _, err := range log.Query(ctx, time.Now().Add(-time.Hour), time.Now(), nil) {
				return err
			}
			return nil
		},
		"Create": func() error { return table.Create(ctx) }, "StoredSigningKeys": func() error {
			q, err := eventual.NewQueue(table.Account(), "signed", &eventual.QueueOptions{SigningKeys: eventual.StoredSigningKeys(table, "q")})
			if err != nil {
				return err
			}
			return q.Create(ctx)
		},
	}
}

// TestCanaryErrors: whatever a service or a proxy quotes, no error, log line, span, finding, report or entry of the poison queue holds the
// account's key, a signature, a data key, or what an encrypted property holds; nor when rows were changed behind the library's back.
func TestCanaryErrors(t *testing.T) {
	x := newSensitive(t)
	signed := *x.s
	e := x.desk.account.Endpoints()
	signed.ConnectionString = "TableEndpoint=" + e.Table + ";QueueEndpoint=" + e.Queue + ";BlobEndpoint=" + e.Blob + ";SharedAccessSignature=" + x.sas()
	run := func(what string, s *storagetest.Service) (failed int) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		traced := *s
		traced.ClientOptions.TracingProvider = x.provider()
		d := assert.Must[*desk](t)(x.office.open(&traced))
		for name, do := range x.operations(ctx, d) {
			if err := do(); err != nil {
				x.error(what+" "+name, err)
				failed++
			}
		}
		return failed
	}
	failed := 0
	for _, base := range []*storagetest.Service{x.s, &signed} {
		for _, g := range []gossip{0, 400, 403, 500} {
			faulty, _ := base.WithRetries(0).Faulty(storagetest.Always(g))
			failed += run(fmt.Sprint(g), faulty)
		}
	}
	failed += run("refused", signed.WithRetries(0)) // the signature is none
	for n := range 12 {                             // the first so many requests of an operation go well
		faulty, _ := x.s.WithRetries(0).Faulty(storagetest.InjectorFunc(func(c storagetest.Call) storagetest.Fault {
			if c.Index%12 == n {
				return gossip(500)
			}
			return nil
		}))
		failed += run("now and then", faulty)
	}
	x.tamper(t)
	failed += run("tampered", x.s)
	x.s.Wait(time.Hour)
	failed += run("later", x.s)
	poisoned := assert.Must[[]eventual.PoisonMessage](t)(x.desk.queue.Poison().Peek(t.Context(), 32))
	for _, p := range poisoned {
		x.value(p, x.birds.keys, x.plain)
	}
	t.Logf("%d failures, %d poisoned", failed, len(poisoned))
	if failed < 150 || len(poisoned) == 0 {
		t.Errorf("%d operations failed, %d messages are on the poison queue", failed, len(poisoned))
	}
	x.verdict(t, map[string]int{"error": 5_000, "span": 500, "log": 500, "value": 100})
}

// tamper exchanges the encrypted values of the items, and puts a message on the queue that nobody can handle.
func (x *sensitive) tamper(t *testing.T) {
	t.Helper()
	client := x.desk.account.TableService().NewClient(x.desk.table.Name())
	for row, err := range x.desk.table.Entities().Query().AllowTableScan().All(t.Context()) {
		assert.Check(t, err)
		merge := map[string]any{"PartitionKey": row.Key.Partition, "RowKey": row.Key.Row}
		for _, p := range row.Properties {
			if raw, ok := p.Value.Bytes(); ok && len(raw) > 60 {
				changed := bytes.Clone(raw)
				changed[len(changed)-1] ^= 1
				merge[p.Name], merge[p.Name+"@odata.type"] = changed, "Edm.Binary"
			}
		}
		assert.Check(t, second(client.UpdateEntity(t.Context(), assert.Must[[]byte](t)(json.Marshal(merge)), nil)))
	}
	assert.Must[string](t)(x.desk.queue.Send(t.Context(), "nobody's", "x", nil))
}
