package storagetest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/tablepatterns/tablepatterns/storagetest"
)

func TestAzuriteServesTablesQueuesAndBlobs(t *testing.T) {
	svc := azurite(t)
	ctx := t.Context()
	tables, err := aztables.NewServiceClientFromConnectionString(svc.ConnectionString, nil)
	check(t, err)
	_, err = tables.CreateTable(ctx, svc.TableName(t), nil)
	check(t, err)
	queues, err := azqueue.NewServiceClientFromConnectionString(svc.ConnectionString, nil)
	check(t, err)
	_, err = queues.CreateQueue(ctx, svc.QueueName(t), nil)
	check(t, err)
	blobs, err := azblob.NewClientFromConnectionString(svc.ConnectionString, nil)
	check(t, err)
	_, err = blobs.CreateContainer(ctx, svc.ContainerName(t), nil)
	check(t, err)
}

func TestAzuriteIsOneForTheTestBinary(t *testing.T) {
	if a, b := azurite(t), azurite(t); a.ConnectionString != b.ConnectionString {
		t.Errorf("two services: %v and %v", a, b)
	}
}

// A service named by the environment variable outlives the tests, so what they name there is deleted.
func TestAccountOfTheEnvironment(t *testing.T) {
	server := start(t, nil)
	t.Setenv(storagetest.ConnectionStringVariable, server.ConnectionString())

	tables, err := aztables.NewServiceClientFromConnectionString(server.ConnectionString(), nil)
	check(t, err)
	queues, err := azqueue.NewServiceClientFromConnectionString(server.ConnectionString(), nil)
	check(t, err)
	blobs, err := azblob.NewClientFromConnectionString(server.ConnectionString(), nil)
	check(t, err)
	t.Run("uses", func(t *testing.T) {
		svc := storagetest.Azurite(t)
		if svc.ConnectionString != server.ConnectionString() {
			t.Fatal("the variable is not used")
		}
		_, err := tables.CreateTable(t.Context(), svc.TableName(t), nil)
		check(t, err)
		_, err = queues.CreateQueue(t.Context(), svc.QueueName(t), nil)
		check(t, err)
		_, err = blobs.CreateContainer(t.Context(), svc.ContainerName(t), nil)
		check(t, err)
		svc.TableName(t) // named, never created: nothing to delete, and no complaint
	})
	tablePage, err := tables.NewListTablesPager(nil).NextPage(t.Context())
	check(t, err)
	queuePage, err := queues.NewListQueuesPager(nil).NextPage(t.Context())
	check(t, err)
	blobPage, err := blobs.NewListContainersPager(nil).NextPage(t.Context())
	check(t, err)
	if n := len(tablePage.Tables) + len(queuePage.Queues) + len(blobPage.ContainerItems); n != 0 {
		t.Errorf("%d tables, queues and containers are left", n)
	}
}

// azurite is the Azurite of this test binary.
func azurite(t testing.TB) *storagetest.Service {
	t.Helper()
	storagetest.AzuriteOnly(t)
	return storagetest.Azurite(t)
}

// sharedAzurite is azurite for a test that is about Azurite whatever account the environment names.
func sharedAzurite(t testing.TB) *storagetest.Service {
	t.Helper()
	storagetest.AzuriteOnly(t)
	s, err := storagetest.Shared()
	check(t, err)
	return s
}

// start runs an Azurite of the test's own.
func start(t *testing.T, o *storagetest.AzuriteOptions) *storagetest.AzuriteServer {
	t.Helper()
	storagetest.AzuriteOnly(t)
	server, err := storagetest.StartAzurite(t.Context(), o)
	check(t, err)
	t.Cleanup(func() { check(t, server.Stop()) })
	return server
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// setting is the value of one setting of a connection string.
func setting(t testing.TB, connectionString, name string) string {
	t.Helper()
	for part := range strings.SplitSeq(connectionString, ";") {
		if value, ok := strings.CutPrefix(part, name+"="); ok {
			return value
		}
	}
	t.Fatalf("connection string without %s", name)
	return ""
}

// tableNames lists the tables of a service.
func tableNames(ctx context.Context, t *testing.T, connectionString string) []string {
	t.Helper()
	tables, err := aztables.NewServiceClientFromConnectionString(connectionString, nil)
	check(t, err)
	page, err := tables.NewListTablesPager(nil).NextPage(ctx)
	check(t, err)
	var names []string
	for _, table := range page.Tables {
		names = append(names, *table.Name)
	}
	return names
}
