package rangescan

import "context"

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

// begin returns the leg and the token of a reader's next page. It continues the last page's leg if that page had a token; but if the page
// had no row and the range has been divided below the end of the leg, it begins a new leg.
func (s *Scan[P]) begin(n *node[P], leg Leg, token string) (Leg, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if token != "" && !(n.blank && n.To != nil && (leg.To == nil || leg.To.Compare(*n.To) > 0)) {
		return leg, token
	}
	return n.leg(), ""
}

// learnEvery is the number of rows of which the scan learns the key of one, to save time.
const learnEvery = 64

// receipt records what a reader needs to know about a page while it uses the page's rows.
type receipt[P any] struct {
	scan        *Scan[P]
	node        *node[P]
	within      Range // the node's range; the scan does not divide it while the reader uses the page
	rows        int
	first, last Key
	sample      []Key
	past        bool // a row at or beyond the end of the range was returned
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
		s.rulers.moved(n.stay + 1)
	}
	before := n.From
	if !n.read(r.first, r.last, r.rows, more, end) {
		s.wasted++
	}
	at := landed[P]{page: page, pos: n.From}
	if at.end = &at.pos; n.over {
		if at.end = n.To; n.To != nil {
			at.pos = *n.To
		}
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
