package tables

import (
	"iter"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
)

// InOrder yields rows of one partition in the order of their row keys, for callers that rely on it. From Azure Tables it
// yields them as they are received. From Azure Cosmos DB for Table, which returns rows in no order, it first reads all of
// them into memory.
func (t *Table) InOrder(rows iter.Seq2[*Entity, error]) iter.Seq2[*Entity, error] {
	if !t.account.IsCosmos() {
		return rows
	}
	return func(yield func(*Entity, error) bool) {
		var all []*Entity
		for row, err := range rows {
			if err != nil {
				yield(nil, err)
				return
			}
			all = append(all, row)
		}
		slices.SortFunc(all, func(a, b *Entity) int { return compoundkey.Compare(a.Key.Row, b.Key.Row) })
		for _, row := range all {
			if !yield(row, nil) {
				return
			}
		}
	}
}
