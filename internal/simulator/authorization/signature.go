package authorization

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// The versions of the protocol in which lines were added to the signed text of a shared access signature.
const (
	sasOldest          = "2018-11-09" // the oldest version that the simulator supports
	sasEncryptionScope = "2020-12-06"
)

// checkSAS authenticates a request by the shared access signature in its URL. It verifies the signature before it interprets
// the parameters.
func (a *Authority) checkSAS(name protocol.Service, policies PolicySource, req *http.Request) (*Grant, *protocol.Fault) {
	q := protocol.Query(req.URL)
	if q.Get("sv") < sasOldest {
		return nil, authenticationFailed()
	}
	var g *Grant
	var fault *protocol.Fault
	if q.Has("ss") || q.Has("srt") {
		g, fault = a.accountGrant(name, q)
	} else {
		g, fault = a.serviceGrant(name, policies, q, req.URL.Path)
	}
	if fault != nil {
		return nil, fault
	}
	if q.Get("spr") == "https" && req.URL.Scheme != "https" {
		return nil, protocol.Refuse(http.StatusForbidden, "AuthorizationProtocolMismatch", "This request is not authorized to perform this operation using this protocol.")
	}
	return g, nil
}

// accountGrant returns the grant of an account signature.
func (a *Authority) accountGrant(name protocol.Service, q url.Values) (*Grant, *protocol.Fault) {
	lines := []string{a.account, q.Get("sp"), q.Get("ss"), q.Get("srt"), q.Get("st"), q.Get("se"), q.Get("sip"), q.Get("spr"), q.Get("sv")}
	if q.Get("sv") >= sasEncryptionScope {
		lines = append(lines, q.Get("ses"))
	}
	if !a.signed(strings.Join(lines, "\n")+"\n", q.Get("sig")) {
		return nil, authenticationFailed()
	}
	if q.Get("sp") == "" || q.Get("srt") == "" || !a.within(q.Get("st"), q.Get("se")) {
		return nil, authenticationFailed()
	}
	if !strings.Contains(q.Get("ss"), string(name[0])) {
		return nil, protocol.Refuse(http.StatusForbidden, "AuthorizationServiceMismatch", "This request is not authorized to perform this operation using this service.")
	}
	return &Grant{permissions: q.Get("sp"), resources: q.Get("srt")}, nil
}

// serviceGrant returns the grant of a signature for one table, queue, container or blob.
func (a *Authority) serviceGrant(name protocol.Service, policies PolicySource, q url.Values, path string) (*Grant, *protocol.Fault) {
	resource, lines := a.serviceLines(name, q, path)
	if lines == nil || !a.signed(strings.Join(lines, "\n"), q.Get("sig")) {
		return nil, authenticationFailed()
	}
	permissions, start, expiry, ok := effective(policies, resource, q)
	if !ok || permissions == "" || !a.within(start, expiry) {
		return nil, authenticationFailed()
	}
	g := &Grant{permissions: permissions}
	if name == protocol.Table {
		g.table, g.Range = resource, RangeOf(q)
		if g.rowless() {
			return nil, authenticationFailed()
		}
	}
	return g, nil
}

// serviceLines returns the lines that a service signature signs, and the name of its table, queue or container. It returns no
// lines if the signature is not for the resource of the request.
func (a *Authority) serviceLines(name protocol.Service, q url.Values, path string) (resource string, lines []string) {
	head := func(canonical string) []string {
		return []string{q.Get("sp"), q.Get("st"), q.Get("se"), "/" + string(name) + "/" + a.account + "/" + canonical,
			q.Get("si"), q.Get("sip"), q.Get("spr"), q.Get("sv")}
	}
	if name == protocol.Table {
		resource = strings.ToLower(q.Get("tn"))
		if resource == "" {
			return "", nil
		}
		return resource, append(head(resource), q.Get("spk"), q.Get("srk"), q.Get("epk"), q.Get("erk"))
	}
	resource, blob, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if name == protocol.Queue {
		return resource, head(resource)
	}
	canonical := resource
	switch q.Get("sr") {
	case "b":
		if blob == "" {
			return "", nil
		}
		canonical += "/" + strings.ReplaceAll(blob, "\\", "/")
	case "c":
	default: // directories, snapshots and versions are not simulated
		return "", nil
	}
	lines = append(head(canonical), q.Get("sr"), q.Get("snapshot"))
	if q.Get("sv") >= sasEncryptionScope {
		lines = append(lines, q.Get("ses"))
	}
	return resource, append(lines, q.Get("rscc"), q.Get("rscd"), q.Get("rsce"), q.Get("rscl"), q.Get("rsct"))
}

// effective combines a signature with the stored policy that it names. Each of start, expiry and permission
// may be in only one of the two.
func effective(policies PolicySource, resource string, q url.Values) (permissions, start, expiry string, ok bool) {
	permissions, start, expiry = q.Get("sp"), q.Get("st"), q.Get("se")
	id := q.Get("si")
	if id == "" {
		return permissions, start, expiry, true
	}
	policy, ok := policies(resource, id)
	if !ok {
		return "", "", "", false
	}
	for _, pair := range []struct {
		of     *string
		stored string
	}{{&permissions, policy.Permission}, {&start, policy.Start}, {&expiry, policy.Expiry}} {
		if *pair.of != "" && pair.stored != "" {
			return "", "", "", false
		}
		*pair.of += pair.stored
	}
	return permissions, start, expiry, true
}

// within reports whether the current time is not before start, if there is one, and before expiry, which is required.
func (a *Authority) within(start, expiry string) bool {
	now := a.clock.Now()
	if start != "" {
		from, ok := ParseTime(start)
		if !ok || now.Before(from) {
			return false
		}
	}
	to, ok := ParseTime(expiry)
	return ok && now.Before(to)
}

// ParseTime parses the forms of ISO 8601 that signatures and policies may use.
func ParseTime(text string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
