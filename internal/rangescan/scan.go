package rangescan

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/odata"
)

// Fetch reads one page of a leg: for an empty token the first page, otherwise the page at which the token
// continues; next is "" after the last one. It calls accept with the key of every row that the service has
// returned, in their order, and must not use a row for which accept returns false.
type Fetch[P any] func(ctx context.Context, leg Leg, token string, accept func(Key) bool) (page P, next string, err error)

// Options say how to read.
type Options struct {
	Readers  int  // the maximum number of requests in flight
	Ordered  bool // deliver pages in the order of keys
	Buffer   int  // the maximum number of pages in memory, including those in flight; 0 means 2 for each reader, and 8 if Ordered
	Together bool // do not divide ranges
}

// buffer returns the number of pages.
func (o *Options) buffer() int {
	switch {
	case o.Buffer > 0:
		return max(o.Buffer, o.Readers)
	case o.Ordered:
		return 8 * o.Readers
	}
	return 2 * o.Readers
}

// State describes what remains of a scan of a list of initial ranges: the rest of the ranges that have begun,
// and the index of the first range that has not.
type State struct {
	Ranges []Range `json:"r,omitempty"`
	Next   int     `json:"n,omitempty"`
}

// Scan is one scan.
type Scan[P any] struct {
	options Options
	initial []Range
	fetch   Fetch[P]

	// Work, if it is set, processes each page before it is yielded, in the goroutine of the page's reader; the page has all rows of the
	// range at. The reader's range can be divided meanwhile. An error of Work ends the scan like an error of Fetch, and the page remains in
	// Rest.
	Work func(ctx context.Context, at Range, page P) error

	mu       sync.Mutex
	changed  sync.Cond
	rulers   rulers
	nodes    []*node[P] // in the order of their keys, without those that are read and delivered
	resumed  []*node[P] // the nodes of the initial State that have no reader yet
	next     int        // index of the first initial range that has not begun
	reserved int        // number of pages in flight and in memory
	pages    int        // number of pages read
	wasted   int        // number of pages that bad guesses have cost
	failed   *node[P]   // of the nodes with an error, the one whose range comes first
	yielded  Range      // range of the page that was yielded last
	stopped  bool
}

// node is a span together with its pages in memory.
type node[P any] struct {
	span
	done  Point // all rows before this point were delivered
	ready []landed[P]
	busy  bool // Work is processing a page
	err   error
}

// empty reports whether the node is read and delivered.
func (n *node[P]) empty() bool { return n.over && n.err == nil && !n.busy && len(n.ready) == 0 }

// landed is a page in memory.
type landed[P any] struct {
	page P
	pos  Point  // all rows of the range before this point were read with this page
	end  *Point // &pos, or nil at the end of the table
}

// New returns a scan that continues from a state; the zero State is the beginning. The ranges must be in the order of their keys and must
// not overlap.
func New[P any](initial []Range, from State, options Options, fetch Fetch[P]) *Scan[P] {
	s := &Scan[P]{options: options, initial: initial, fetch: fetch, next: from.Next}
	s.changed.L = &s.mu
	for _, r := range from.Ranges {
		n := &node[P]{span: span{Range: r}, done: r.From}
		s.nodes = append(s.nodes, n)
	}
	s.resumed = slices.Clone(s.nodes)
	return s
}

// Rest returns what remains after the pages that were yielded, including the current one.
func (s *Scan[P]) Rest() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := State{Next: s.next}
	for _, n := range s.nodes {
		last := len(rest.Ranges) - 1
		switch {
		case n.empty():
		case last >= 0 && rest.Ranges[last].To != nil && rest.Ranges[last].To.Compare(n.done) == 0:
			rest.Ranges[last].To = n.To
		default:
			rest.Ranges = append(rest.Ranges, Range{n.done, n.To})
		}
	}
	return rest
}

// Yielded returns the range of the page that was yielded last: the page had all rows of this range.
func (s *Scan[P]) Yielded() Range {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.yielded
}

