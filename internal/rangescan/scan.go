package rangescan

import (
	"context"
	"iter"
	"slices"
	"sync"
)

// Fetch reads one page of a leg: for an empty token the first page, otherwise the page at which the token
// continues; next is "" after the last one. It calls accept with the key of every row that the service has
// returned, in their order, and must not use a row for which accept returns false.
type Fetch[P any] func(ctx context.Context, leg Leg, token string, accept func(Key) bool) (page P, next string, err error)

// Options say how to read.
type Options struct {
	Readers  int  // the maximum number of requests in flight
	Ordered  bool // deliver pages in the order of keys
	Buffer   int  // pages in memory, with those in flight, at least Readers; 0 means 2 for each reader, or with Ordered 8 for each
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

// Scan reads ranges of keys with several readers. Pages yields what they read.
type Scan[P any] struct {
	options Options
	initial []Range
	fetch   Fetch[P]

	// Work, if it is set, processes each page before it is yielded, in the goroutine of the page's reader; the page has
	// all rows of the range that Work gets as its second argument. The scan can divide the reader's range while Work
	// runs. An error of Work ends the scan like an error of Fetch, and Rest still includes the page.
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
	pos  Point  // all rows of the range before this point are in this page or an earlier one
	end  *Point // pos, or nil at the end of the table
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

// Rest returns what remains to be read after the pages that were yielded. The page that the caller is processing counts
// as yielded.
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
		defer s.change(func() { s.stopped = true })
		defer cancel()
		defer context.AfterFunc(ctx, func() { s.change(func() {}) })()
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
			s.change(func() { s.reserved-- })
		}
	}
}

// change calls the given function under the lock, and then wakes all goroutines that wait for a change.
func (s *Scan[P]) change(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
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
		before := len(s.nodes)
		if s.nodes = slices.DeleteFunc(s.nodes, (*node[P]).empty); len(s.nodes) < before {
			s.changed.Broadcast() // another node is the first now, whose reader may go on although the buffer is full
		}
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

// reader reads one range after the other, until take returns none.
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

// reserve waits until there is memory for a page. It returns false if the reader must stop.
func (s *Scan[P]) reserve(ctx context.Context, n *node[P]) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		due := s.options.Ordered && s.nodes[0] == n
		switch {
		case n.over || s.stopped || ctx.Err() != nil || s.failed != nil && !(s.options.Ordered && n.From.Compare(s.failed.From) < 0):
			return false
		case s.reserved < s.options.buffer() || due && len(n.ready) < 2:
			s.reserved++
			return true
		}
		s.changed.Wait()
	}
}

// begin returns the leg and the token of a reader's next page: those of the last page if it had a token. But if that page had no row and
// the range has been divided below the end of the leg, begin returns a new leg.
func (s *Scan[P]) begin(n *node[P], leg Leg, token string) (Leg, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if token != "" && !(n.blank && n.To != nil && (leg.To == nil || leg.To.Compare(*n.To) > 0)) {
		return leg, token
	}
	return n.leg(), ""
}

// learnEvery limits the keys from which the scan learns, to save time: one of this many rows, and the last row of a
// page.
const learnEvery = 64

// receipt records what a reader needs to know about a page while it uses the page's rows.
type receipt[P any] struct {
	scan        *Scan[P]
	node        *node[P]
	within      Range // the node's range; the scan does not divide it while the reader uses the page
	rows        int
	first, last Key
	sample      []Key
	past        bool // the response contains a row at or beyond the end of the range
}

// accept reports whether the reader must use a row.
func (r *receipt[P]) accept(k Key) bool {
	if r.rows == 0 && !r.past {
		r.scan.mu.Lock()
		r.node.frozen, r.within = true, r.node.Range
		r.scan.mu.Unlock()
		r.first = k
	}
	if r.past || r.within.To != nil && !r.within.To.covers(k) {
		r.past = true
		return false
	}
	if r.rows%learnEvery == 0 {
		r.sample = append(r.sample, k)
	}
	r.rows++
	r.last = k
	return true
}

// land records a page, calls Work with it, and reports whether the range has further pages.
func (r *receipt[P]) land(ctx context.Context, leg Leg, page P, next string, err error) bool {
	s, n := r.scan, r.node
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed.Broadcast()
	if err != nil {
		return s.fail(n, err)
	}
	for _, k := range r.sample {
		s.rulers.learn(k)
	}
	if r.rows > 0 {
		s.rulers.learn(r.last)
	}
	more, end := next != "", leg.To
	if r.past {
		more, end = false, nil
	}
	s.pages++
	if r.rows > 0 && n.own > 0 && r.last.Partition != n.From.Partition {
		s.rulers.left++
		s.rulers.stayed += n.stay + 1
	}
	before := n.From
	if !n.read(r.first, r.last, r.rows, more, end) {
		s.wasted++
	}
	at := landed[P]{page: page, pos: n.From}
	if at.end = n.To; !n.over {
		end := n.From // not &at.pos, which would keep the page in memory for as long as anybody keeps the range
		at.end = &end
	} else if n.To != nil {
		at.pos = *n.To
	}
	if err := s.work(ctx, n, Range{before, at.end}, page); err != nil {
		return s.fail(n, err)
	}
	n.ready = append(n.ready, at)
	return !n.over
}

// work calls Work for a page of a node. The scan is unlocked during the call.
func (s *Scan[P]) work(ctx context.Context, n *node[P], at Range, page P) error {
	if s.Work == nil {
		return nil
	}
	n.busy = true
	s.changed.Broadcast()
	s.mu.Unlock()
	err := s.Work(ctx, at, page)
	s.mu.Lock()
	n.busy = false
	return err
}

// fail records an error of a node, which ends the scan. It returns false.
func (s *Scan[P]) fail(n *node[P], err error) bool {
	n.err, n.over = err, true
	s.reserved--
	if s.failed == nil || n.From.Compare(s.failed.From) < 0 {
		s.failed = n
	}
	return false
}
