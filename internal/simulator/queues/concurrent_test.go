package simulator

import (
	"fmt"
	"sync"
	"testing"
)

// Of rival receivers, one gets a message.
func TestQueueRivals(t *testing.T) {
	ctx, q := testContext(t), newTestQueues(t, 1)
	orders := q.queue(t, "orders")
	var mu sync.Mutex
	got := map[string]int{}
	together(8, func(i int) {
		for n := range 50 {
			if _, err := orders.EnqueueMessage(ctx, fmt.Sprintf("%d %d", i, n), nil); err != nil {
				t.Error(err)
				return
			}
			r, err := orders.DequeueMessage(ctx, nil)
			if err != nil || len(r.Messages) != 1 {
				t.Errorf("%v, %v", r.Messages, err)
				return
			}
			m := r.Messages[0]
			if _, err := orders.DeleteMessage(ctx, *m.MessageID, *m.PopReceipt, nil); err != nil {
				t.Error(err)
			}
			mu.Lock()
			got[*m.MessageText]++
			mu.Unlock()
		}
	})
	for text, n := range got {
		if n != 1 {
			t.Errorf("%s was handed out %d times", text, n)
		}
	}
	if len(got) != 8*50 {
		t.Errorf("%d messages", len(got))
	}
}

// A put and a get, in a queue that grows by one held message with each round.
func BenchmarkQueuePutGet(b *testing.B) {
	f := serveFunc(newQueueService(NewClock(testStart()), newDice(1), &Chaos{}).Serve)
	benchCall(b, f, rawCall{method: "PUT", target: "/orders"}, 201)
	for b.Loop() {
		benchCall(b, f, rawCall{method: "POST", target: "/orders/messages", body: message("x")}, 201)
		benchCall(b, f, rawCall{method: "GET", target: "/orders/messages"}, 200)
	}
}