// More reports whether anything remains.
func (s *Scan[P]) More() bool {
	rest := s.Rest()
	return len(rest.Ranges) > 0 || rest.Next < len(s.initial)
}

// Pages yields the pages, including those without rows. An error is yielded once, as the last element. It can be called once.
func (s *Scan[P]) Pages(ctx context.Context) iter.Seq2[P, error] {
	return func(yield func(P, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var running sync.WaitGroup
		defer running.Wait()
		defer s.stop(cancel)
		defer context.AfterFunc(ctx, s.wake)()
		for range s.options.Readers {
			running.Go(func() { s.reader(ctx) })
		}
		for {
			page, more, err := s.deliver(ctx)
			if err != nil {
				yield(page, err)
				return
			}
			if !more || !yield(page, nil) {
				return
			}
			s.release()
		}
	}
}

func (s *Scan[P]) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed.Broadcast()
}

func (s *Scan[P]) stop(cancel context.CancelFunc) {
	cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.changed.Broadcast()
}

// release frees the buffer space of a page.
func (s *Scan[P]) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved--
	s.changed.Broadcast()
}

// deliver waits for the next page.
func (s *Scan[P]) deliver(ctx context.Context) (page P, more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if err := ctx.Err(); err != nil {
			return page, false, err
		}
		s.drop()
		if len(s.nodes) == 0 && s.next == len(s.initial) {
			return page, false, nil
		}
		for _, n := range s.nodes {
			if len(n.ready) > 0 {
				first := n.ready[0]
				s.yielded = Range{n.done, first.end}
				n.ready, n.done = slices.Delete(n.ready, 0, 1), first.pos
				return first.page, true, nil
			}
			if n.err != nil {
				return page, false, n.err
			}
			if s.options.Ordered {
				break
			}
		}
		s.changed.Wait()
	}
}

// drop removes the nodes that are read and delivered.
func (s *Scan[P]) drop() {
	s.nodes = slices.DeleteFunc(s.nodes, (*node[P]).empty)
}

// reader reads one range after the other.
func (s *Scan[P]) reader(ctx context.Context) {
	for {
		n := s.take(ctx)
		if n == nil {
			return
		}
		s.read(ctx, n)
	}
}

// take returns the next range to read: a range of the initial State, an initial range, or a part of another
// reader's range. If there is none, it waits; it returns nil if the scan ends.
func (s *Scan[P]) take(ctx context.Context) *node[P] {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.stopped || s.failed != nil || ctx.Err() != nil {
			return nil
		}
		if len(s.resumed) > 0 {
			n := s.resumed[0]
			s.resumed = s.resumed[1:]
			return n
		}
		if s.next < len(s.initial) {
			r := s.initial[s.next]
			s.next++
			n := &node[P]{span: span{Range: r}, done: r.From}
			s.nodes = append(s.nodes, n)
			return n
		}
		if n := s.divide(); n != nil {
			return n
		}
		if !slices.ContainsFunc(s.nodes, func(n *node[P]) bool { return !n.over }) {
			s.changed.Broadcast()
			return nil
		}
		s.changed.Wait()
	}
}

// divide divides the range with the most pages left. With Options.Ordered, it divides the first range that
// has more pages than its share of the memory.
func (s *Scan[P]) divide() *node[P] {
	if s.options.Together || s.wasted > 8*s.options.Readers+s.pages/4 {
		return nil
	}
	ahead := 0.0
	if s.options.Ordered {
		ahead = 0.7 * float64(s.options.buffer()) / float64(s.options.Readers)
	}
	widest, best := -1, division{}
	for i, n := range s.nodes {
		d, ok := s.rulers.divide(&n.span, ahead)
		if !ok {
			continue
		}
		if widest < 0 || d.left > best.left {
			widest, best = i, d
		}
		if ahead > 0 && d.left > ahead+1 {
			break
		}
	}
	if widest < 0 {
		return nil
	}
	upper := &node[P]{span: *s.nodes[widest].split(best.at), done: best.at}
	s.nodes = slices.Insert(s.nodes, widest+1, upper)
	return upper
}

