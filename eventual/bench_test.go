package eventual_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// BenchmarkWorkerThroughput compares a worker with the SDK alone, which gets batches and deletes with as many goroutines, in
// the same run. ratio is the worker's rate by the SDK's.
func BenchmarkWorkerThroughput(b *testing.B) {
	const messages, concurrency = 320, 16
	q := newQueue(b, storagetest.Open(b), nil)
	fill := func() {
		var senders sync.WaitGroup
		for range concurrency {
			senders.Go(func() {
				for range messages / concurrency {
					if _, err := q.Send(b.Context(), "work", order{Number: 7}, nil); err != nil {
						b.Error(err)
					}
				}
			})
		}
		senders.Wait()
	}
	var worker, bare time.Duration
	for b.Loop() {
		fill()
		begin := time.Now()
		runWorker(b, q, messages, concurrency)
		worker += time.Since(begin)
		fill()
		begin = time.Now()
		runBare(b, storageQueue(q, ""), concurrency)
		bare += time.Since(begin)
	}
	all := float64(b.N * messages)
	b.ReportMetric(all/worker.Seconds(), "worker-msg/s")
	b.ReportMetric(all/bare.Seconds(), "sdk-msg/s")
	b.ReportMetric(bare.Seconds()/worker.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
}

// runWorker returns when n messages are handled.
func runWorker(b *testing.B, q *eventual.Queue, n int64, concurrency int) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var handled atomic.Int64
	w, err := eventual.NewWorker(q, map[string]eventual.Handler{"work": func(_ context.Context, m *eventual.Message) error {
		var o order
		if err := m.Decode(&o); err != nil {
			return err
		}
		if handled.Add(1) == n {
			cancel() // the last deletions are part of the stop
		}
		return nil
	}}, &eventual.WorkerOptions{Concurrency: concurrency})
	assert.Check(b, err)
	assert.Check(b, w.Run(ctx))
}

// runBare is the loop that everybody writes: get a batch, delete what it brings, until there is nothing.
func runBare(b *testing.B, client *azqueue.QueueClient, concurrency int) {
	work := make(chan *azqueue.DequeuedMessage)
	var deleters sync.WaitGroup
	for range concurrency {
		deleters.Go(func() {
			for m := range work {
				if _, err := client.DeleteMessage(b.Context(), *m.MessageID, *m.PopReceipt, nil); err != nil {
					b.Error(err)
				}
			}
		})
	}
	count, hidden := int32(32), int32(60)
	for {
		got, err := client.DequeueMessages(b.Context(), &azqueue.DequeueMessagesOptions{NumberOfMessages: &count, VisibilityTimeout: &hidden})
		assert.Check(b, err)
		if len(got.Messages) == 0 {
			break
		}
		for _, m := range got.Messages {
			work <- m
		}
	}
	close(work)
	deleters.Wait()
}
