package submission

import (
	"slices"

	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// unansweredWitnesses is the number of rows that are read if there was no response at all: the service may be
// failing, and without a response no read can prove that the write was not applied.
const unansweredWitnesses = 2

// Witnesses chooses the rows to read after a lost response, among the rows that would have the write ID if
// the write was applied. The refused operation, counted from 1, comes first, then the inserted rows, which
// other writers overwrite least. Another writer may have overwritten any row, so after a refusal it chooses
// all of them.
func Witnesses(operations []wire.Operation, marked []bool, refused int, unanswered bool) []int {
	rank := func(i int) int {
		switch {
		case i+1 == refused:
			return 0
		case operations[i].Verb == wire.VerbInsert:
			return 1
		}
		return 2
	}
	var rows []int
	for i, m := range marked {
		if m {
			rows = append(rows, i)
		}
	}
	slices.SortStableFunc(rows, func(a, b int) int { return rank(a) - rank(b) })
	if unanswered {
		rows = rows[:min(len(rows), unansweredWitnesses)]
	}
	return rows
}
