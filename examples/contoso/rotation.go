package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// rotate changes the wrapping key and the data key, while other programs raise salaries.
func (v *vault) rotate(ctx context.Context, s *section) error {
	writers, err := v.startPayrolls(ctx)
	if err != nil {
		return err
	}
	err = steps(ctx, s, v.rewrap, v.replaceDataKey)
	raises, stopErr := writers.stop()
	if err := errors.Join(err, stopErr); err != nil {
		return err
	}
	for n, raised := range raises {
		v.staff[n].Salary += int64(raised) * raise
	}
	return v.countUses(ctx, s, raises)
}

// rewrap wraps the data keys by the new wrapping key. All programs have a chain of both by now; no employee is touched.
func (v *vault) rewrap(ctx context.Context, s *section) error {
	if err := v.c.exposed(s, "the wrapping key rotated, while salaries rise", func() (string, error) {
		var err error
		if v.registry, err = v.newRegistry(encryption.NewChain(v.new, v.old)); err != nil {
			return "", err
		}
		wrapped, err := v.registry.Rewrap(ctx)
		return fmt.Sprintf("%s wrapped again: the data key, and the key of the beacon", counted(wrapped, "key")), err
	}); err != nil {
		return err
	}
	return v.c.act(s, "the keys unwrapped by the new one alone", func() (string, error) {
		only, err := v.newRegistry(v.new)
		if err != nil {
			return "", err
		}
		if err := only.Check(ctx); err != nil {
			return "", err
		}
		outdated, err := v.newRegistry(v.old)
		if err != nil {
			return "", err
		}
		if outdated.Check(ctx) == nil {
			return "", errors.New("the old wrapping key is still good for something")
		}
		v.registry, v.people = only, nil
		v.people, err = openConfidentials(ctx, v.table, only)
		return "all of them; the old wrapping key unwraps none", err
	})
}

// replaceDataKey makes a data key, and has all that was encrypted under the old one encrypted again.
func (v *vault) replaceDataKey(ctx context.Context, s *section) error {
	if err := v.c.act(s, "a new data key", func() (string, error) {
		_, err := v.registry.CreateDataKey(ctx)
		return fmt.Sprintf("every program writes under it within %v", keyLifetime), err
	}); err != nil {
		return err
	}
	select {
	case <-time.After(2 * keyLifetime):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return v.c.exposed(s, "encrypted again, while salaries rise", func() (string, error) {
		var failed []error
		done, err := encryption.Reencrypt(ctx, v.people.repo, &patterns.JobOptions{Found: func(f patterns.Finding) error {
			failed = append(failed, fmt.Errorf("not written: %v", f))
			return nil
		}})
		err = errors.Join(append(failed, err)...)
		return fmt.Sprintf("%s of %s; the others have a raise under the new key", grouped(int(done.Written)), counted(int(done.Read), "employee")), err
	})
}

// countUses: nothing is encrypted under the old key any more. It is still not removed while a program that has not heard of
// the new one may write.
func (v *vault) countUses(ctx context.Context, s *section, raises []int) error {
	total := 0
	for _, n := range raises {
		total += n
	}
	return v.c.act(s, "uses of the old data key", func() (string, error) {
		// A write that took longer than all waiting may still have the old key.
		if _, err := encryption.Reencrypt(ctx, v.people.repo, nil); err != nil {
			return "", err
		}
		uses, err := encryption.Uses(ctx, v.table)
		if err != nil {
			return "", err
		}
		var old, current encryption.DataKeyID
		for key, err := range v.registry.DataKeys(ctx) {
			switch {
			case err != nil:
				return "", err
			case key.Current:
				current = key.ID
			default:
				old = key.ID
			}
		}
		if uses[old] != 0 || uses[current] == 0 {
			return "", fmt.Errorf("%d values under the old key, %d under the new one", uses[old], uses[current])
		}
		if err := v.registry.RemoveUnusedDataKey(ctx, old, v.table); !errors.Is(err, tables.ErrConflict) {
			return "", fmt.Errorf("a key that was replaced a moment ago was not kept: %w", err)
		}
		return fmt.Sprintf("0, and %s of the new one, after %s; who wants to remove it has to wait a minute", grouped(int(uses[current])), counted(total, "raise")), nil
	})
}

// payroll is programs that raise salaries until they are stopped.
type payroll struct {
	stopped chan struct{}
	running sync.WaitGroup
	raises  []int // by employee
	failed  [payrolls]error
}

// startPayrolls starts programs that have a registry each, with both wrapping keys.
func (v *vault) startPayrolls(ctx context.Context) (*payroll, error) {
	p := &payroll{stopped: make(chan struct{}), raises: make([]int, len(v.staff))}
	for n := range payrolls {
		registry, err := v.newRegistry(encryption.NewChain(v.new, v.old))
		if err != nil {
			return nil, err
		}
		people, err := openConfidentials(ctx, v.table, registry)
		if err != nil {
			return nil, err
		}
		p.running.Go(func() { p.raiseInTurn(ctx, people, v.staff, n) })
	}
	return p, nil
}

// raiseInTurn raises the salaries of every fourth employee. Nobody else changes them, so a raise sets what they become, and can
// be repeated when it is unknown whether it was applied.
func (p *payroll) raiseInTurn(ctx context.Context, people *confidentials, staff []*Confidential, first int) {
	for n := first; ; n += payrolls {
		if n >= len(staff) {
			n = first
		}
		salary := staff[n].Salary + int64(p.raises[n]+1)*raise
		err := again(ctx, func() error {
			_, err := people.repo.Update(ctx, people.repo.KeyOf(staff[n]), func(e *Confidential) error {
				e.Salary = salary
				return nil
			})
			return err
		})
		if err != nil {
			p.failed[first] = err
			return
		}
		p.raises[n]++
		select {
		case <-p.stopped:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// stop ends the programs, and returns how often each salary was raised.
func (p *payroll) stop() ([]int, error) {
	close(p.stopped)
	p.running.Wait()
	return p.raises, errors.Join(p.failed[:]...)
}
