package authorization

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/simulator/environment"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// Authority identifies the sender of a request and what the sender may do.
//
// It ignores the age of a request's date, because clients use their own clock and the simulator's is virtual. It does not
// know from which IP address a request comes, so it verifies a signature's range of IP addresses but does not enforce it.
type Authority struct {
	account string
	key     []byte
	bearer  string
	clock   *environment.Clock
}

// PolicySource returns a stored access policy of a table, queue or container.
type PolicySource func(resource, id string) (Policy, bool)

// New returns the Authority of an account. bearer, if not empty, is a token that authorizes like the account's key.
func New(account string, key []byte, bearer string, clock *environment.Clock) *Authority {
	return &Authority{account: account, key: key, bearer: bearer, clock: clock}
}

func authenticationFailed() *protocol.Fault {
	return protocol.Refuse(http.StatusForbidden, "AuthenticationFailed", "Server failed to authenticate the request. "+
		"Make sure the value of Authorization header is formed correctly including the signature.")
}

func noAuthentication() *protocol.Fault {
	return protocol.Refuse(http.StatusUnauthorized, "NoAuthenticationInformation", "Server failed to authenticate the request. "+
		"Please refer to the information in the www-authenticate header.")
}

// PermissionMismatch returns the fault of a signature without the permission that the request needs.
func PermissionMismatch() *protocol.Fault {
	return protocol.Refuse(http.StatusForbidden, "AuthorizationPermissionMismatch", "This request is not authorized to perform this operation using this permission.")
}

// Failure returns the fault of a signature that does not match the request.
func Failure() *protocol.Fault {
	return protocol.Refuse(http.StatusForbidden, "AuthorizationFailure", "This request is not authorized to perform this operation.")
}

// Check authenticates a request to a service and returns the sender's Grant. policies returns the service's stored access
// policies.
func (a *Authority) Check(name protocol.Service, policies PolicySource, req *http.Request) (*Grant, *protocol.Fault) {
	header := protocol.Header(req.Header, "Authorization")
	if header == "" {
		if strings.Contains(req.URL.RawQuery, "sig=") {
			return a.checkSAS(name, policies, req)
		}
		return nil, noAuthentication()
	}
	scheme, credentials, _ := strings.Cut(header, " ")
	if scheme == "Bearer" {
		if a.bearer == "" || credentials != a.bearer {
			return nil, protocol.Refuse(http.StatusUnauthorized, "InvalidAuthenticationInfo", "Authentication information is not given in the correct format. Check the value of Authorization header.")
		}
		return &Grant{Owner: true}, nil
	}
	account, signature, _ := strings.Cut(credentials, ":")
	if account != a.account {
		return nil, authenticationFailed()
	}
	for text := range a.textsToSign(name, scheme, req) {
		if a.signed(text, signature) {
			return &Grant{Owner: true}, nil
		}
	}
	return nil, authenticationFailed()
}

// signed reports whether signature is the signature of text with the account's key.
func (a *Authority) signed(text, signature string) bool {
	sum, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		return false
	}
	h := hmac.New(sha256.New, a.key)
	h.Write([]byte(text)) // never returns an error
	return hmac.Equal(sum, h.Sum(nil))
}

// textsToSign yields the texts that the request's signature may sign, or nothing if the service does not
// support the scheme. It yields the most likely text first, and makes the others only if needed.
func (a *Authority) textsToSign(name protocol.Service, scheme string, req *http.Request) iter.Seq[string] {
	return func(yield func(string) bool) {
		date := protocol.Header(req.Header, "x-ms-date")
		if date == "" {
			date = protocol.Header(req.Header, "Date")
		}
		switch {
		case date == "":
		case name == protocol.Table && scheme == "SharedKeyLite":
			yield(date + "\n" + a.liteResource(req.URL))
		case name == protocol.Table && scheme == "SharedKey":
			yield(strings.Join([]string{req.Method, protocol.Header(req.Header, "Content-MD5"), protocol.Header(req.Header, "Content-Type"), date, a.liteResource(req.URL)}, "\n"))
		case name != protocol.Table && scheme == "SharedKey":
			_ = yield(a.fullText(req, strings.Compare)) && yield(a.fullText(req, compareWithoutDashes))
		}
	}
}

// liteResource returns the resource of a request to the table service as it is signed: account, path, and the comp parameter
// if there is one.
func (a *Authority) liteResource(u *url.URL) string {
	resource := "/" + a.account + pathOf(u)
	if strings.Contains(u.RawQuery, "comp=") {
		if comp := protocol.Query(u).Get("comp"); comp != "" {
			resource += "?comp=" + comp
		}
	}
	return resource
}

func pathOf(u *url.URL) string {
	if path := u.EscapedPath(); path != "" {
		return path
	}
	return "/"
}

// fullText returns the text that clients of queues and blobs sign, with the x-ms- headers sorted by order.
// Clients sort them either by bytes or by compareWithoutDashes, which is reported to be the service's order;
// the two differ for few requests.
func (a *Authority) fullText(req *http.Request, order func(a, b string) int) string {
	h := req.Header
	length := protocol.Header(h, "Content-Length")
	if length == "0" {
		length = ""
	}
	date := protocol.Header(h, "Date")
	if protocol.Header(h, "x-ms-date") != "" {
		date = ""
	}
	return strings.Join([]string{req.Method, protocol.Header(h, "Content-Encoding"), protocol.Header(h, "Content-Language"), length, protocol.Header(h, "Content-MD5"),
		protocol.Header(h, "Content-Type"), date, protocol.Header(h, "If-Modified-Since"), protocol.Header(h, "If-Match"), protocol.Header(h, "If-None-Match"),
		protocol.Header(h, "If-Unmodified-Since"), protocol.Header(h, "Range"), canonicalHeaders(h, order), a.fullResource(req.URL)}, "\n")
}

// compareWithoutDashes compares lower-case names without their dashes; underscores sort before digits.
func compareWithoutDashes(a, b string) int {
	weigh := strings.NewReplacer("-", "", "_", "!")
	return cmp.Or(strings.Compare(weigh.Replace(a), weigh.Replace(b)), strings.Compare(a, b))
}

func canonicalHeaders(h http.Header, order func(a, b string) int) string {
	values := map[string]string{}
	var names []string
	for name, v := range h {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-ms-") {
			names = append(names, name)
			values[name] = strings.Join(v, ",")
		}
	}
	slices.SortFunc(names, order)
	for i, name := range names {
		names[i] = name + ":" + values[name]
	}
	return strings.Join(names, "\n")
}

// fullResource returns the resource of a request to the queue or blob service as it is signed: account, path and all query
// parameters.
func (a *Authority) fullResource(u *url.URL) string {
	resource := "/" + a.account + pathOf(u)
	query := protocol.Query(u)
	names := make([]string, 0, len(query))
	for name := range query {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		slices.Sort(query[name])
		resource += "\n" + strings.ToLower(name) + ":" + strings.Join(query[name], ",")
	}
	return resource
}
