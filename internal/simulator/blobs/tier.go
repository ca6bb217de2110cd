package blobs

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator/exchange"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

const archive = "Archive"

// rehydration is how long it takes to move a blob out of the archive tier: on the service up to 15 hours.
const rehydration = 15 * time.Hour

// tier is the access tier of a block blob; the zero value is the account's default.
type tier struct {
	name  string
	to    string    // the tier to which a blob is being rehydrated from the archive
	ready time.Time // when it will be there
}

func tierNames() []string { return []string{"Hot", "Cool", "Cold", archive} }

// now returns the tier as it is at a time.
func (t tier) now(now time.Time) tier {
	if t.to != "" && !now.Before(t.ready) {
		return tier{name: t.to}
	}
	return t
}

// check refuses a request for the content of an archived blob.
func (t tier) check(now time.Time) *protocol.Fault {
	switch t = t.now(now); {
	case t.to != "":
		return beingRehydrated()
	case t.name == archive:
		return protocol.Refuse(http.StatusConflict, "BlobArchived", "This operation is not permitted on an archived blob.")
	}
	return nil
}

func beingRehydrated() *protocol.Fault {
	return protocol.Refuse(http.StatusConflict, "BlobBeingRehydrated", "This operation is not permitted because the blob is being rehydrated.")
}

// tierOf returns the tier that the request's header names, "" without one.
func tierOf(c *exchange.Call, kind string) (string, *protocol.Fault) {
	text := c.Header.Get("x-ms-access-tier")
	switch {
	case text == "":
		return "", nil
	case !slices.Contains(tierNames(), text):
		return "", exchange.InvalidHeader("x-ms-access-tier", text)
	case kind != blockBlob:
		return "", protocol.Refuse(http.StatusBadRequest, "AccessTierNotSupportedForBlobType", "The access tier is not supported for this blob type.")
	}
	return text, nil
}

// setTier moves the blob to another tier. It does not change the blob's ETag.
func (b *stored) setTier(c *exchange.Call) (*protocol.Answer, *protocol.Fault) {
	if err := b.lease.check(c, true); err != nil {
		return nil, err
	}
	to, err := tierOf(c, b.kind)
	switch current := b.tier.now(c.Now); {
	case err != nil:
		return nil, err
	case to == "":
		return nil, exchange.MissingHeader("x-ms-access-tier")
	case current.to != "":
		return nil, beingRehydrated()
	case to == archive && len(b.snapshots) > 0:
		return nil, snapshotsPresent()
	case current.name == archive && to != archive:
		b.tier = tier{name: archive, to: to, ready: c.Now.Add(rehydration)}
		return protocol.NewAnswer(http.StatusAccepted), nil
	}
	b.tier = tier{name: to}
	return protocol.NewAnswer(http.StatusOK), nil
}

// describe adds a tier that a request has set to the headers of a response.
func (t tier) describe(h http.Header, now time.Time) {
	if t = t.now(now); t.name == "" {
		return
	}
	h.Set("x-ms-access-tier", t.name)
	if t.to != "" {
		h.Set("x-ms-archive-status", t.archiveStatus())
	}
}

func (t tier) archiveStatus() string { return "rehydrate-pending-to-" + strings.ToLower(t.to) }
