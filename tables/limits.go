package tables

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rows"
)

// The service's limits, checked before any request.
const (
	MaxProperties            = edm.MaxProperties  // custom properties an entity, the library's own among them
	MaxEntitySize            = edm.MaxEntitySize  // bytes an entity, by the service's formula
	MaxStringUnits           = edm.MaxStringUnits // UTF-16 code units a string property
	MaxBinarySize            = edm.MaxBinarySize  // bytes a binary property
	MaxTransactionOperations = edm.MaxBatchOps    // operations an entity group transaction
	MaxTransactionSize       = edm.MaxBatchBytes  // bytes an entity group transaction, as sent
	MaxPageSize              = edm.MaxPageSize    // entities an answer to a query
	MaxFilterComparisons     = edm.MaxComparisons // comparisons a filter
)

func isSizeError(err error) bool {
	var size *edm.SizeError
	return errors.As(err, &size)
}

// checkRow returns the size of a row in bytes, and refuses one that the service would not store.
func checkRow(key Key, properties, system Properties) (size int, err error) {
	if err := key.check(); err != nil {
		return 0, err
	}
	size = edm.KeySize(key.Partition, key.Row)
	for _, list := range [...]Properties{properties, system} {
		for i := range list {
			p := &list[i]
			if err := checkProperty(p); err != nil {
				return 0, err
			}
			size += edm.PropertySize(p.Name, edm.Value(p.Value))
		}
		if err := checkRepeats(list); err != nil {
			return 0, err
		}
	}
	if n := len(properties) + len(system); n > MaxProperties {
		return 0, sizeOf("an entity", n, MaxProperties, "properties")
	}
	if size > MaxEntitySize {
		return 0, sizeOf("an entity", size, MaxEntitySize, "bytes")
	}
	return size, nil
}

func checkProperty(p *Property) error {
	if !edm.IsPlainName(p.Name) {
		if err := edm.CheckName(p.Name); err != nil {
			return err
		}
	}
	switch p.Name {
	case "PartitionKey", "RowKey", "Timestamp":
		return fmt.Errorf("%s is no custom property", p.Name)
	}
	if err := edm.Value(p.Value).Check(); err != nil {
		return fmt.Errorf("property %s: %w", p.Name, err)
	}
	return nil
}

// checkRepeats compares neighbours by hand while there are few, since that allocates nothing.
func checkRepeats(properties Properties) error {
	if len(properties) <= 16 {
		for i := range properties {
			for j := range i {
				if properties[i].Name == properties[j].Name {
					return fmt.Errorf("property %s is there twice", properties[i].Name)
				}
			}
		}
		return nil
	}
	seen := make(map[string]struct{}, len(properties))
	for i := range properties {
		if _, twice := seen[properties[i].Name]; twice {
			return fmt.Errorf("property %s is there twice", properties[i].Name)
		}
		seen[properties[i].Name] = struct{}{}
	}
	return nil
}

// checkReserved refuses the library's own names in what the caller gives.
func checkReserved(properties Properties) error {
	for i := range properties {
		if strings.HasPrefix(properties[i].Name, rows.Prefix) {
			return fmt.Errorf("property %s: names with prefix %s are the library's", properties[i].Name, rows.Prefix)
		}
	}
	return nil
}

func sizeOf(what string, size, limit int, unit string) error {
	return &edm.SizeError{What: what, Size: size, Limit: limit, Unit: unit}
}
