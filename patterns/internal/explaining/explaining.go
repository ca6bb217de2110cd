// Package explaining lists the requests of a change, for Repository.Explain.
package explaining

import (
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
)

// Reserved counts the outside keys that the change reserves before it writes the entity.
func Reserved(r *engine.Engine, w *engine.Work) int {
	n := 0
	for _, p := range r.Outside {
		if !engine.Reserves(p) || w.Change.Kind == driver.ChangeDelete {
			continue
		}
		copies, err := w.Change.Copies().Outside(p)
		if err != nil {
			continue // the pattern has reported the same error when it named its outside keys
		}
		for i := range copies {
			if w.Fresh[engine.HeldName(p, driver.JoinKey(copies[i].Key))] {
				n++
			}
		}
	}
	return n
}

// Lines lists the outside keys of an intent.
func Lines(i intents.Intent) []string {
	var lines []string
	for _, m := range i.Members {
		for pattern, keys := range m.Outside {
			for _, key := range keys {
				lines = append(lines, pattern+": "+key)
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// Requests lists the requests of a change in the order in which they are sent.
func Requests(reads, rows int, outside []string, reserved int) []string {
	write := "1 entity group transaction"
	if rows == 1 {
		write = "1 single write"
	}
	var requests []string
	if len(outside) > 0 {
		requests = append(requests, "1 intent put")
	}
	if reserved > 0 {
		requests = append(requests, fmt.Sprintf("%d outside keys reserved", reserved))
	}
	if reads > 0 {
		requests = append(requests, fmt.Sprintf("reads to plan: %d", reads))
	}
	if requests = append(requests, write); len(outside) == 0 {
		return requests
	}
	return append(requests, fmt.Sprintf("%d outside keys reconciled", len(outside)), "1 read again", "1 intent deleted")
}
