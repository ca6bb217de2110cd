package queues

import (
	"fmt"
	"sync"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator/environment"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
)

// Of concurrent receivers, one gets a message.
func TestQueueConcurrentReceivers(t *testing.T) {
	ctx, q := probe.Context(t), newTestQueues(t, 1)
	orders := q.queue(t, "orders")
	var mu sync.Mutex
	got := map[string]int{}
	probe.Together(8, func(i int) {
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
			assert.NoError(t, assert.Err(orders.DeleteMessage(ctx, *m.MessageID, *m.PopReceipt, nil)))
			mu.Lock()
			got[*m.MessageText]++
			mu.Unlock()
		}
	})
	for text, n := range got {
		assert.Equal(t, n, 1, "times %s was handed out", text)
	}
	assert.Equal(t, len(got), 8*50, "messages")
}

// A put and a get, in a queue that grows by one held message with each round.
func BenchmarkQueuePutGet(b *testing.B) {
	f := probe.Service(New(environment.NewClock(probe.Start()), environment.NewDice(1), &environment.Chaos{}).Serve)
	probe.BenchCall(b, f, probe.Call{Method: "PUT", Target: "/orders"}, 201)
	for b.Loop() {
		probe.BenchCall(b, f, probe.Call{Method: "POST", Target: "/orders/messages", Body: message("x")}, 201)
		probe.BenchCall(b, f, probe.Call{Method: "GET", Target: "/orders/messages"}, 200)
	}
}
