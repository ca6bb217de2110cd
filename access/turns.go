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

// Changes of the list of policies take turns by Fischer's rule for one register that cannot be written under a condition:
// whoever finds no lock writes the list with a lock of its own, waits until everything that others may have sent on an older
// reading has arrived, and reads again. If its lock is still there, it alone may write.
//
// What makes it right are three bounds, held by package lease for each attempt of a request, those that the SDK repeats
// included: a list with a new lock arrives within settle of the reading it stands on; whoever has written a lock waits for
// settle before it looks; and it writes nothing once holdFactor times settle have passed since it began, after which,
// and not before, the others take its lock for that of a dead process.

const (
	// lockPrefix begins the id of an entry that is a lock.
	lockPrefix = "_tpLock_"
	// holdFactor: a turn ends settle times it after its lock was sent.
	holdFactor = 6
	// maxTurns is how often a change tries to get its turn, and to do its work in it.
	maxTurns = 20
	// maxWaits is how often a change finds the turn of somebody else in a row.
	maxWaits = 400
)

// change is what is to become of the list.
type change struct {
	// refuse tells, before anything is written, why it cannot be.
	refuse func(acl) error
	// holds tells whether it is done.
	holds func(acl) bool
	// early is what may be done with the lock, before it is sure that the turn is ours; apply is all of it.
	early, apply func(acl) acl
}

func isLock(s *aztables.SignedIdentifier) bool { return strings.HasPrefix(idOf(s), lockPrefix) }

// lock is the id of the lock in the list, "" without one.
func (l acl) lock() string {
	if i := slices.IndexFunc(l, isLock); i >= 0 {
		return idOf(l[i])
	}
	return ""
}

func (l acl) withoutLocks() acl { return slices.DeleteFunc(slices.Clone(l), isLock) }

// newLock is an entry that no token can stand on: it has expired. Azurite takes an entry only if it says all three.
func newLock() *aztables.SignedIdentifier {
	id, permission := lockPrefix+rand.Text(), Query.String()
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	expiry := start.AddDate(0, 0, 1)
	return &aztables.SignedIdentifier{ID: &id, AccessPolicy: &aztables.AccessPolicy{Start: &start, Expiry: &expiry, Permission: &permission}}
}

// change makes a change in a turn of its own.
func (p *Policies) change(ctx context.Context, op string, c change) error {
	for n := range maxTurns {
		since, list, err := p.await(ctx, op)
		if err != nil {
			return err
		}
		if n > 0 && list.lock() == "" && c.holds(list) {
			return nil // an earlier turn of ours has done it, and its answer was lost
		}
		if err := c.refuse(list); err != nil {
			return err
		}
		if done, err := p.turn(ctx, op, &c, since, list); done || err != nil {
			return err
		}
		if err := backoff.Wait(ctx, n); err != nil {
			return err
		}
	}
	return p.failure(op, tables.ErrConflict, "others change the policies all the time")
}

// await reads the list until nobody has the turn: there is no lock, or one that has been there for longer than its owner
// may act. since is from before the list was asked for.
func (p *Policies) await(ctx context.Context, op string) (since time.Time, list acl, err error) {
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
	return since, nil, p.failure(op, tables.ErrConflict, "others change the policies all the time")
}

// turn tries to get the turn and to make the change in it. done is false where the turn was another's, or has ended.
func (p *Policies) turn(ctx context.Context, op string, c *change, since time.Time, list acl) (done bool, err error) {
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
		wait *= 2 // it may still arrive
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
	return false, nil // another has the turn, or we were too slow
}

// finish writes the list without the lock. After a write without an answer the list tells: as long as the turn lasts, nobody
// else takes the lock away.
func (p *Policies) finish(ctx context.Context, op string, began time.Time, list acl, lock string) (done bool, err error) {
	for n := range maxTurns {
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
			// Either it was applied, or the turn is over and another has begun; the next look at the list tells which.
			return false, nil
		}
	}
	return false, nil
}

// result is what became of a write.
type result uint8

const (
	written result = iota
	refused        // by the service
	unsent         // too late for it
	unclear
)

// write sets the list by a request that is sent only while the term lasts, which began at since.
func (p *Policies) write(ctx context.Context, op string, since time.Time, term time.Duration, list acl) (result, error) {
	l := lease.New(ctx, since, term)
	defer l.End(context.Canceled)
	_, err := p.table.Client().SetAccessPolicy(l.Context(ctx), &aztables.SetAccessPolicyOptions{TableACL: list})
	if err == nil {
		return written, nil
	}
	var response *azcore.ResponseError
	if errors.As(err, &response) && wire.OutcomeOfStatus(response.StatusCode, response.ErrorCode) == wire.OutcomeRefused && !l.Unsure() {
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

// unknown is an error after which it is unknown whether the change was made.
func (p *Policies) unknown(op string, err error) error {
	e := p.sdkFailure(op, err)
	e.Kind = tables.ErrUnknownOutcome
	return e
}
