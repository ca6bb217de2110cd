package scatter

import "container/heap"

// second counts the writes of one second. The counts of the heaviest partitions are exact or too high: the
// Space-Saving summary of Metwally, Agrawal and El Abbadi.
type second struct {
	total    int
	counters counters // a heap, the smallest count first
	by       map[string]*counter
}

type counter struct {
	partition string
	entities  int
	over      int // the count of the partition that had the counter before
	index     int // index in the heap
}

func (s *second) add(partition string, entities, most int) {
	s.total += entities
	if c := s.by[partition]; c != nil {
		c.entities += entities
		heap.Fix(&s.counters, c.index)
		return
	}
	if s.by == nil {
		s.by = map[string]*counter{}
	}
	if len(s.counters) < most {
		c := &counter{partition: partition, entities: entities}
		s.by[partition] = c
		heap.Push(&s.counters, c)
		return
	}
	c := s.counters[0]
	delete(s.by, c.partition)
	c.partition, c.over, c.entities = partition, c.entities, c.entities+entities
	s.by[partition] = c
	heap.Fix(&s.counters, 0)
}

// The methods below implement heap.Interface.
type counters []*counter

func (h counters) Len() int           { return len(h) }
func (h counters) Less(i, j int) bool { return h[i].entities < h[j].entities }
func (h counters) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is for package heap.
func (h *counters) Push(x any) {
	c := x.(*counter)
	c.index = len(*h)
	*h = append(*h, c)
}

// Pop is for package heap.
func (h *counters) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	*h = (*h)[:last]
	return c
}
