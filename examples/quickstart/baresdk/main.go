// Command baresdk does by the official SDK alone what examples/quickstart does with this library: it stores an employee, and finds her
// by an email that only one employee can have. README.md compares the two; a test of examples/quickstart counts and breaks both.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/examples/quickstart/baresdk/employees"
)

func main() {
	service, err := aztables.NewServiceClientFromConnectionString(os.Getenv("AZURE_STORAGE_CONNECTION_STRING"), nil)
	if err == nil {
		err = run(context.Background(), service)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, service *aztables.ServiceClient) error {
	if err := employees.Create(ctx, service); err != nil {
		return err
	}
	if err := employees.Insert(ctx, service, employees.Employee{Department: "Sales", ID: 223, Email: "June@contoso.com"}); err != nil {
		return err
	}
	june, err := employees.FindByEmail(ctx, service, "june@contoso.com")
	if err != nil {
		return err
	}
	fmt.Println("found", june.Department, june.ID)
	return nil
}
