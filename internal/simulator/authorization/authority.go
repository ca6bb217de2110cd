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

// Authority tells who sends a request and what they may do.
//
// It does not look at the age of a request's date: clients date by their own clock, and the simulator's is virtual. Nor
// does it know where a request comes from, so a signature's range of IP addresses is signed and not enforced.
type Authority struct {
	account string
	key     []byte
	bearer  string
	clock   *environment.Clock
}

// PolicySource finds the stored access policy of a table, queue or container.
type PolicySource func(resource, id string) (Policy, bool)

// New makes the authority of an account. bearer, if it is not empty, is a token that is let in like the account's key.
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

// PermissionMismatch refuses a sender whose signature lacks the permission for a request.
func PermissionMismatch() *protocol.Fault {
	return protocol.Refuse(http.StatusForbidden, "AuthorizationPermissionMismatch", "This request is not authorized to perform this operation using this permission.")
}

// Failure refuses a sender whose signature is for something else.
func Failure() *protocol.Fault {
	return protocol.Refuse(http.StatusForbidden, "AuthorizationFailure", "This request is not authorized to perform this operation.")
}

// Check authenticates a request to a service, whose stored access policies are those of the source.
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

// signed tells whether signature is that of text under the account's key.
func (a *Authority) signed(text, signature string) bool {
	sum, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		return false
	}
	h := hmac.New(sha256.New, a.key)
	h.Write([]byte(text)) // a hash takes everything
	return hmac.Equal(sum, h.Sum(nil))
}

// textsToSign are the texts one of which the request's signature must be of; none for a scheme that the service does not
// know. The likely one comes first, and the others are not made if nobody asks for them.
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

// liteResource names what a request to the table service is about: account, path, and comp if there is one.
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

// fullText is the text that clients of queues and blobs sign. They put the x-ms- headers into the order of their bytes, or
// into the one that the service is said to have, compareWithoutDashes; the two differ for few requests.
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

// compareWithoutDashes orders names in lower case: dashes do not count, and underscores come before digits.
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

// fullResource names what a request to the queue or blob service is about: account, path and the whole query.
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
