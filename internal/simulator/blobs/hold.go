package blobs

import (
	"net/http"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator/exchange"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// hold keeps a blob from being changed or deleted; the zero value does not.
type hold struct {
	until  time.Time // end of the immutability policy
	locked bool      // the policy can neither be deleted nor shortened
	legal  bool      // the blob has a legal hold
}

// check refuses a request that changes or deletes the blob.
func (h *hold) check(now time.Time) *protocol.Fault {
	switch {
	case h.legal:
		return protocol.Refuse(http.StatusConflict, "BlobImmutableDueToLegalHold",
			"This operation is not permitted as the blob is immutable due to one or more legal holds.")
	case now.Before(h.until):
		return immutable()
	}
	return nil
}

func immutable() *protocol.Fault {
	return protocol.Refuse(http.StatusConflict, "BlobImmutableDueToPolicy",
		"This operation is not permitted as the blob is immutable due to a policy.")
}

// setHold sets or removes the blob's immutability policy, or its legal hold.
func (b *stored) setHold(c *exchange.Call, comp string) (*protocol.Answer, *protocol.Fault) {
	h := &b.hold
	switch {
	case comp == "legalhold":
		text := c.Header.Get("x-ms-legal-hold")
		if text != "true" && text != "false" {
			return nil, exchange.InvalidHeader("x-ms-legal-hold", text)
		}
		h.legal = text == "true"
	case c.Req.Method == http.MethodDelete:
		if h.locked && c.Now.Before(h.until) {
			return nil, protocol.Refuse(http.StatusConflict, "ImmutabilityPolicyDeleteOnLockedPolicy",
				"The operation is not permitted on a locked immutability policy.")
		}
		h.until, h.locked = time.Time{}, false
	default:
		text, mode := c.Header.Get("x-ms-immutability-policy-until-date"), c.Header.Get("x-ms-immutability-policy-mode")
		until, err := http.ParseTime(text)
		switch {
		case err != nil || !until.After(c.Now):
			return nil, exchange.InvalidHeader("x-ms-immutability-policy-until-date", text)
		case mode != "" && !strings.EqualFold(mode, "Unlocked") && !strings.EqualFold(mode, "Locked"):
			return nil, exchange.InvalidHeader("x-ms-immutability-policy-mode", mode)
		case h.locked && until.Before(h.until):
			return nil, immutable()
		}
		h.until, h.locked = until, h.locked || strings.EqualFold(mode, "Locked")
	}
	a := protocol.NewAnswer(http.StatusOK)
	h.describe(a.Header)
	return a, nil
}

// describe adds the hold to the headers of a response.
func (h *hold) describe(to http.Header) {
	if !h.until.IsZero() {
		to.Set("x-ms-immutability-policy-until-date", exchange.Time(h.until))
		to.Set("x-ms-immutability-policy-mode", map[bool]string{false: "unlocked", true: "locked"}[h.locked])
	}
	if h.legal {
		to.Set("x-ms-legal-hold", "true")
	}
}
