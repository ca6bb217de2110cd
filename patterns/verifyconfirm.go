package patterns

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/tables"
)

// candidate is a site at which what is asked for and what is stored did not meet in the scans.
type candidate struct {
	site
	extraClaims []string // row keys of claims that are not the site's own

	tag  string // of what was there when it was looked at last
	live bool   // it was a reservation that could still be filled: what the entity was then does not tell what becomes of it
	etag string // of the entity then, "" for none
	done bool   // it is a finding, or nothing is wrong
	is   *finding
}

// finding is a confirmed discrepancy.
type finding struct {
	Discrepancy
	site        site
	extraClaims []string
	evidence    []evidence // the rows that were wrong, each with the ETag that says so
}

// evidence is a row as it was when it was found to be wrong. It is wrong as long as it has the ETag.
type evidence struct {
	key       tables.Key
	etag      string
	misplaced bool // it is a claim that says something else than its name
}

// rounds bounds how often a candidate is looked at that changes all the time.
const rounds = 3

// atOnce is how many candidates share one waiting.
const atOnce = 10_000

// confirm looks at candidates by themselves, and reports those at which something is wrong indeed.
func (v *verifier) confirm(ctx context.Context, all []*candidate) error {
	for group := range slices.Chunk(all, atOnce) {
		v.state.Candidates += int64(len(group))
		if err := each(ctx, v.options.Concurrency, group, v.lookFirst); err != nil {
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
			if err := each(ctx, v.options.Concurrency, group, v.lookAgain); err != nil {
				return err
			}
		}
		var findings []*finding
		for _, s := range group {
			if s.is != nil {
				findings = append(findings, s.is)
			}
		}
		if err := v.report(ctx, findings); err != nil {
			return err
		}
		v.progressed()
	}
	return nil
}

// lookFirst looks at a candidate for the first time. What need not last is confirmed at once.
func (v *verifier) lookFirst(ctx context.Context, s *candidate) error {
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
		return v.lookOnce(ctx, s, e)
	}
	return nil
}

// lookAgain looks at a candidate that was wrong before.
func (v *verifier) lookAgain(ctx context.Context, s *candidate) error {
	if s.done {
		return nil
	}
	e, err := v.readEntity(ctx, s.entity)
	if err != nil {
		return err
	}
	return v.lookOnce(ctx, s, e)
}

// lookOnce reads the place again, behind a reading of the entity, and decides. The entity was read between two readings of
// the place, or, where nothing is at the place that has an ETag, the place is between two readings of the entity: so if the
// outer ones are the same, both were there at one moment.
func (v *verifier) lookOnce(ctx context.Context, s *candidate, e *seenEntity) error {
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

// each calls a function for every item, n at a time, and returns the first error.
func each[I any](ctx context.Context, n int, items []I, do func(context.Context, I) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, n)
	var running sync.WaitGroup
	for _, item := range items {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		running.Go(func() {
			defer func() { <-slots }()
			if err := do(ctx, item); err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
