package storagetest_test

import (
	"context"
	"log"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/storagetest"
)

// A test asks for the service and for names of its own; there is nothing else to set up or take down. docs/howto/testing.md
// shows this one.
func TestEmployees(t *testing.T) {
	svc := storagetest.Open(t)
	options := &aztables.ClientOptions{ClientOptions: svc.ClientOptions}
	client, err := aztables.NewServiceClientFromConnectionString(svc.ConnectionString, options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CreateTable(t.Context(), svc.TableName(t), nil); err != nil {
		t.Fatal(err)
	}
}

// A program starts an Azurite of its own and stops it when it is done.
func ExampleStartAzurite() {
	ctx := context.Background()
	server, err := storagetest.StartAzurite(ctx, &storagetest.AzuriteOptions{
		Progress: func(message string) { log.Print(message) },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()

	client, err := aztables.NewServiceClientFromConnectionString(server.ConnectionString(), nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.CreateTable(ctx, "Employees", nil); err != nil {
		log.Fatal(err)
	}
}

// An Example with an Output comment would want its Azurite in a suite on the simulator, too.
func TestExampleStartAzurite(t *testing.T) {
	storagetest.AzuriteOnly(t)
	ExampleStartAzurite()
}
