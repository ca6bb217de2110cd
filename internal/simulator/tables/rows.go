package simulator

import (
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// Row is a stored entity as a test sees it.
type Row struct {
	PartitionKey, RowKey string
	ETag                 string
	Timestamp            time.Time
	Properties           map[string]edm.Value
}

// Rows returns all rows of a table as they are at one moment, in the order of their keys; nil for a table that is not there.
func (s *tableService) Rows(tableName string) []Row {
	s.mu.Lock()
	t, fault := s.find(tableName)
	var entities []*entity
	if fault == nil {
		entities = slices.Collect(t.rows.All())
	}
	s.mu.Unlock()
	if fault != nil {
		return nil
	}
	rows := make([]Row, len(entities))
	for i, e := range entities {
		at, _ := e.timestamp.Time()
		rows[i] = Row{PartitionKey: e.pk, RowKey: e.rk, ETag: e.etag, Timestamp: at, Properties: make(map[string]edm.Value, len(e.properties))}
		for _, p := range e.properties {
			rows[i].Properties[p.name] = p.value
		}
	}
	return rows
}
