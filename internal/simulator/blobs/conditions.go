package blobs

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator/exchange"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// conditions are the four conditional headers of a request.
type conditions struct {
	match, noneMatch               string
	modifiedSince, unmodifiedSince string
}

// conditionsOf reads the conditional headers; the prefix is x-ms-source- for conditions on the source of a
// copy.
func conditionsOf(h http.Header, prefix string) conditions {
	return conditions{
		match: h.Get(prefix + "If-Match"), noneMatch: h.Get(prefix + "If-None-Match"),
		modifiedSince: h.Get(prefix + "If-Modified-Since"), unmodifiedSince: h.Get(prefix + "If-Unmodified-Since"),
	}
}

func conditionNotMet(status int) *protocol.Fault {
	return protocol.Refuse(status, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met.")
}

// checkRead checks the conditions of a request that reads a blob. No condition may require that a blob does not exist.
func (k conditions) checkRead(b *stored) *protocol.Fault {
	if k.noneMatch == "*" {
		return protocol.Refuse(http.StatusBadRequest, "UnsatisfiableCondition",
			"The request includes an unsatisfiable condition for this operation.")
	}
	return k.check(b.etag, b.modified, true)
}

// check checks the conditions on an existing resource. If a read finds nothing new, the status is 304, otherwise 412.
func (k conditions) check(etag string, modified time.Time, read bool) *protocol.Fault {
	failed := conditionNotMet(http.StatusPreconditionFailed)
	unmodifiedSince, err := conditionTime("If-Unmodified-Since", k.unmodifiedSince)
	if err != nil {
		return err
	}
	modifiedSince, err := conditionTime("If-Modified-Since", k.modifiedSince)
	if err != nil {
		return err
	}
	// Times in headers are whole seconds, so the blob's time is truncated before the comparison.
	modified = modified.Truncate(time.Second)
	if k.match != "" {
		if !matchesETag(k.match, etag) {
			return failed
		}
	} else if !unmodifiedSince.IsZero() && modified.After(unmodifiedSince) {
		return failed
	}
	unchanged := failed
	if read {
		unchanged = conditionNotMet(http.StatusNotModified)
	}
	if k.noneMatch != "" {
		if matchesETag(k.noneMatch, etag) {
			return unchanged
		}
	} else if !modifiedSince.IsZero() && !modified.After(modifiedSince) {
		return unchanged
	}
	return nil
}

// checkReplace checks the conditions of a request that writes a whole blob; b is the existing blob or nil.
func (k conditions) checkReplace(b *stored) *protocol.Fault {
	if b == nil {
		if k.match != "" {
			return conditionNotMet(http.StatusPreconditionFailed)
		}
		return nil
	}
	if k.noneMatch == "*" {
		return protocol.Refuse(http.StatusConflict, "BlobAlreadyExists", "The specified blob already exists.")
	}
	return k.checkChange(b)
}

// checkChange checks the conditions of a request that changes a blob. Only a read may list several ETags.
func (k conditions) checkChange(b *stored) *protocol.Fault {
	if strings.Contains(k.match, ",") || strings.Contains(k.noneMatch, ",") {
		return protocol.Refuse(http.StatusBadRequest, "MultipleConditionHeadersNotSupported",
			"Multiple condition headers are not supported.")
	}
	return k.check(b.etag, b.modified, false)
}

func matchesETag(list, etag string) bool {
	for _, item := range strings.Split(list, ",") {
		if item = strings.TrimSpace(item); item == "*" || sameETag(item, etag) {
			return true
		}
	}
	return false
}

// conditionTime parses the time of a condition; without a condition it returns the zero Time.
func conditionTime(name, text string) (time.Time, *protocol.Fault) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := http.ParseTime(text)
	if err != nil {
		return time.Time{}, exchange.InvalidHeader(name, text)
	}
	return t, nil
}

// ticksToUnix is the number of ticks of 100 ns between the year 1 and the Unix epoch.
const ticksToUnix = 621355968000000000

// newETag makes an ETag from the time of a change, in ticks as on the service. No two stamps of a Clock are
// equal, so all ETags differ.
func newETag(stamp time.Time) string {
	return fmt.Sprintf(`"0x%X"`, ticksToUnix+stamp.Unix()*1e7+int64(stamp.Nanosecond()/100))
}

// sameETag compares ETags as the services do, which also accept an ETag without quotes.
func sameETag(a, b string) bool { return strings.Trim(a, `"`) == strings.Trim(b, `"`) }
