// Package resource describes what a program needs in a storage account: tables, queues and containers.
package resource

import "context"

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
	Kind  Kind
	Name  string
	Check func(ctx context.Context) error // whether it exists and can be read; 1 request
}
