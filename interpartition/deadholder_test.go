package interpartition_test

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// TestKeyOfADeadHolder: an entity takes a key that another has given up in a change whose holder is dead. Its intent waits
// for the dead holder's message, and is not poison before that appears.
func TestKeyOfADeadHolder(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	w := &walked{kind: kind{async: true}, walkScene: sceneHandOver}
	w.stage(t, s)
	p := harness.Must[*process](t)(w.start(s))
	if err := moves(1, "b")(ctx, p.repo); err != nil {
		t.Fatal(err)
	}
	got, err := eventual.QueueService(p.queue.Account()).NewQueueClient(w.queue).DequeueMessage(ctx, &azqueue.DequeueMessageOptions{VisibilityTimeout: to.Ptr[int32](60)})
	if err != nil || len(got.Messages) != 1 {
		t.Fatalf("%d messages, %v", len(got.Messages), err)
	}
	if err := takes(2, "a", 1)(ctx, p.repo); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		worker := harness.Must[*eventual.Worker](t)(eventual.NewWorker(p.queue, nil, nil))
		if _, err := worker.Drain(ctx); err != nil {
			t.Fatal(err)
		}
		if n := worker.Stats().Poisoned; n != 0 {
			t.Fatalf("%d intents are poison", n)
		}
		s.Wait(time.Second)
	}
	if _, err := checkRows(harness.Must[[]map[string]string](t)(rawRows(ctx, p))); err != nil {
		t.Fatal(err)
	}
}
