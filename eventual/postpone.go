package eventual

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/internal/kinds"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// A delivery that could not succeed yet is postponed, and does not count toward MaxDequeues: an outage of the table service must not send an intent
// to the poison queue. WorkerOptions.PostponeTimeout lists what is postponed; what a handler of the program returns counts as a failure.
//
// The worker writes the number of such deliveries into the message (envelope.Waits) and releases it, in one request. If it dies before, that
// delivery counts: so a message that kills its workers is poisoned in the end.

// longestPostponement limits the delay, so that a message is handled soon after the outage or the deployment.
const longestPostponement = 5 * time.Minute

// errUnknownRepository means that this program has made no repository of the intent's name for this queue.
var errUnknownRepository = errors.New("run workers of the build that makes this repository")

type unopened struct{ error }

func (e unopened) Unwrap() error { return e.error }

// attempts returns how many deliveries count toward MaxDequeues. The message's number of postponements is untrusted: no more are believed than can
// have happened since it was sent.
func (d *delivery) attempts() int {
	if d.message == nil {
		return d.raw.dequeues
	}
	waits := min(max(0, d.message.envelope.Waits), d.possibleWaits()) + d.postponed.unrecorded(d.raw.id)
	return max(1, d.raw.dequeues-waits)
}

func (d *delivery) possibleWaits() int {
	age := min(max(0, time.Since(d.message.Sent)), d.options.PostponeTimeout)
	return 1 + int(age/max(time.Second, d.postponement(0, longestPostponement)))
}

// postponable reports whether to postpone the delivery, and returns the log line.
func (d *delivery) postponable() (line telemetry.Line, ok bool) {
	if d.message == nil || time.Since(d.message.Sent) >= d.options.PostponeTimeout {
		return line, false
	}
	body := unopened{}
	own := strings.HasPrefix(d.message.Type, ownTypes)
	switch {
	case !own && !errors.As(d.err, &body):
		return line, false
	case own && (errors.Is(d.err, errUnknownRepository) || errors.Is(d.err, driver.ErrUnknownPattern)):
		return telemetry.LinePostponed, true
	case own && changing(d.err):
		return telemetry.LineIntentBusy, true
	}
	return telemetry.LineMessagePostponed, d.verdict.Poisoned == nil && transient(d.err)
}

func all(err error, holds func(error) bool) bool {
	if of, ok := err.(*handlerError); ok {
		err = of.err
	}
	if _, one := err.(*tables.Error); !one {
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			return !slices.ContainsFunc(several.Unwrap(), func(err error) bool { return !all(err, holds) })
		}
	}
	return holds(err)
}

func changing(err error) bool {
	return all(err, func(err error) bool { return errors.Is(err, intents.ErrChanging) })
}

// transient reports whether a later delivery may succeed without a repair of anything but a service.
func transient(err error) bool {
	return all(err, func(err error) bool {
		if wire.HasEnded(err) || errors.Is(err, kinds.ErrCutOff) || errors.Is(err, errTurn) || errors.Is(err, intents.ErrChanging) {
			return true
		}
		switch tables.KindOf(err) {
		case tables.ErrUnavailable, tables.ErrUnknownOutcome, tables.ErrMissingResource, tables.ErrBeingDeleted, tables.ErrRefused, tables.ErrConflict:
			return true
		}
		return false
	})
}

// postpone releases the message and records that this delivery does not count. It logs one line for each message.
func (d *delivery) postpone(line telemetry.Line) {
	next := *d.message.envelope
	next.Waits = max(0, next.Waits) + d.postponed.unrecorded(d.raw.id) + 1
	delay := d.postponement(next.Waits-1, backoff.Jitter(longestPostponement))
	text, _, err := d.queue.seal(d.holding.own, "Release", d.queue.shardNames[d.shard], &next)
	if err != nil {
		text = "" // this worker remembers the delivery
	}
	if next.Waits == 1 {
		d.logged(d.holding.own, line, d.about(d.signals.Error(d.err), "delay", delay, "until", d.message.Sent.Add(d.options.PostponeTimeout))...)
	}
	recorded := d.release(delay, text) && text != ""
	_ = d.observePostponed(d.postponed.add(d.raw.id, d.message.Sent, recorded)) // an error is about the meters of the program
}

func (s *session) observePostponed(oldest time.Time) error {
	age := time.Duration(0)
	if !oldest.IsZero() {
		age = max(0, time.Since(oldest))
	}
	return s.signals.Observe(s, telemetry.QueuePostponed, age.Seconds(), telemetry.AttrQueue, s.queue.name)
}

// postponement returns the delay after waits earlier ones: it doubles from the visibility timeout to longestPostponement. jitter, from 0 to
// longestPostponement, shortens it by up to a quarter, to spread the messages of one outage.
func (d *delivery) postponement(waits int, jitter time.Duration) time.Duration {
	delay := longestPostponement
	if waits = max(0, waits); waits < 10 {
		delay = min(delay, d.queue.visibility<<waits)
	}
	return delay - time.Duration(float64(delay/4)*float64(jitter)/float64(longestPostponement))
}

const maxPostponed = 10_000

// postponed are the messages that a worker has postponed and not handled since, at most maxPostponed.
type postponed struct {
	mu  sync.Mutex
	all map[string]postponedMessage // by the service's ID
}

type postponedMessage struct {
	sent, seen time.Time
	missed     int // postponed deliveries whose number could not be written into the message
}

// add notes a postponement, and returns when the oldest postponed message was sent.
func (p *postponed) add(id string, sent time.Time, recorded bool) (oldest time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[string]postponedMessage{}
	}
	m, known := p.all[id]
	if !known && len(p.all) >= maxPostponed {
		return p.oldest()
	}
	m.sent, m.seen = sent, time.Now()
	if m.missed++; recorded {
		m.missed = 0
	}
	p.all[id] = m
	return p.oldest()
}

// remove forgets a message; ok is false if it was not postponed.
func (p *postponed) remove(id string) (oldest time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok = p.all[id]; !ok {
		return oldest, false
	}
	delete(p.all, id)
	return p.oldest(), true
}

func (p *postponed) since() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.oldest()
}

// unrecorded returns how many postponements are missing in the message itself.
func (p *postponed) unrecorded(id string) int {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all[id].missed
}

// oldest returns when the oldest message was sent, or the zero time. It forgets messages that this worker did not get for long: another worker has
// handled them.
func (p *postponed) oldest() (oldest time.Time) {
	for id, m := range p.all {
		if time.Since(m.seen) > 4*longestPostponement {
			delete(p.all, id)
		} else if oldest.IsZero() || m.sent.Before(oldest) {
			oldest = m.sent
		}
	}
	return cmp.Or(oldest, time.Time{})
}
