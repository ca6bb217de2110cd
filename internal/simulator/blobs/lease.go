package blobs

import (
	"net/http"
	"strconv"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator/exchange"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// The states of a lease.
const (
	leaseAvailable = "available"
	leaseLeased    = "leased"
	leaseExpired   = "expired"
	leaseBreaking  = "breaking"
	leaseBroken    = "broken"
)

// forever is the duration of a lease that never expires, in seconds.
const forever = -1

// lease is the lease of a blob; the zero value is no lease.
type lease struct {
	id      string
	seconds int64 // forever, or 15 to 60
	ends    time.Time
	broken  bool // break was called; the lease lasts until ends
}

func (l *lease) state(now time.Time) string {
	over := l.seconds != forever && !now.Before(l.ends)
	switch {
	case l.id == "":
		return leaseAvailable
	case l.broken && !now.Before(l.ends):
		return leaseBroken
	case l.broken:
		return leaseBreaking
	case over:
		return leaseExpired
	}
	return leaseLeased
}

// locks reports whether requests without the lease's id are refused.
func (l *lease) locks(now time.Time) bool {
	state := l.state(now)
	return state == leaseLeased || state == leaseBreaking
}

// begin starts the lease's duration.
func (l *lease) begin(now time.Time) {
	l.broken, l.ends = false, now.Add(time.Duration(max(l.seconds, 0))*time.Second)
}

// check refuses a request that writes without the id of an active lease, and any request with another id.
func (l *lease) check(c *exchange.Call, writes bool) *protocol.Fault {
	sent := c.Header.Get("x-ms-lease-id")
	switch {
	case sent == "" && writes && l.locks(c.Now):
		return protocol.Refuse(http.StatusPreconditionFailed, "LeaseIdMissing",
			"There is currently a lease on the blob and no lease ID was specified in the request.")
	case sent == "":
		return nil
	case !l.locks(c.Now):
		return protocol.Refuse(http.StatusPreconditionFailed, "LeaseNotPresentWithBlobOperation",
			"There is currently no lease on the blob.")
	case sent != l.id:
		return protocol.Refuse(http.StatusPreconditionFailed, "LeaseIdMismatchWithBlobOperation",
			"The lease ID specified did not match the lease ID for the blob.")
	}
	return nil
}

// lease serves a request to acquire, renew, change, release or break the blob's lease.
func (t *target) lease(c *exchange.Call, b *stored) (*protocol.Answer, *protocol.Fault) {
	if err := conditionsOf(c.Header, "").checkChange(b); err != nil {
		return nil, err
	}
	status, err := http.StatusOK, (*protocol.Fault)(nil)
	left := int64(-1)
	switch action := c.Header.Get("x-ms-lease-action"); action {
	case "acquire":
		status, err = http.StatusCreated, t.acquire(c, b)
	case "renew", "change", "release":
		err = b.lease.alter(c, action)
	case "break":
		status = http.StatusAccepted
		left, err = b.lease.breakUp(c)
	default:
		return nil, exchange.InvalidHeader("x-ms-lease-action", action)
	}
	if err != nil {
		return nil, err
	}
	a := b.written(status)
	if b.lease.id != "" && left < 0 {
		a.Header.Set("x-ms-lease-id", b.lease.id)
	}
	if left >= 0 {
		a.Header.Set("x-ms-lease-time", strconv.FormatInt(left, 10))
	}
	return a, nil
}

func (t *target) acquire(c *exchange.Call, b *stored) *protocol.Fault {
	seconds, parseErr := strconv.ParseInt(c.Header.Get("x-ms-lease-duration"), 10, 64)
	if parseErr != nil || seconds != forever && (seconds < 15 || seconds > 60) {
		return exchange.InvalidHeader("x-ms-lease-duration", c.Header.Get("x-ms-lease-duration"))
	}
	id := c.Header.Get("x-ms-proposed-lease-id")
	switch state := b.lease.state(c.Now); {
	case state == leaseBreaking:
		return leaseFault("LeaseIsBreakingAndCannotBeAcquired")
	case state == leaseLeased && id != b.lease.id:
		return leaseFault("LeaseAlreadyPresent")
	}
	if id == "" {
		id = exchange.ID("lease", t.service.Serial)
	}
	b.lease = lease{id: id, seconds: seconds}
	b.lease.begin(c.Now)
	return nil
}

// alter renews, changes or releases a lease.
func (l *lease) alter(c *exchange.Call, action string) *protocol.Fault {
	state, proposed := l.state(c.Now), c.Header.Get("x-ms-proposed-lease-id")
	switch sent := c.Header.Get("x-ms-lease-id"); {
	case sent == "":
		return exchange.MissingHeader("x-ms-lease-id")
	case state == leaseAvailable && action == "change":
		return leaseFault("LeaseNotPresentWithLeaseOperation")
	case sent != l.id && (action != "change" || proposed != l.id):
		return leaseFault("LeaseIdMismatchWithLeaseOperation")
	case action == "renew" && (state == leaseBreaking || state == leaseBroken):
		return leaseFault("LeaseIsBrokenAndCannotBeRenewed")
	case action == "change" && state == leaseBreaking:
		return leaseFault("LeaseIsBreakingAndCannotBeChanged")
	case action == "change" && state != leaseLeased:
		return leaseFault("LeaseNotPresentWithLeaseOperation")
	case action == "change" && proposed == "":
		return exchange.MissingHeader("x-ms-proposed-lease-id")
	}
	switch action {
	case "renew":
		l.begin(c.Now)
	case "change":
		l.id = proposed
	default:
		*l = lease{}
	}
	return nil
}

// breakUp breaks a lease, and returns how many seconds it still lasts.
func (l *lease) breakUp(c *exchange.Call) (left int64, err *protocol.Fault) {
	period, err := c.HeaderNumber("x-ms-lease-break-period")
	if err != nil || period > 60 {
		return 0, exchange.InvalidHeader("x-ms-lease-break-period", c.Header.Get("x-ms-lease-break-period"))
	}
	if l.state(c.Now) == leaseAvailable {
		return 0, leaseFault("LeaseNotPresentWithLeaseOperation")
	}
	switch running := int64(l.ends.Sub(c.Now) / time.Second); {
	case !l.locks(c.Now):
	case l.seconds == forever && !l.broken:
		left = max(period, 0)
	case period >= 0:
		left = min(period, running)
	default:
		left = running
	}
	l.broken, l.ends = true, c.Now.Add(time.Duration(left)*time.Second)
	return left, nil
}

// leaseFault returns the fault of a request about a lease.
func leaseFault(code string) *protocol.Fault {
	text := map[string]string{
		"LeaseAlreadyPresent":                "There is already a lease present.",
		"LeaseIdMismatchWithLeaseOperation":  "The lease ID specified did not match the lease ID for the blob/container.",
		"LeaseNotPresentWithLeaseOperation":  "There is currently no lease on the blob/container.",
		"LeaseIsBreakingAndCannotBeAcquired": "There is already a breaking lease, and can't be acquired until it is finished.",
		"LeaseIsBreakingAndCannotBeChanged":  "The lease ID matched, but the lease is currently in breaking state and can't be changed.",
		"LeaseIsBrokenAndCannotBeRenewed":    "The lease ID matched, but the lease has been broken explicitly and can't be renewed.",
	}[code]
	return protocol.Refuse(http.StatusConflict, code, text)
}

// describe adds the lease to the headers of a response.
func (l *lease) describe(h http.Header, now time.Time) {
	state := l.state(now)
	h.Set("x-ms-lease-state", state)
	h.Set("x-ms-lease-status", map[bool]string{false: "unlocked", true: "locked"}[l.locks(now)])
	if state == leaseLeased {
		h.Set("x-ms-lease-duration", map[bool]string{false: "fixed", true: "infinite"}[l.seconds == forever])
	}
}
