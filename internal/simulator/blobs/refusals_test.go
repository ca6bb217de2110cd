package blobs

import (
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator/exchange"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// states is a container with one block blob, and requests by short names.
type states struct {
	*testBlobs
	t *testing.T
}

func newStates(t *testing.T) states {
	b := newTestBlobs(t, 1)
	b.container(t)
	b.putRaw(t, "a", "x")
	return states{b, t}
}

// do sends a request on the blob and checks status and code. headers are pairs of name and value.
func (s states) do(status int, code, method, query, body string, headers ...string) *protocol.Answer {
	s.t.Helper()
	h := map[string]string{}
	for i := 0; i < len(headers); i += 2 {
		h[headers[i]] = headers[i+1]
	}
	return s.Want(s.t, probe.NewCall(method, "/photos/a"+query, h, body), status, code)
}

// changes tries each request that changes or deletes the blob, with further headers.
func (s states) changes(status int, code string, headers ...string) {
	s.t.Helper()
	block := append([]string{"x-ms-blob-type", "BlockBlob"}, headers...)
	s.do(status, code, "PUT", "", "y", block...)
	s.do(status, code, "PUT", "?comp=blocklist", "<BlockList></BlockList>", headers...)
	s.do(status, code, "PUT", "?comp=block&blockid=AAAA", "y", headers...)
	s.do(status, code, "PUT", "?comp=metadata", "", headers...)
	s.do(status, code, "PUT", "?comp=properties", "", headers...)
	s.do(status, code, "PUT", "", "", append([]string{"x-ms-copy-source", "http://contoso.sim.test/photos/a"}, headers...)...)
	s.do(status, code, "DELETE", "", "", headers...)
}

const (
	first  = "11111111-1111-4111-8111-111111111111"
	second = "22222222-2222-4222-8222-222222222222"
)

func TestLease(t *testing.T) {
	s := newStates(t)
	lease := func(status int, code, action string, headers ...string) *protocol.Answer {
		t.Helper()
		return s.do(status, code, "PUT", "?comp=lease", "", append([]string{"x-ms-lease-action", action}, headers...)...)
	}
	lease(400, "InvalidHeaderValue", "borrow")
	lease(400, "InvalidHeaderValue", "acquire", "x-ms-lease-duration", "14")
	lease(409, "LeaseIdMismatchWithLeaseOperation", "renew", "x-ms-lease-id", first)
	lease(409, "LeaseNotPresentWithLeaseOperation", "break")
	if id := lease(201, "", "acquire", "x-ms-lease-duration", "15", "x-ms-proposed-lease-id", first).Header.Get("x-ms-lease-id"); id != first {
		t.Errorf("the lease is %s", id)
	}
	s.changes(412, "LeaseIdMissing")
	s.changes(412, "LeaseIdMismatchWithBlobOperation", "x-ms-lease-id", second)
	s.do(412, "LeaseIdMissing", "PUT", "?comp=tier", "", "x-ms-access-tier", "Cool")
	s.do(412, "LeaseIdMismatchWithBlobOperation", "GET", "", "", "x-ms-lease-id", second)
	s.do(200, "", "GET", "", "")
	if h := s.do(200, "", "HEAD", "", "").Header; h.Get("x-ms-lease-state") != "leased" || h.Get("x-ms-lease-status") != "locked" || h.Get("x-ms-lease-duration") != "fixed" {
		t.Errorf("leased: %v", h)
	}
	lease(409, "LeaseAlreadyPresent", "acquire", "x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", second)
	lease(409, "LeaseIdMismatchWithLeaseOperation", "renew", "x-ms-lease-id", second)
	lease(400, "MissingRequiredHeader", "renew")
	s.clock.Advance(14 * time.Second)
	lease(200, "", "renew", "x-ms-lease-id", first)
	s.clock.Advance(14 * time.Second)
	s.do(412, "LeaseIdMissing", "DELETE", "", "")
	lease(200, "", "change", "x-ms-lease-id", first, "x-ms-proposed-lease-id", second)
	s.do(200, "", "PUT", "?comp=metadata", "", "x-ms-lease-id", second)
	s.clock.Advance(2 * time.Second)
	s.do(412, "LeaseNotPresentWithBlobOperation", "PUT", "?comp=metadata", "", "x-ms-lease-id", second)
	s.do(200, "", "PUT", "?comp=metadata", "")
	lease(201, "", "acquire", "x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", first)
	s.clock.Advance(24 * time.Hour)
	s.do(412, "LeaseIdMissing", "DELETE", "", "")
	assert.Equal(t, lease(202, "", "break", "x-ms-lease-break-period", "30").Header.Get("x-ms-lease-time"), "30", "seconds left")
	lease(409, "LeaseIsBreakingAndCannotBeAcquired", "acquire", "x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", second)
	lease(409, "LeaseIsBrokenAndCannotBeRenewed", "renew", "x-ms-lease-id", first)
	lease(409, "LeaseIsBreakingAndCannotBeChanged", "change", "x-ms-lease-id", first, "x-ms-proposed-lease-id", second)
	s.do(412, "LeaseIdMissing", "DELETE", "", "")
	s.clock.Advance(31 * time.Second)
	s.do(201, "", "PUT", "", "y", "x-ms-blob-type", "BlockBlob")
	lease(201, "", "acquire", "x-ms-lease-duration", "-1")
	lease(202, "", "break")
	s.do(202, "", "DELETE", "", "")
}

func TestHold(t *testing.T) {
	s := newStates(t)
	until := exchange.Time(s.clock.Now().Add(time.Hour))
	set := func(status int, code, until, mode string) {
		t.Helper()
		s.do(status, code, "PUT", "?comp=immutabilityPolicies", "", "x-ms-immutability-policy-until-date", until, "x-ms-immutability-policy-mode", mode)
	}
	set(400, "InvalidHeaderValue", "tomorrow", "Unlocked")
	set(400, "InvalidHeaderValue", until, "Firm")
	set(200, "", until, "Unlocked")
	s.do(412, "ConditionNotMet", "DELETE", "", "", "If-Match", `"0x1"`)
	for _, change := range []string{"", "?comp=metadata", "?comp=properties"} {
		s.do(409, "BlobImmutableDueToPolicy", "PUT", change, "y", "x-ms-blob-type", "BlockBlob")
	}
	s.changes(409, "BlobImmutableDueToPolicy")
	s.do(200, "", "GET", "", "")
	s.do(200, "", "DELETE", "?comp=immutabilityPolicies", "")
	s.do(200, "", "PUT", "?comp=metadata", "")
	set(200, "", until, "Locked")
	set(409, "BlobImmutableDueToPolicy", exchange.Time(s.clock.Now().Add(time.Minute)), "Locked")
	s.do(409, "ImmutabilityPolicyDeleteOnLockedPolicy", "DELETE", "?comp=immutabilityPolicies", "")
	s.clock.Advance(2 * time.Hour)
	s.do(200, "", "PUT", "?comp=metadata", "")
	s.do(400, "InvalidHeaderValue", "PUT", "?comp=legalhold", "")
	if h := s.do(200, "", "PUT", "?comp=legalhold", "", "x-ms-legal-hold", "true").Header; h.Get("x-ms-legal-hold") != "true" {
		t.Errorf("held: %v", h)
	}
	s.changes(409, "BlobImmutableDueToLegalHold")
	s.do(200, "", "PUT", "?comp=legalhold", "", "x-ms-legal-hold", "false")
	s.do(202, "", "DELETE", "", "")
}

func TestTier(t *testing.T) {
	s := newStates(t)
	tier := func(status int, code, name string) {
		t.Helper()
		s.do(status, code, "PUT", "?comp=tier", "", "x-ms-access-tier", name)
	}
	tier(400, "InvalidHeaderValue", "Lukewarm")
	s.do(400, "MissingRequiredHeader", "PUT", "?comp=tier", "")
	tier(200, "", "Archive")
	archived := func(code string) {
		t.Helper()
		s.do(409, code, "GET", "", "")
		s.do(409, code, "GET", "", "", "x-ms-range", "bytes=0-0")
		s.do(409, code, "PUT", "?comp=metadata", "")
		s.do(409, code, "PUT", "?comp=block&blockid=AAAA", "y")
		s.do(409, code, "PUT", "?comp=snapshot", "")
		s.do(409, code, "PUT", "", "", "x-ms-copy-source", "http://contoso.sim.test/photos/a")
	}
	archived("BlobArchived")
	if h := s.do(200, "", "HEAD", "", "").Header; h.Get("x-ms-access-tier") != "Archive" {
		t.Errorf("archived: %v", h)
	}
	tier(202, "", "Hot")
	archived("BlobBeingRehydrated")
	tier(409, "BlobBeingRehydrated", "Cool")
	if h := s.do(200, "", "HEAD", "", "").Header; h.Get("x-ms-archive-status") != "rehydrate-pending-to-hot" {
		t.Errorf("being rehydrated: %v", h)
	}
	s.clock.Advance(rehydration)
	if a := s.do(200, "", "GET", "", ""); string(a.Body) != "x" || a.Header.Get("x-ms-access-tier") != "Hot" {
		t.Errorf("rehydrated: %s, %v", a.Body, a.Header)
	}
	tier(200, "", "Archive")
	s.do(201, "", "PUT", "", "y", "x-ms-blob-type", "BlockBlob", "x-ms-access-tier", "Cold")
	if a := s.do(200, "", "GET", "", ""); string(a.Body) != "y" || a.Header.Get("x-ms-access-tier") != "Cold" {
		t.Errorf("replaced: %s, %v", a.Body, a.Header)
	}
	tier(200, "", "Archive")
	s.do(202, "", "DELETE", "", "")
	s.do(201, "", "PUT", "", "", "x-ms-blob-type", "AppendBlob")
	tier(400, "AccessTierNotSupportedForBlobType", "Cool")
}

func TestSnapshots(t *testing.T) {
	s := newStates(t)
	take := func() string {
		t.Helper()
		return s.do(201, "", "PUT", "?comp=snapshot", "").Header.Get("x-ms-snapshot")
	}
	one := take()
	s.do(201, "", "PUT", "", "y", "x-ms-blob-type", "BlockBlob")
	two := take()
	for name, want := range map[string]string{one: "x", two: "y"} {
		assert.Equal(t, string(s.do(200, "", "GET", "?snapshot="+name, "").Body), want, "snapshot %s", name)
	}
	s.do(409, "SnapshotsPresent", "DELETE", "", "")
	s.do(409, "SnapshotsPresent", "PUT", "?comp=tier", "", "x-ms-access-tier", "Archive")
	s.do(400, "InvalidOperation", "PUT", "?comp=metadata&snapshot="+one, "")
	s.do(400, "InvalidOperation", "DELETE", "?snapshot="+one, "", "x-ms-delete-snapshots", "include")
	s.do(202, "", "DELETE", "?snapshot="+one, "")
	s.do(404, "BlobNotFound", "HEAD", "?snapshot="+one, "")
	s.do(409, "SnapshotsPresent", "DELETE", "", "")
	state := s.service.Snapshot()
	s.do(202, "", "DELETE", "", "", "x-ms-delete-snapshots", "only")
	s.do(200, "", "GET", "", "")
	s.service.Restore(state)
	s.do(400, "InvalidHeaderValue", "DELETE", "", "", "x-ms-delete-snapshots", "some")
	s.do(202, "", "DELETE", "", "", "x-ms-delete-snapshots", "include")
	s.do(404, "BlobNotFound", "GET", "", "")
}
