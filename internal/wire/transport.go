package wire

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/internal/kinds"
)

// Transport sends requests to the address that they name and to no other, and removes secrets from errors: the SDK logs these errors before
// any policy of this library sees them, and itself redacts only the first occurrence of the URL.
type Transport struct {
	inner    policy.Transporter
	emulator func(host string) bool // whether an emulator listens at the host by default
}

// NewTransport wraps a transport. An http.Client follows redirects: it would show the whole address, with a shared access signature, to
// another host as Referer, repeat a body there, and return that host's answer. So NewTransport replaces an http.Client by a copy that
// follows none. If nothing listens at the address of an emulator, the SDK does not repeat the request.
func NewTransport(inner policy.Transporter, emulator func(host string) bool) Transport {
	client, ok := inner.(*http.Client)
	if !ok {
		return Transport{inner, emulator}
	}
	copied := http.Client{}
	if client != nil {
		copied = *client
	}
	copied.CheckRedirect = followNone
	return Transport{&copied, emulator}
}

func followNone(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Do sends the request. It returns an error for a redirect, and for a response from another host than the one that the request names.
func (t Transport) Do(req *http.Request) (*http.Response, error) {
	asked := *req.URL // a transport may change the request
	resp, err := t.inner.Do(req)
	switch {
	case err != nil && errors.Is(err, syscall.ECONNREFUSED) && t.emulator(asked.Host):
		return nil, &silent{Redact(err), asked.Host}
	case err != nil:
		return resp, Redact(err)
	case resp.Request != nil && resp.Request.URL != nil && (!strings.EqualFold(resp.Request.URL.Host, asked.Host) || resp.Request.URL.Scheme != asked.Scheme):
		resp.Body.Close()
		return nil, &foreign{fmt.Errorf("the transport returned a response of another host than %s, which the request names: it must follow no redirect", asked.Host)}
	case isRedirect(resp.StatusCode):
		resp.Body.Close()
		return nil, &foreign{fmt.Errorf("%s answered with a redirect, status %d, and none is followed: set the endpoint to the service itself, and check any proxy before it", asked.Host, resp.StatusCode)}
	}
	return resp, nil
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// foreign is the error of a response that is not the service's own. The SDK does not repeat the request.
type foreign struct{ cause error }

func (e *foreign) NonRetriable() {}
func (e *foreign) Error() string { return e.cause.Error() }

// Unwrap returns the cause that all unreadable responses have.
func (e *foreign) Unwrap() error { return kinds.ErrForeign }

// IsForeign reports whether err is about a response that is not the service's own.
func IsForeign(err error) bool { return errors.Is(err, kinds.ErrForeign) }

// silent is the error of a request to an emulator that does not run: no repetition helps within the seconds for which the SDK repeats.
type silent struct {
	error
	host string
}

func (e *silent) NonRetriable() {}
func (e *silent) Unwrap() error { return e.error }

// Error says what to do.
func (e *silent) Error() string {
	return fmt.Sprintf("%v; nothing listens at %s: start the emulator, for example with npx azurite --skipApiVersionCheck", e.error, e.host)
}
