package inspect

import (
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// cost adds up the requests of a Rebuild, page by page, by the rules in the comment of Repository.Rebuild.
type cost struct {
	pageSize int64 // of Rebuild's scan
	perSet   int64 // entities in a change set

	read int64 // rows that Rebuild reads
	fill int64

	sets      map[string]int64 // entities of this page that Rebuild writes again, by partition
	reconcile int64            // entities that lack only facts outside of their partition
	outside   map[spot]int64   // outside copies, by table and partition
	lists     map[spot]bool    // lists that a change in the entity's partition reads first
	effects   int64            // facts

	least, most Requests
}

// mostReconciled is the maximum under one intent.
const mostReconciled = 250

func newCost(all []*driver.Implementation) *cost {
	c := &cost{pageSize: tables.MaxPageSize, perSet: tables.MaxTransactionOperations, sets: map[string]int64{}, outside: map[spot]int64{}, lists: map[spot]bool{}}
	copies := int64(0)
	for _, p := range all {
		if p.Copies != nil {
			copies++
		}
		if p.Layout != nil || p.Transform != nil && p.Transform.Stage == driver.StageSpill {
			c.pageSize = 50
		}
	}
	c.perSet /= 1 + copies
	return c
}

// lack is what patterns still have to store for an entity.
type lack struct {
	copies  int      // in its partition
	lists   []string // in its partition, which a change reads and writes
	outside []wanted // copies in other partitions
	facts   int      // lists and other facts in other partitions
}

func (c *cost) entity(partition string, l lack) {
	again, effects := l.copies+len(l.lists) > 0, l.facts > 0
	if !again && !effects && len(l.outside) == 0 {
		return
	}
	c.fill++
	switch {
	case again:
		c.sets[partition]++
	case effects:
		c.reconcile++
	}
	for _, list := range l.lists {
		c.lists[spot{key: tables.Key{Partition: partition, Row: list}}] = true
	}
	for _, w := range l.outside {
		c.outside[spot{w.table, tables.Key{Partition: w.key.Partition}}]++
	}
	c.effects += int64(l.facts)
	// most counts each entity alone: 1 transaction; 2 requests of the queue and 2 of the table for an intent; 8 for each outside copy, of which 2
	// write it and the others read it and the entity; 2 for each list of its partition; 3 for each fact elsewhere.
	if again {
		c.most.Table += 1 + 2*int64(len(l.lists))
	}
	if effects {
		c.most.Queue += 2
		c.most.Table += 2
	}
	c.most.Table += 8 * int64(len(l.outside))
	c.most.Table += 3 * int64(l.facts)
}

func (c *cost) page() {
	sets := int64(0)
	for _, n := range c.sets {
		sets += ceil(n, c.perSet)
	}
	c.least.Table += sets + int64(len(c.lists))
	intents := ceil(c.reconcile, mostReconciled)
	if c.effects > 0 {
		intents += sets
	}
	c.least.Queue += 2 * intents
	c.least.Table += intents // Rebuild reads the entities again
	for _, n := range c.outside {
		c.least.Table += 2 * ceil(n, tables.MaxTransactionOperations) // transactions mark the copies, and settle them
	}
	if len(c.outside) > 0 {
		c.least.Table++ // the entities are read again between the two
	}
	clear(c.sets)
	clear(c.outside)
	clear(c.lists)
	c.reconcile, c.effects = 0, 0
}

func (c *cost) report(prices Prices) Cost {
	pages := max(1, ceil(c.read, c.pageSize))
	sum := func(r Requests) Requests {
		r.Table += pages
		r.Price = (float64(r.Table)*prices.Table + float64(r.Queue)*prices.Queue) / 10_000
		return r
	}
	return Cost{Fill: c.fill, Least: sum(c.least), Most: sum(c.most), Prices: prices}
}

func ceil(n, by int64) int64 { return (n + by - 1) / by }
