package eventual

import (
	"errors"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Two kinds of deliveries of an intent do not count toward MaxDequeues, since a later delivery can do the
// same work: the intent names patterns that only a newer build knows, or its entity changes all the time.
//
// During a deployment, workers of the older build get intents of the newer one, which name patterns and repositories that
// they do not know. An older worker changes nothing for such an intent. It writes the number of such deliveries into the
// message (envelope.Waits) and releases it, in one request. If the worker dies before, the message appears when its
// visibility timeout is over, and that delivery counts as a failed one. Deliveries in Waits do not count toward
// MaxDequeues, so that a worker of the newer build handles the intent however often it was released.
//
// If an entity changes during every attempt of a delivery, for example because its effects take long, the
// effects are applied but may be stale. A later delivery applies them again.

// longestPostponement limits the delay of a release, so that an intent is carried out soon after the deployment.
const longestPostponement = 5 * time.Minute

// errUnknownRepository reports that this program has made no repository of the intent's name for this queue.
var errUnknownRepository = errors.New("run workers of the build that makes this repository")

// attempts returns how many deliveries of the message count toward MaxDequeues. The number of releases in the
// message is untrusted input. So attempts subtracts at most the number of releases that the elapsed time
// allows, and a message that kills its workers is poisoned in the end.
func (d *delivery) attempts() int {
	if d.message == nil || d.message.Type != intentType {
		return d.raw.dequeues
	}
	age := min(time.Since(d.message.Sent), d.options.DeploymentTimeout)
	possible := 1 + int(max(0, age)/d.leastPostponement())
	return d.raw.dequeues - max(0, min(d.message.envelope.Waits, possible, d.raw.dequeues-1))
}

// postponable reports whether the delivery must be postponed, and returns the log line for it.
func (d *delivery) postponable() (line telemetry.Line, ok bool) {
	if d.awaitsNewerBuild() {
		return telemetry.LinePostponed, true
	}
	return telemetry.LineIntentBusy, d.verdict.Postpone && time.Since(d.message.Sent) < d.options.DeploymentTimeout
}

// changing reports whether the only failure is that entities have changed during every attempt.
func changing(err error) bool {
	if _, one := err.(*tables.Error); !one {
		if all, several := err.(interface{ Unwrap() []error }); several {
			return !slices.ContainsFunc(all.Unwrap(), func(err error) bool { return !changing(err) })
		}
	}
	return errors.Is(err, intents.ErrChanging)
}

// awaitsNewerBuild reports whether the message is an intent with names that this build does not know, and a
// deployment may still be under way.
func (d *delivery) awaitsNewerBuild() bool {
	if d.message == nil || d.message.Type != intentType || time.Since(d.message.Sent) >= d.options.DeploymentTimeout {
		return false
	}
	return errors.Is(d.err, errUnknownRepository) || errors.Is(d.err, driver.ErrUnknownPattern)
}

// postpone releases the intent, and records in it that this delivery does not count.
func (d *delivery) postpone(line telemetry.Line) {
	next := *d.message.envelope
	delay := d.postponement(next.Waits)
	next.Waits = max(0, next.Waits) + 1
	text, _, err := d.queue.seal(d.holding.own, "Release", d.queue.shardNames[d.shard], &next)
	if err != nil {
		text = "" // the delivery counts, and the message is released unchanged
	}
	d.logged(d.holding.own, line,
		d.about(d.signals.Error(d.err), "delay", delay, "until", d.message.Sent.Add(d.options.DeploymentTimeout))...)
	d.releaseWith(delay, text)
}

// postponement returns the delay, which starts at the visibility timeout and doubles. Jitter shortens it, so that the
// intents of one deployment spread out.
func (d *delivery) postponement(waits int) time.Duration {
	delay := longestPostponement
	if waits = max(0, waits); waits < 10 {
		delay = min(delay, d.queue.visibility<<waits)
	}
	return delay - backoff.Jitter(delay/4)
}

// leastPostponement is the lower bound of the delay that postponement returns.
func (d *delivery) leastPostponement() time.Duration {
	return max(time.Second, min(longestPostponement, d.queue.visibility)*3/4)
}
