package storagetest_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
)

// TestAzuriteAnswersWhileItCollects: while Azurite removes the texts of deleted messages, it goes on answering, and it
// keeps the texts of the others. Azurite by itself answers nothing meanwhile, for a time that grows with the square of the
// number of messages: after 4,000, for more than a minute. To see that takes as long, so only the thorough run has enough
// messages for it.
func TestAzuriteAnswersWhileItCollects(t *testing.T) {
	messages, every := 500, 2*time.Second
	if harness.Thorough() {
		messages, every = 8000, 40*time.Second
	}
	t.Setenv("STORAGETEST_COLLECT_MS", fmt.Sprint(every.Milliseconds()))
	s := start(t, nil).Service()
	service, err := azqueue.NewServiceClientFromConnectionString(s.ConnectionString, &azqueue.ClientOptions{ClientOptions: s.ClientOptions})
	check(t, err)
	queue := service.NewQueueClient(s.QueueName(t))
	_, err = queue.Create(t.Context(), nil)
	check(t, err)
	put := func(text string) *azqueue.EnqueuedMessage {
		answer, err := queue.EnqueueMessage(t.Context(), text, nil)
		if err != nil {
			t.Error(err)
			return &azqueue.EnqueuedMessage{MessageID: new(string), PopReceipt: new(string)}
		}
		return answer.Messages[0]
	}
	const kept = 20
	var writers sync.WaitGroup
	for w := range kept {
		writers.Go(func() {
			put(fmt.Sprint("kept ", w))
			for range messages / kept {
				m := put("deleted")
				assert.NoError(t, assert.Err(queue.DeleteMessage(t.Context(), *m.MessageID, *m.PopReceipt, nil)))
			}
		})
	}
	writers.Wait()
	longest, n := time.Duration(0), 0
	for end := time.Now().Add(2 * every); time.Now().Before(end); n++ {
		began := time.Now()
		check(t, assert.Err(queue.PeekMessages(t.Context(), nil)))
		longest = max(longest, time.Since(began))
	}
	t.Logf("%d messages put and deleted; then %d requests, the longest %v", messages, n, longest)
	if longest > 15*time.Second {
		t.Errorf("a request took %v", longest)
	}
	left, err := queue.DequeueMessages(t.Context(), &azqueue.DequeueMessagesOptions{NumberOfMessages: to.Ptr[int32](32)})
	check(t, err)
	texts := map[string]bool{}
	for _, m := range left.Messages {
		texts[*m.MessageText] = true
	}
	for w := range kept {
		if !texts[fmt.Sprint("kept ", w)] {
			t.Errorf("message %d is not there, or without its text", w)
		}
	}
}
