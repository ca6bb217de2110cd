package scatter

import (
	"cmp"
	"container/heap"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
)

// PartitionTarget is the service's scalability target for a partition, in entities a second.
const PartitionTarget = 2000

// MeterOptions are the options of NewMeter; nil is the same as the zero value.
type MeterOptions struct {
	// Target is the number of entities a second that a partition can take (default PartitionTarget, 2,000).
	Target int
	// Hot is the share of the target at which a partition counts as hot (default 0.8).
	Hot float64
	// Seconds is how many seconds the meter looks back (default 10).
	Seconds int
	// Partitions is how many partitions are counted separately within a second (default 1,024).
	Partitions int
	// Now is the clock (default time.Now).
	Now func() time.Time
}

// Meter counts the entities that this program writes to each partition in each of the last seconds, with at most
// Seconds × Partitions counters of about 200 bytes. It is safe for concurrent use.
//
// If a second has more partitions than counters, the least written partition's counter is reused. So a count can
// be too high, by at most Load.Over, and is never too low for a partition that has a counter. Every partition
// with more than 1/Partitions of a second's writes has one.
type Meter struct {
	options MeterOptions

	mu      sync.Mutex
	seconds []second // a ring: Unix second s is at seconds[s mod len]
	latest  int64
}

// Load describes the writes to one partition.
type Load struct {
	Partition string
	Peak      int     // entities in its busiest second
	Over      int     // maximum error of Peak, which is never too low
	Total     int     // entities in all seconds that the meter looks back
	Share     float64 // share of the target in the busiest second
}

// NewMeter makes a meter. It returns tables.ErrWiring for invalid options.
func NewMeter(options *MeterOptions) (*Meter, error) {
	var o MeterOptions
	if options != nil {
		o = *options
	}
	if o.Target < 0 || o.Hot < 0 || o.Seconds < 0 || o.Partitions < 0 {
		return nil, miswired("NewMeter", nil, fmt.Errorf("MeterOptions.Target is %d, Hot %v, Seconds %d and Partitions %d; each must be 0 (meaning the default) or more", o.Target, o.Hot, o.Seconds, o.Partitions))
	}
	o.Target, o.Hot = cmp.Or(o.Target, PartitionTarget), cmp.Or(o.Hot, 0.8)
	o.Seconds, o.Partitions = cmp.Or(o.Seconds, 10), cmp.Or(o.Partitions, 1024)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Meter{options: o, seconds: make([]second, o.Seconds)}, nil
}

// Add counts entities that the program writes to a partition.
func (m *Meter) Add(partition string, entities int) {
	if entities <= 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.second(m.now()).add(partition, entities, m.options.Partitions)
}

func (m *Meter) second(at int64) *second {
	n := int64(len(m.seconds))
	return &m.seconds[(at%n+n)%n]
}

// now moves the ring on to the current second, and returns that second. If the clock steps back by no more than the
// ring holds, writes count toward the latest second; if it steps back further, the meter resets.
func (m *Meter) now() int64 {
	now, length := m.options.Now().Unix(), int64(len(m.seconds))
	if now < m.latest && m.latest-now <= length {
		return m.latest
	}
	gone := length
	if now >= m.latest {
		gone = min(now-m.latest, length)
	}
	for i := range gone {
		*m.second(now - i) = second{}
	}
	m.latest = now
	return now
}

// Loads returns the partitions that were written to, the busiest first.
func (m *Meter) Loads() []Load {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now()
	loads := map[string]*Load{}
	for i := range m.seconds {
		for _, c := range m.seconds[i].counters {
			l := loads[c.partition]
			if l == nil {
				l = &Load{Partition: c.partition}
				loads[c.partition] = l
			}
			l.Total += c.entities
			if c.entities > l.Peak {
				l.Peak, l.Over = c.entities, c.over
			}
		}
	}
	all := make([]Load, 0, len(loads))
	for l := range maps.Values(loads) {
		l.Share = float64(l.Peak) / float64(m.options.Target)
		all = append(all, *l)
	}
	slices.SortFunc(all, func(a, b Load) int {
		return cmp.Or(cmp.Compare(b.Peak, a.Peak), cmp.Compare(b.Total, a.Total), compoundkey.Compare(a.Partition, b.Partition))
	})
	return all
}

// Hot returns the partitions whose busiest second reached MeterOptions.Hot of the target, the busiest first.
func (m *Meter) Hot() []Load {
	loads := m.Loads()
	hot := slices.IndexFunc(loads, func(l Load) bool { return l.Share < m.options.Hot })
	if hot < 0 {
		return loads
	}
	return loads[:hot]
}

// Enough returns the number of partitions over which the busiest second's writes must be spread evenly so that none
// is hot, at least 1. Multiply it by the number of programs that write as much as this one to get an n for Resize.
func (m *Meter) Enough() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now()
	most := 0
	for i := range m.seconds {
		most = max(most, m.seconds[i].total)
	}
	// The result makes the writes to each partition just less than the hot share.
	return 1 + int(math.Floor(float64(most)/(m.options.Hot*float64(m.options.Target))))
}

// second counts the writes of one second by the Space-Saving summary of Metwally, Agrawal and El Abbadi.
type second struct {
	total    int
	counters counters // a heap, the smallest count first
	by       map[string]*counter
}

type counter struct {
	partition string
	entities  int
	over      int // how much of entities may belong to partitions that had the counter before
	index     int
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

func (h *counters) Push(x any) {
	c := x.(*counter)
	c.index = len(*h)
	*h = append(*h, c)
}

func (h *counters) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	*h = (*h)[:last]
	return c
}
