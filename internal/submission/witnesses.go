package submission

import (
	"slices"

	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// unansweredWitnesses is the number of rows that are read when the service gave no answer at all: it may be in trouble, and nothing read
// then could prove that the write was not applied.
const unansweredWitnesses = 2

// Witnesses chooses the rows to read after a lost answer, of those that are marked: they would carry the ID of the write. The refused
// operation, counted from 1, comes first, then the inserted rows, which other writers overwrite least. Any row may have been
// overwritten, so after a refusal all of them are chosen.
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
