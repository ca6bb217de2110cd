package storagetest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

func TestAzuriteServesTablesQueuesAndBlobs(t *testing.T) {
	svc := azurite(t)
	ctx := t.Context()
	tables := assert.Must[*aztables.ServiceClient](t)(aztables.NewServiceClientFromConnectionString(svc.ConnectionString, nil))
	check(t, assert.Err(tables.CreateTable(ctx, svc.TableName(t), nil)))
	queues := assert.Must[*azqueue.ServiceClient](t)(azqueue.NewServiceClientFromConnectionString(svc.ConnectionString, nil))
	check(t, assert.Err(queues.CreateQueue(ctx, svc.QueueName(t), nil)))
	blobs := assert.Must[*azblob.Client](t)(azblob.NewClientFromConnectionString(svc.ConnectionString, nil))
	check(t, assert.Err(blobs.CreateContainer(ctx, svc.ContainerName(t), nil)))
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

	tables := assert.Must[*aztables.ServiceClient](t)(aztables.NewServiceClientFromConnectionString(server.ConnectionString(), nil))
	queues := assert.Must[*azqueue.ServiceClient](t)(azqueue.NewServiceClientFromConnectionString(server.ConnectionString(), nil))
	blobs := assert.Must[*azblob.Client](t)(azblob.NewClientFromConnectionString(server.ConnectionString(), nil))
	t.Run("uses", func(t *testing.T) {
		svc := storagetest.Azurite(t)
		assert.Equal(assert.Fatal(t), svc.ConnectionString, server.ConnectionString(), "the variable is not used")
		check(t, assert.Err(tables.CreateTable(t.Context(), svc.TableName(t), nil)))
		check(t, assert.Err(queues.CreateQueue(t.Context(), svc.QueueName(t), nil)))
		check(t, assert.Err(blobs.CreateContainer(t.Context(), svc.ContainerName(t), nil)))
		svc.TableName(t) // named, never created: nothing to delete, and no complaint
	})
	tablePage := assert.Must[aztables.ListTablesResponse](t)(tables.NewListTablesPager(nil).NextPage(t.Context()))
	queuePage := assert.Must[azqueue.ListQueuesResponse](t)(queues.NewListQueuesPager(nil).NextPage(t.Context()))
	blobPage := assert.Must[azblob.ListContainersResponse](t)(blobs.NewListContainersPager(nil).NextPage(t.Context()))
	assert.Equal(t, len(tablePage.Tables)+len(queuePage.Queues)+len(blobPage.ContainerItems), 0, "tables, queues and containers are left")
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
	s := assert.Must[*storagetest.Service](t)(storagetest.Shared())
	return s
}

// start runs an Azurite of the test's own.
func start(t *testing.T, o *storagetest.AzuriteOptions) *storagetest.AzuriteServer {
	t.Helper()
	storagetest.AzuriteOnly(t)
	server := assert.Must[*storagetest.AzuriteServer](t)(storagetest.StartAzurite(t.Context(), o))
	t.Cleanup(func() { check(t, server.Stop()) })
	return server
}

func check(t testing.TB, err error) {
	t.Helper()
	assert.Check(t, err)
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
	tables := assert.Must[*aztables.ServiceClient](t)(aztables.NewServiceClientFromConnectionString(connectionString, nil))
	page := assert.Must[aztables.ListTablesResponse](t)(tables.NewListTablesPager(nil).NextPage(ctx))
	var names []string
	for _, table := range page.Tables {
		names = append(names, *table.Name)
	}
	return names
}
