package eventual_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// handledBy records which worker has handled the messages of each partition, and how many at a time.
type handledBy struct {
	mu      sync.Mutex
	workers map[string]map[string]int // partition, worker: messages
	running map[string]int
	most    int
}

func (h *handledBy) handlers(worker string) map[string]eventual.Handler {
	return map[string]eventual.Handler{"write": func(_ context.Context, m *eventual.Message) error {
		var partition string
		if err := m.Decode(&partition); err != nil {
			return err
		}
		h.mu.Lock()
		if h.workers[partition] == nil {
			h.workers[partition] = map[string]int{}
		}
		h.workers[partition][worker]++
		h.running[partition]++
		h.most = max(h.most, h.running[partition])
		h.mu.Unlock()
		time.Sleep(time.Millisecond)
		h.mu.Lock()
		h.running[partition]--
		h.mu.Unlock()
		return nil
	}}
}

// TestOwnedPartitions: with SendOptions.Partition and workers that take different shards, all messages of a partition go to one worker,
// which with Concurrency 1 handles one after another; without Partition they do not.
func TestOwnedPartitions(t *testing.T) {
	const shards, partitions, each = 6, 12, 10
	for _, owned := range []bool{true, false} {
		t.Run(fmt.Sprint(owned), func(t *testing.T) {
			q := newQueue(t, storagetest.Open(t), &eventual.QueueOptions{Shards: shards})
			used := map[int]bool{}
			for range each {
				for p := range partitions {
					options := &eventual.SendOptions{}
					if owned {
						options.Partition = fmt.Sprint("department ", p)
						used[q.Shard(options.Partition)] = true
					}
					assert.Must[string](t)(q.Send(t.Context(), "write", fmt.Sprint("department ", p), options))
				}
			}
			if owned && len(used) < 3 {
				t.Fatalf("all partitions are on %d shards", len(used))
			}
			seen := &handledBy{workers: map[string]map[string]int{}, running: map[string]int{}}
			var all sync.WaitGroup
			for shard := range shards {
				w := newWorker(t, q, seen.handlers(fmt.Sprint("worker ", shard)), &eventual.WorkerOptions{Shards: []int{shard}, Concurrency: 1})
				all.Go(func() {
					assert.NoError(t, assert.Err(w.Drain(t.Context())))
				})
			}
			all.Wait()
			total, several := 0, 0
			for _, workers := range seen.workers {
				if len(workers) > 1 {
					several++
				}
				for _, n := range workers {
					total += n
				}
			}
			if total != partitions*each {
				t.Errorf("%d of %d messages were handled", total, partitions*each)
			}
			if owned && (several != 0 || seen.most != 1) {
				t.Errorf("%d partitions have several workers, and %d handlers had a partition at a time: %v", several, seen.most, seen.workers)
			}
			if !owned && several == 0 {
				t.Error("messages without a Partition stay together: the test compares nothing")
			}
		})
	}
}

// TestOwnersOfOneShard: a message whose worker has died is not handled by a worker of other shards, and by one of its shard once it is
// visible again; two workers of one shard handle each message once, since they hold leases.
func TestOwnersOfOneShard(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	q := newQueue(t, s, &eventual.QueueOptions{Shards: 3, VisibilityTimeout: 10 * time.Second})
	const partition = "Sales"
	own, other := q.Shard(partition), []int{}
	for shard := range 3 {
		if shard != own {
			other = append(other, shard)
		}
	}
	for range 40 {
		assert.Must[string](t)(q.Send(t.Context(), "write", partition, &eventual.SendOptions{Partition: partition}))
	}
	// The process that gets the first 32 messages dies: they stay hidden for the visibility timeout.
	most, hidden := int32(32), int32(10)
	answer, err := storageQueue(q, fmt.Sprint("-", own)).DequeueMessages(t.Context(), &azqueue.DequeueMessagesOptions{NumberOfMessages: &most, VisibilityTimeout: &hidden})
	assert.Check(t, err)
	dead := len(answer.Messages)
	drained := func(workers ...[]int) (handled []int) {
		seen := &handledBy{workers: map[string]map[string]int{}, running: map[string]int{}}
		handled = make([]int, len(workers))
		var all sync.WaitGroup
		for i, shards := range workers {
			w := newWorker(t, q, seen.handlers(fmt.Sprint(i)), &eventual.WorkerOptions{Shards: shards})
			all.Go(func() {
				n, err := w.Drain(t.Context())
				if handled[i] = n; err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		return handled
	}
	if got := drained(other); got[0] != 0 {
		t.Errorf("a worker of other shards has handled %d messages", got[0])
	}
	if got := drained([]int{own}, nil); got[0]+got[1] != 40-dead {
		t.Errorf("two workers of the shard have handled %v, want %d together", got, 40-dead)
	}
	s.Wait(11 * time.Second)
	if got := drained(other); got[0] != 0 {
		t.Errorf("a worker of other shards has handled %d messages of a dead one", got[0])
	}
	if got := drained([]int{own}, []int{own}); got[0]+got[1] != dead {
		t.Errorf("two workers of the shard have handled %v, want %d together", got, dead)
	}
}

// TestShardsThatAreNone: shards that the queue does not have, or that are named twice, are refused.
func TestShardsThatAreNone(t *testing.T) {
	q := newQueue(t, storagetest.Simulator(t, nil), &eventual.QueueOptions{Shards: 3})
	for _, shards := range [][]int{{}, {-1}, {3}, {0, 1, 0}} {
		assert.ErrorIs(t, assert.Err(eventual.NewWorker(q, nil, &eventual.WorkerOptions{Shards: shards})), tables.ErrWiring, shards)
	}
	given := []int{2, 0}
	assert.Must[*eventual.Worker](t)(eventual.NewWorker(q, nil, &eventual.WorkerOptions{Shards: given}))
	assert.Slices(t, given, []int{2, 0}, "the caller's slice was changed")
}

// TestPartitionsAreSpread uses keys of one form, whose characters repeat: a hash of low bits alone would leave shards empty.
func TestPartitionsAreSpread(t *testing.T) {
	for _, shards := range []int{2, 4, 8} {
		q := newQueue(t, storagetest.Open(t), &eventual.QueueOptions{Shards: shards})
		counts := make([]int, shards)
		for letter := range 26 {
			for digit := range 10 {
				part := fmt.Sprintf("%c%d", 'a'+letter, digit)
				counts[q.Shard(part+"-"+part)]++
			}
		}
		for shard, n := range counts {
			if even := 260 / shards; n < even/2 || n > 2*even {
				t.Errorf("%d shards: shard %d has %d of 260 partitions", shards, shard, n)
			}
		}
	}
}
