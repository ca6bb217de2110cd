// Package resource describes what a program needs in a storage account: tables, queues and containers.
package resource

import (
	"context"
	"fmt"
	"strings"
)

// Kind is the kind of a resource.
type Kind string

// The kinds of resource.
const (
	Table     Kind = "table"
	Queue     Kind = "queue"
	Container Kind = "container"
)

// Role returns the built-in role that writes to resources of the kind.
func (k Kind) Role() string {
	switch k {
	case Table:
		return "Storage Table Data Contributor"
	case Queue:
		return "Storage Queue Data Contributor"
	}
	return "Storage Blob Data Contributor"
}

// Resource is a table, queue or container.
type Resource struct {
	Kind   Kind
	Name   string
	Source string                          // what the account was made from, as Account.Source says it
	Check  func(ctx context.Context) error // returns an error unless the resource exists and can be read; 1 request
}

// CheckName returns an error for a name that the service does not accept for a queue or container.
func CheckName(name string) error {
	if len(name) < 3 || len(name) > 63 {
		return fmt.Errorf("queue or container name %q has %d characters; it must have 3 to 63", name, len(name))
	}
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return fmt.Errorf("queue or container name %q must have only lower-case ASCII letters, digits and hyphens", name)
		}
	}
	if name[0] == '-' || name[len(name)-1] == '-' || strings.Contains(name, "--") {
		return fmt.Errorf("queue or container name %q must not begin or end with a hyphen, nor have two in a row", name)
	}
	return nil
}
