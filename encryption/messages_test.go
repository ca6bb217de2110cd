package encryption_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/eventual/archive"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestMessagesHoldNoPlaintext: who reads the messages of the queue learns keys, and no encrypted value.
func TestMessagesHoldNoPlaintext(t *testing.T) {
	w, ctx := worldOn(t, storagetest.Simulator(t, nil)), t.Context()
	beacon := assert.Must[*encryption.Beacon](t)(fetchBeacon(ctx, w.registry, "number", 0))
	queue := assert.Must[*eventual.Queue](t)(eventual.NewQueue(w.account, "orders", nil))
	assert.Check(t, queue.Create(ctx))
	open := func(table string) *patterns.Repository[employee] {
		byNumber := interpartition.NewIndex("far", func(e *employee) compoundkey.Part { return beacon.Part(tables.String(e.Number)) }, &interpartition.Options[employee]{ByPartition: true})
		r := assert.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(harness.In(w.account.Table(table), queue), patterns.Schema[employee]{
			Key: func(e *employee) tables.Key { return employeeKey(e.Department, e.ID) }, Prefix: "empid",
		}, encryption.New[employee]("encryption", w.registry, nil), byNumber))
		assert.Check(t, r.Table().Create(ctx))
		return r
	}
	r := open("Employees")
	mover := assert.Must[*archive.Mover[employee]](t)(archive.New(queue, "archive", r, archive.ToRepository(open("Archive"), nil), nil))
	e := june("Sales", 1)
	e.Number = canary
	assert.Check(t, r.Insert(ctx, e), mover.Move(ctx, e))
	for n := 0; ; n++ {
		got, err := eventual.QueueService(w.account).NewQueueClient("orders").DequeueMessage(ctx, nil)
		assert.Check(t, err)
		if len(got.Messages) == 0 {
			if n != 1 {
				t.Errorf("%d messages, want a move", n)
			}
			return
		}
		text := string(assert.Must[[]byte](t)(base64.StdEncoding.DecodeString(*got.Messages[0].MessageText)))
		if strings.Contains(text, canary) || strings.Contains(text, "078-05") || !strings.Contains(text, "empid_000001") {
			t.Errorf("the message is %s", text)
		}
	}
}
