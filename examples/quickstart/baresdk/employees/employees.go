// Package employees keeps employees, and finds them by email, by the official SDK alone.
package employees

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// Employee is a row of the table Employees.
type Employee struct {
	PartitionKey, RowKey string
	Department           string
	ID                   int
	Email                string
}

// emailRow is the row under the email; it says where the employee is.
type emailRow struct {
	PartitionKey, RowKey string
	Department           string
	ID                   int
}

// Create creates the two tables if they do not exist.
func Create(ctx context.Context, service *aztables.ServiceClient) error {
	for _, table := range []string{"Employees", "Emails"} {
		if _, err := service.CreateTable(ctx, table, nil); err != nil && !hasCode(err, aztables.TableAlreadyExists) {
			return err
		}
	}
	return nil
}

// Insert takes the email first, so that two employees cannot get it, and then stores the employee.
func Insert(ctx context.Context, service *aztables.ServiceClient, e Employee) error {
	e.PartitionKey, e.RowKey = e.Department, rowKey(e.ID)
	email := emailRow{PartitionKey: "email", RowKey: strings.ToLower(e.Email), Department: e.Department, ID: e.ID}
	if err := add(ctx, service.NewClient("Emails"), email); err != nil {
		return err // also if the SDK has repeated an insert whose answer was lost: the email is then taken for good
	}
	err := add(ctx, service.NewClient("Employees"), e) // if the process ends before this, the email is taken for good, too
	if hasCode(err, aztables.EntityAlreadyExists) {
		_, undo := service.NewClient("Emails").DeleteEntity(ctx, email.PartitionKey, email.RowKey, nil)
		return errors.Join(err, undo)
	}
	return err
}

// FindByEmail reads the row under the email, and then the employee.
func FindByEmail(ctx context.Context, service *aztables.ServiceClient, address string) (Employee, error) {
	var email emailRow
	if err := get(ctx, service.NewClient("Emails"), "email", strings.ToLower(address), &email); err != nil {
		return Employee{}, err
	}
	var e Employee
	err := get(ctx, service.NewClient("Employees"), email.Department, rowKey(email.ID), &e)
	return e, err
}

func rowKey(id int) string { return fmt.Sprintf("empid_%06d", id) }

func add(ctx context.Context, client *aztables.Client, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = client.AddEntity(ctx, body, nil)
	return err
}

func get(ctx context.Context, client *aztables.Client, partition, row string, v any) error {
	answer, err := client.GetEntity(ctx, partition, row, nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(answer.Value, v)
}

func hasCode(err error, code aztables.TableErrorCode) bool {
	var refused *azcore.ResponseError
	return errors.As(err, &refused) && refused.ErrorCode == string(code)
}
