package access

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Fischer's mutual exclusion algorithm serializes the changes of the list, without conditional writes. A process that reads a list without a lock
// writes its own lock, waits until every write based on an older reading has arrived, and reads again. If its lock is still there, no other process
// writes.
//
// Package lease enforces the bounds for each attempt, including the SDK's retries: a list with a new lock arrives within settle after the reading
// on which it is based; its writer waits for settle before it reads; and it writes nothing later than holdFactor times settle after it began, when
// other processes may remove the lock.

const (
	lockPrefix = "_tpLock_"
	// holdFactor is the lifetime of a lock, in units of settle, from when it was sent.
	holdFactor = 6
	// maxTries limits the attempts to acquire the lock and finish.
	maxTries = 20
	// maxWaits limits how many consecutive times a change may find the lock held.
	maxWaits = 400
)

type change struct {
	// refuse returns an error, before anything is written, if the change is not possible.
	refuse func(acl) error
	// holds reports whether the change has been made.
	holds func(acl) bool
	// early is written with the lock, before the process knows whether it holds it. apply makes the whole change.
	early, apply func(acl) acl
}

func isLock(s *aztables.SignedIdentifier) bool { return strings.HasPrefix(idOf(s), lockPrefix) }

func (l acl) lock() string {
	if i := slices.IndexFunc(l, isLock); i >= 0 {
		return idOf(l[i])
	}
	return ""
}

func (l acl) withoutLocks() acl { return slices.DeleteFunc(slices.Clone(l), isLock) }

// newLock returns an entry that has expired. Azurite requires all three fields.
func newLock() *aztables.SignedIdentifier {
	id, permission := lockPrefix+rand.Text(), Query.String()
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	expiry := start.AddDate(0, 0, 1)
	return &aztables.SignedIdentifier{ID: &id, AccessPolicy: &aztables.AccessPolicy{Start: &start, Expiry: &expiry, Permission: &permission}}
}

func (p *Policies) change(ctx context.Context, op string, c change) error {
	for n := range maxTries {
		since, list, err := p.awaitUnlocked(ctx, op)
		if err != nil {
			return err
		}
		if n > 0 && list.lock() == "" && c.holds(list) {
			return nil // by an earlier attempt, whose response was lost
		}
		if err := c.refuse(list); err != nil {
			return err
		}
		if done, err := p.try(ctx, op, &c, since, list); done || err != nil {
			return err
		}
		if err := backoff.Wait(ctx, n); err != nil {
			return err
		}
	}
	return p.failure(op, tables.ErrConflict, "other programs kept changing the policies; try again")
}

// awaitUnlocked reads the list until it has no lock, or the same lock for so long that its holder may no longer write. since is before the list was
// requested.
func (p *Policies) awaitUnlocked(ctx context.Context, op string) (since time.Time, list acl, err error) {
	var lock string
	var seen time.Time
	for range maxWaits {
		since = time.Now()
		if list, err = p.read(ctx, op); err != nil {
			return since, nil, err
		}
		switch found := list.lock(); {
		case found == "", found == lock && since.Sub(seen) >= holdFactor*p.settle:
			return since, list, nil
		case found != lock:
			lock, seen = found, time.Now()
		}
		if err := backoff.Sleep(ctx, p.settle/4+backoff.Jitter(p.settle/4)); err != nil {
			return since, nil, err
		}
	}
	return since, nil, p.failure(op, tables.ErrConflict, "other programs kept changing the policies; try again")
}

// try tries to acquire the lock and to make the change. done is false if another process holds the lock, or ours has expired.
func (p *Policies) try(ctx context.Context, op string, c *change, since time.Time, list acl) (done bool, err error) {
	lock, began := newLock(), time.Now()
	result, err := p.write(ctx, op, since, p.settle, append(c.early(list.withoutLocks()), lock))
	wait := p.settle
	switch result {
	case written:
	case unsent:
		return false, ctx.Err()
	case refused:
		return false, err
	default:
		wait *= 2 // the write may still arrive
	}
	if err := backoff.Sleep(ctx, wait); err != nil {
		return false, p.unknown(op, err)
	}
	now, readErr := p.read(ctx, op)
	switch {
	case readErr != nil:
		return false, p.unknown(op, readErr)
	case now.index(idOf(lock)) >= 0:
		return p.finish(ctx, op, began, c.apply(now.withoutLocks()), idOf(lock))
	case result == unclear && !errors.Is(err, lease.ErrLost):
		return false, err
	}
	return false, nil // held by another process, or expired
}

// finish writes the list without the lock. After a lost response it reads the list, and writes again if the lock is still there.
func (p *Policies) finish(ctx context.Context, op string, began time.Time, list acl, lock string) (done bool, err error) {
	for n := range maxTries {
		result, err := p.write(ctx, op, began, holdFactor*p.settle, list)
		switch result {
		case written:
			return true, nil
		case unsent:
			return false, ctx.Err()
		case refused:
			return false, err
		}
		if err := backoff.Wait(ctx, n); err != nil {
			return false, p.unknown(op, err)
		}
		now, readErr := p.read(ctx, op)
		switch {
		case readErr != nil:
			return false, p.unknown(op, readErr)
		case now.index(lock) < 0:
			// Applied, or expired and removed by another process: change finds out.
			return false, nil
		}
	}
	return false, nil
}

type result uint8

const (
	written result = iota
	refused        // by the service
	unsent         // the term was over
	unclear        // it may have been applied, or may still be
)

// write sets the list, within term from since.
func (p *Policies) write(ctx context.Context, op string, since time.Time, term time.Duration, list acl) (result, error) {
	l := lease.New(ctx, since, term)
	defer l.End(context.Canceled)
	_, err := p.table.Client().SetAccessPolicy(l.Context(ctx), &aztables.SetAccessPolicyOptions{TableACL: list})
	if err == nil {
		return written, nil
	}
	if response, ok := errors.AsType[*azcore.ResponseError](err); ok && wire.OutcomeOfStatus(response.StatusCode, response.ErrorCode) == wire.OutcomeRefused && !l.Unsure() {
		return refused, p.sdkFailure(op, err)
	}
	if errors.Is(l.Check(), lease.ErrLost) {
		if !l.Unsure() {
			return unsent, err
		}
		err = lease.ErrLost
	}
	return unclear, p.unknown(op, err)
}

func (p *Policies) unknown(op string, err error) error {
	e := p.sdkFailure(op, err)
	e.Kind = tables.ErrUnknownOutcome
	return e
}
