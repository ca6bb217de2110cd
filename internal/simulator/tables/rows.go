package tables

import (
	"slices"

	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/entity"
)

// Rows returns all entities of a table at one moment, in the order of their keys, or none if the table does not exist.
func (s *Service) Rows(tableName string) []*entity.Stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, fault := s.find(tableName)
	if fault != nil {
		return nil
	}
	return slices.Collect(t.rows.All())
}