// read reads a range to its end.
func (s *Scan[P]) read(ctx context.Context, n *node[P]) {
	var leg Leg
	token := ""
	for s.reserve(ctx, n) {
		leg, token = s.begin(n, leg, token)
		r := &receipt[P]{scan: s, node: n}
		page, next, err := s.fetch(ctx, leg, token, r.accept)
		if !r.land(ctx, leg, page, next, err) {
			return
		}
		token = next
	}
}

// MaxComparisons is the largest number of comparisons in the filter of a leg.
const MaxComparisons = 3

// Leg is a range, or the first part of a range, that a filter without "or" can select: rows of one partition,
// or whole partitions.
type Leg struct{ Range }

// leg returns the first leg of a range.
func (r Range) leg() Leg {
	if r.single() {
		return Leg{r}
	}
	if !r.From.opens() && r.From.Side != Behind {
		return Leg{Range{r.From, &Point{Partition: r.From.Partition, Side: Behind}}}
	}
	if r.To != nil && r.To.Side != Behind && !r.To.opens() {
		return Leg{Range{r.From, &Point{Partition: r.To.Partition}}}
	}
	return Leg{r}
}

// Filter returns the leg as a filter in the service's language, "" for the whole table. It returns an error if a key cannot be written in a
// filter.
func (l Leg) Filter() (string, error) {
	var terms []odata.Expr
	add := func(property string, op odata.Op, key string) {
		terms = append(terms, odata.Comparison{Property: property, Op: op, Value: edm.String(key)})
	}
	switch from := l.From; {
	case l.single():
		add("PartitionKey", odata.Eq, from.Partition)
		if !from.opens() {
			add("RowKey", [...]odata.Op{Before: odata.Ge, After: odata.Gt}[from.Side], from.Row)
		}
		if l.To.Side != Behind {
			add("RowKey", [...]odata.Op{Before: odata.Lt, After: odata.Le}[l.To.Side], l.To.Row)
		}
		return text(terms)
	case from.Side == Behind:
		add("PartitionKey", odata.Gt, from.Partition)
	case from.Partition != "":
		add("PartitionKey", odata.Ge, from.Partition)
	}
	if l.To != nil {
		op := odata.Lt
		if l.To.Side == Behind {
			op = odata.Le
		}
		add("PartitionKey", op, l.To.Partition)
	}
	return text(terms)
}

func text(terms []odata.Expr) (string, error) {
	printed, err := odata.Append(nil, odata.AllOf(terms...))
	return string(printed), err
}

// Union is a set of rows: ranges in the order of their keys, with gaps between them.
type Union []Range

// With returns the set extended by another range, which must not overlap the set. Ranges that touch become one. It does not change the
// receiver.
func (u Union) With(r Range) Union {
	if r.ends(r.From) {
		return u
	}
	at, _ := slices.BinarySearchFunc(u, r.From, func(s Range, p Point) int { return s.From.Compare(p) })
	all := slices.Insert(slices.Clone(u), at, r)
	if at+1 < len(all) && all[at].To != nil && all[at].To.Compare(all[at+1].From) == 0 {
		all[at].To = all[at+1].To
		all = slices.Delete(all, at+1, at+2)
	}
	if at > 0 && all[at-1].To != nil && all[at-1].To.Compare(all[at].From) == 0 {
		all[at-1].To = all[at].To
		all = slices.Delete(all, at, at+1)
	}
	return all
}

// Covers reports whether the set contains the rows directly after a point.
func (u Union) Covers(p Point) bool {
	return slices.ContainsFunc(u, func(r Range) bool { return r.From.Compare(p) <= 0 && !r.ends(p) })
}

// Valid reports whether the ranges are in the order of their keys and do not overlap.
func (u Union) Valid() bool { return follow(u) }
