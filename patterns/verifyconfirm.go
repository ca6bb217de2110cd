package patterns

import (
	"context"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/pagejob"
	"github.com/tablepatterns/tablepatterns/tables"
)

// candidate is a site at which the scans found a difference between what is required and what is stored.
type candidate struct {
	site
	extraClaims []string // row keys of claims other than the site's own

	tag  string // tag of the last read
	live bool   // at the last read the row was a reservation that could still be filled, so the entity as read at that time does not show the outcome of the change
	etag string // ETag of the entity at the last read, "" for none
	done bool   // the candidate is decided: a finding, or nothing is wrong
	is   *finding
}

// finding is a confirmed discrepancy.
type finding struct {
	Finding
	site        site
	extraClaims []string
	wrongRows   []rowVersion // the wrong rows, each with the ETag under which it is wrong
}

// rowVersion is a row at the version at which it was read. A row that was found wrong stays wrong as long as it has this ETag.
type rowVersion struct {
	key       tables.Key
	etag      string
	misplaced bool // the row is a claim whose row key does not match its content
}

const (
	rounds = 3      // how often a candidate that keeps changing is read
	atOnce = 10_000 // number of candidates that share one wait of Lag
)

// confirm reads each candidate individually and reports those at which something is wrong.
func (v *verifier) confirm(ctx context.Context, all []*candidate) error {
	readable := func(inspect func(context.Context, *candidate) error) func(context.Context, *candidate) error {
		return func(ctx context.Context, s *candidate) error {
			err := inspect(ctx, s)
			if e := engine.AsError(err); e != nil && e.OfRow && v.areas[s.area].auditor == nil {
				s.done, s.is = true, nil // the scan has already reported the row, which cannot be read
				return nil
			}
			return err
		}
	}
	for group := range slices.Chunk(all, atOnce) {
		v.state.Candidates += int64(len(group))
		if err := pagejob.Each(ctx, v.options.Concurrency, group, readable(v.inspectFirst)); err != nil {
			return err
		}
		for range rounds {
			lag := time.Duration(0)
			group = slices.DeleteFunc(group, func(s *candidate) bool { return s.done && s.is == nil })
			for _, s := range group {
				if !s.done {
					lag = max(lag, v.areas[s.area].lag)
				}
			}
			if err := backoff.Sleep(ctx, lag); err != nil {
				return err
			}
			if err := pagejob.Each(ctx, v.options.Concurrency, group, readable(v.inspectAgain)); err != nil {
				return err
			}
		}
		var findings []*finding
		for _, s := range group {
			if s.is != nil {
				findings = append(findings, s.is)
			}
		}
		if err := v.hand(ctx, findings); err != nil {
			return err
		}
		v.progressed()
	}
	return nil
}

// inspectFirst reads a candidate for the first time. A difference that needs no Lag is confirmed at once.
func (v *verifier) inspectFirst(ctx context.Context, s *candidate) error {
	p, err := v.readPlace(ctx, s)
	if err != nil {
		return err
	}
	e, err := v.readEntity(ctx, s.entity)
	if err != nil {
		return err
	}
	if v.compare(s, e, p) == nil {
		s.done = true
		return nil
	}
	s.tag, s.live, s.etag = p.tag(), p.live, e.etag
	if v.areas[s.area].lag == 0 {
		return v.decide(ctx, s, e)
	}
	return nil
}

// inspectAgain reads a candidate again that was wrong before.
func (v *verifier) inspectAgain(ctx context.Context, s *candidate) error {
	if s.done {
		return nil
	}
	e, err := v.readEntity(ctx, s.entity)
	if err != nil {
		return err
	}
	return v.decide(ctx, s, e)
}

// decide reads the place again, after the entity, and decides. The entity was then read between two reads of
// the place. If nothing with an ETag is stored at the place, decide instead reads the entity again, so that
// the place was read between two reads of the entity. If the first and the last of the three reads are equal,
// both states existed at one moment.
func (v *verifier) decide(ctx context.Context, s *candidate, e *seenEntity) error {
	p, err := v.readPlace(ctx, s)
	if err != nil {
		return err
	}
	is := v.compare(s, e, p)
	exact := p.tag() == s.tag
	if is != nil && is.Kind == Spurious && s.live {
		exact = false // the entity may have been read while the reservation could still be filled
	}
	if is != nil && len(p.rows()) == 0 {
		again, err := v.readEntity(ctx, s.entity)
		if err != nil {
			return err
		}
		exact = exact && e.etag == s.etag && again.etag == e.etag
		e = again
	}
	s.tag, s.live, s.etag = p.tag(), p.live, e.etag
	switch {
	case is == nil:
		s.done = true
	case exact:
		s.done, s.is = true, is
	}
	return nil
}
