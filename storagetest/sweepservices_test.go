package storagetest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// The same sweep as the example's, with Azurite behind the faults.
func TestSweepOnAzurite(t *testing.T) {
	storagetest.Sweep(t, storagetest.SweepCase{Floor: 64, World: hireWorld,
		Service: azurite})
}

// copied is an operation over a queue and two tables: an intent, the row, its copy, the intent's end. hasIntent is whether
// it is done right.
func copied(hasIntent bool) func(t testing.TB, s *storagetest.Service) storagetest.World {
	return func(t testing.TB, s *storagetest.Service) storagetest.World {
		check(t, assert.Err(tablesOf(t, s).CreateTable(t.Context(), "Primary", nil)))
		check(t, assert.Err(tablesOf(t, s).CreateTable(t.Context(), "Copies", nil)))
		check(t, assert.Err(queuesOf(t, s).CreateQueue(t.Context(), "intents", nil)))
		return storagetest.World{
			Operate: func(ctx context.Context, s *storagetest.Service) error { return writeBoth(ctx, t, s, hasIntent) },
			Recover: func(ctx context.Context, s *storagetest.Service) error { return workOff(ctx, t, s) },
			Check: func(ctx context.Context, s *storagetest.Service, end storagetest.Ending) error {
				primary, copies := has(ctx, t, s, "Primary"), has(ctx, t, s, "Copies")
				if primary != copies || end.Succeeded() && !primary {
					return fmt.Errorf("in the table: %v, copied: %v", primary, copies)
				}
				return nil
			},
		}
	}
}

func writeBoth(ctx context.Context, t testing.TB, s *storagetest.Service, hasIntent bool) error {
	queue := queuesOf(t, s).NewQueueClient("intents")
	invisible := int32(30)
	var intent azqueue.EnqueueMessagesResponse
	if hasIntent {
		var err error
		if intent, err = queue.EnqueueMessage(ctx, "cA==", &azqueue.EnqueueMessageOptions{VisibilityTimeout: &invisible}); err != nil {
			return err
		}
	}
	for _, table := range []string{"Primary", "Copies"} {
		if _, err := tablesOf(t, s).NewClient(table).UpsertEntity(ctx, entityOf("p", "r", ""), nil); err != nil {
			return err
		}
	}
	if hasIntent {
		_, err := queue.DeleteMessage(ctx, *intent.Messages[0].MessageID, *intent.Messages[0].PopReceipt, nil)
		if !isNotFound(err) {
			return err
		}
	}
	return nil
}

// workOff is a worker that makes the copy agree with the row, once the intents have appeared.
func workOff(ctx context.Context, t testing.TB, s *storagetest.Service) error {
	s.Wait(31 * time.Second)
	queue := queuesOf(t, s).NewQueueClient("intents")
	for {
		got, err := queue.DequeueMessage(ctx, nil)
		if err != nil || len(got.Messages) == 0 {
			return err
		}
		if has(ctx, t, s, "Primary") {
			if _, err := tablesOf(t, s).NewClient("Copies").UpsertEntity(ctx, entityOf("p", "r", ""), nil); err != nil {
				return err
			}
		}
		if _, err := queue.DeleteMessage(ctx, *got.Messages[0].MessageID, *got.Messages[0].PopReceipt, nil); err != nil {
			return err
		}
	}
}

func has(ctx context.Context, t testing.TB, s *storagetest.Service, table string) bool {
	_, err := tablesOf(t, s).NewClient(table).GetEntity(ctx, "p", "r", nil)
	if err != nil && !isNotFound(err) {
		t.Error(err)
	}
	return err == nil
}

func isNotFound(err error) bool {
	var answer *azcore.ResponseError
	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound
}

// A worker's queue, and time that the test lets pass.
func TestSweepWithAWorker(t *testing.T) {
	storagetest.Sweep(t, storagetest.SweepCase{Floor: 116, World: copied(true)})
}

// The same without the intent: what a sweep is for.
func TestSweepFindsAMissingIntent(t *testing.T) {
	points, divergences, said := storagetest.SweepRecorded(t, storagetest.SweepCase{World: copied(false)})
	if points != 56 || divergences == 0 || !strings.Contains(said, "in the table: true, copied: false") {
		t.Errorf("%d points, %d divergences: %s", points, divergences, said)
	}
}
