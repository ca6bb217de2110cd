package storagetest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

func tablesOf(t testing.TB, s *storagetest.Service) *aztables.ServiceClient {
	t.Helper()
	c, err := aztables.NewServiceClientFromConnectionString(s.ConnectionString, &aztables.ClientOptions{ClientOptions: s.ClientOptions})
	check(t, err)
	return c
}

func queuesOf(t testing.TB, s *storagetest.Service) *azqueue.ServiceClient {
	t.Helper()
	c, err := azqueue.NewServiceClientFromConnectionString(s.ConnectionString, &azqueue.ClientOptions{ClientOptions: s.ClientOptions})
	check(t, err)
	return c
}

func blobsOf(t testing.TB, s *storagetest.Service) *azblob.Client {
	t.Helper()
	c, err := azblob.NewClientFromConnectionString(s.ConnectionString, &azblob.ClientOptions{ClientOptions: s.ClientOptions})
	check(t, err)
	return c
}

func wantCode(t testing.TB, err error, status int, code string) {
	t.Helper()
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) || answer.StatusCode != status || answer.ErrorCode != code {
		t.Errorf("answered %v, want %d %s", err, status, code)
	}
}

func TestSimulatorServesTablesQueuesAndBlobs(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	ctx := t.Context()
	table := tablesOf(t, s).NewClient(s.TableName(t))
	check(t, assert.Err(table.CreateTable(ctx, nil)))
	check(t, assert.Err(table.AddEntity(ctx, entityOf("Sales", "1", `"Name":"Jones"`), nil)))
	got := assert.Must[aztables.GetEntityResponse](t)(table.GetEntity(ctx, "Sales", "1", nil))
	wantText(t, string(got.Value), "Jones")
	_, err := table.AddEntity(ctx, entityOf("Sales", "1", ""), nil)
	wantCode(t, err, 409, "EntityAlreadyExists")

	queue := queuesOf(t, s).NewQueueClient(s.QueueName(t))
	check(t, assert.Err(queue.Create(ctx, nil)))
	check(t, assert.Err(queue.EnqueueMessage(ctx, "aGVsbG8=", nil)))
	message := assert.Must[azqueue.DequeueMessagesResponse](t)(queue.DequeueMessage(ctx, nil))
	if len(message.Messages) != 1 || *message.Messages[0].MessageText != "aGVsbG8=" {
		t.Errorf("%v", message.Messages)
	}

	blobs, container := blobsOf(t, s), s.ContainerName(t)
	check(t, assert.Err(blobs.CreateContainer(ctx, container, nil)))
	check(t, assert.Err(blobs.UploadBuffer(ctx, container, "b", []byte("content"), nil)))
	buffer := make([]byte, 7)
	if n, err := blobs.DownloadBuffer(ctx, container, "b", buffer, nil); err != nil || string(buffer[:n]) != "content" {
		t.Errorf("%q, %v", buffer, err)
	}
}

func TestSimulatorsAreApart(t *testing.T) {
	a, b := storagetest.Simulator(t, nil), storagetest.Simulator(t, &storagetest.SimulatorOptions{Account: "fabrikam"})
	check(t, assert.Err(tablesOf(t, a).CreateTable(t.Context(), "Employees", nil)))
	page := assert.Must[aztables.ListTablesResponse](t)(tablesOf(t, b).NewListTablesPager(nil).NextPage(t.Context()))
	if len(page.Tables) != 0 || !strings.Contains(b.String(), "fabrikam") || strings.Contains(fmt.Sprintf("%+v", b), b.AccountKey) {
		t.Errorf("%v has %d tables", b, len(page.Tables))
	}
}

