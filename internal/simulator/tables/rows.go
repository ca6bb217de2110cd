package tables

import (
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/entity"
)

// Row is a stored entity as a test sees it.
type Row struct {
	PartitionKey, RowKey string
	ETag                 string
	Timestamp            time.Time
	Properties           map[string]edm.Value
}

// Rows returns all rows of a table as they are at one moment, in the order of their keys; nil for a table that is not there.
func (s *Service) Rows(tableName string) []Row {
	s.mu.Lock()
	t, fault := s.find(tableName)
	var entities []*entity.Stored
	if fault == nil {
		entities = slices.Collect(t.rows.All())
	}
	s.mu.Unlock()
	if fault != nil {
		return nil
	}
	rows := make([]Row, len(entities))
	for i, e := range entities {
		at, _ := e.Timestamp.Time()
		rows[i] = Row{PartitionKey: e.Partition, RowKey: e.Row, ETag: e.ETag, Timestamp: at, Properties: make(map[string]edm.Value, len(e.Properties))}
		for _, p := range e.Properties {
			rows[i].Properties[p.Name] = p.Value
		}
	}
	return rows
}
