package storagetest

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
)

// cleanupTime bounds the deletion of one table, queue or container.
const cleanupTime = 30 * time.Second

// deleteAtEnd calls del with name when the test ends, if the account outlives the test. A failed deletion is logged
// and does not fail the test, which has finished its checks.
func (s *Service) deleteAtEnd(t testing.TB, del func(context.Context, string, string) error, name string) {
	if !s.keep {
		return // this Azurite ends with the test binary, so there is nothing to delete
	}
	t.Cleanup(func() {
		// Do not use t.Context(), which is already cancelled when clean-up functions run.
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTime)
		defer cancel()
		if reason := failure(del(ctx, s.ConnectionString, name)); reason != "" {
			t.Logf("storagetest: %q is left on the account: %s", name, reason)
		}
	})
}

// failure returns why a deletion failed, or "" if it succeeded or there was nothing to delete. It does not
// use the error's own text, which can contain an address with a shared access signature.
func failure(err error) string {
	var answer *azcore.ResponseError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound:
		return ""
	case errors.As(err, &answer):
		return "the service answered " + http.StatusText(answer.StatusCode) + " " + answer.ErrorCode
	default:
		return "the request got no answer"
	}
}

func deleteTable(ctx context.Context, connectionString, name string) error {
	client, err := aztables.NewServiceClientFromConnectionString(connectionString, nil)
	if err != nil {
		return err
	}
	_, err = client.DeleteTable(ctx, name, nil)
	return err
}

func deleteQueue(ctx context.Context, connectionString, name string) error {
	client, err := azqueue.NewServiceClientFromConnectionString(connectionString, nil)
	if err != nil {
		return err
	}
	_, err = client.DeleteQueue(ctx, name, nil)
	return err
}

func deleteContainer(ctx context.Context, connectionString, name string) error {
	client, err := azblob.NewClientFromConnectionString(connectionString, nil)
	if err != nil {
		return err
	}
	_, err = client.DeleteContainer(ctx, name, nil)
	return err
}