func TestSimulatorClockAndChaos(t *testing.T) {
	start := time.Date(2030, 2, 3, 4, 5, 6, 0, time.UTC)
	s := storagetest.Simulator(t, &storagetest.SimulatorOptions{Start: start, Seed: 1})
	ctx := t.Context()
	if now := s.Clock.Now(); !now.Equal(start) {
		t.Errorf("it is %v", now)
	}
	tables := tablesOf(t, s)
	check(t, assert.Err(tables.CreateTable(ctx, "Employees", nil)))
	check(t, assert.Err(tables.DeleteTable(ctx, "Employees", nil)))
	_, err := tables.CreateTable(ctx, "Employees", nil)
	wantCode(t, err, 409, "TableBeingDeleted")
	s.Wait(time.Minute)
	check(t, assert.Err(tables.CreateTable(ctx, "Employees", nil)))

	s.SetChaos(storagetest.Chaos{Busy: 1})
	_, err = tables.CreateTable(ctx, "Departments", nil)
	wantCode(t, err, 503, "ServerBusy")
	s.SetChaos(storagetest.Chaos{})
	check(t, assert.Err(tables.CreateTable(ctx, "Departments", nil)))

	free := storagetest.Simulator(t, &storagetest.SimulatorOptions{TableDeletion: -1, Chaos: storagetest.Chaos{Busy: 1}})
	free.SetChaos(storagetest.Chaos{})
	check(t, assert.Err(tablesOf(t, free).CreateTable(ctx, "Employees", nil)))
	check(t, assert.Err(tablesOf(t, free).DeleteTable(ctx, "Employees", nil)))
	check(t, assert.Err(tablesOf(t, free).CreateTable(ctx, "Employees", nil)))
}

func TestChaosIsForTheSimulator(t *testing.T) {
	s := *storagetest.Simulator(t, nil)
	other := storagetest.Service{ConnectionString: s.ConnectionString}
	defer func() {
		if recover() == nil {
			t.Error("SetChaos on a service that knows none is taken for a calm day")
		}
	}()
	other.SetChaos(storagetest.Chaos{Busy: 1})
}

func TestWaitElsewhereIsReal(t *testing.T) {
	begin := time.Now()
	(&storagetest.Service{}).Wait(20 * time.Millisecond)
	if time.Since(begin) < 20*time.Millisecond {
		t.Error("no time has passed")
	}
}

// What a fault says of the service is so: the simulator, asked by another client, has or has not the entity.
func TestFaultsOnTheSimulator(t *testing.T) {
	for _, c := range []struct {
		fault    storagetest.Injector
		applied  bool
		repeated bool // the SDK's repetition finds what the first attempt left
	}{
		{storagetest.NotSent, false, false}, {storagetest.LostAnswer, true, true}, {storagetest.Applied500, true, true},
		{storagetest.Before500, false, false}, {storagetest.Throttled, false, false},
	} {
		t.Run(c.fault.String(), func(t *testing.T) {
			s := storagetest.Simulator(t, nil)
			table := tablesOf(t, s).NewClient("Employees")
			check(t, assert.Err(table.CreateTable(t.Context(), nil)))

			once, _ := s.WithRetries(0).Faulty(storagetest.Once(storagetest.On(storagetest.InsertEntity, c.fault)))
			_, err := tablesOf(t, once).NewClient("Employees").AddEntity(t.Context(), entityOf("p", "once", ""), nil)
			assert.Error(t, err, "the caller hears nothing of it")
			_, err = table.GetEntity(t.Context(), "p", "once", nil)
			if (err == nil) != c.applied {
				t.Errorf("applied: %v", err == nil)
			}

			again, faults := s.Faulty(storagetest.Once(storagetest.On(storagetest.InsertEntity, c.fault)))
			_, err = tablesOf(t, again).NewClient("Employees").AddEntity(t.Context(), entityOf("p", "again", ""), nil)
			if c.repeated {
				wantCode(t, err, 409, "EntityAlreadyExists")
			} else {
				check(t, err)
			}
			if n := len(faults.Calls()); n != 2 {
				t.Errorf("%d calls: %v", n, faults.Calls())
			}
		})
	}
}

// TestFaultsSpeakTheServicesLanguage: an injected refusal reads like one of the service, for each of the three services.
func TestFaultsSpeakTheServicesLanguage(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	faulty, _ := s.WithRetries(0).Faulty(storagetest.Throttled)
	_, err := tablesOf(t, faulty).CreateTable(t.Context(), "Employees", nil)
	wantCode(t, err, 503, "ServerBusy")
	_, err = queuesOf(t, faulty).CreateQueue(t.Context(), "intents", nil)
	wantCode(t, err, 503, "ServerBusy")
	_, err = blobsOf(t, faulty).CreateContainer(t.Context(), "photos", nil)
	wantCode(t, err, 503, "ServerBusy")
}
