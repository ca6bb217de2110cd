package wire

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

const redacted = "REDACTED"

// Redact returns err with every shared access signature in its text replaced. The text of a transport error contains the URL
// of its request, and with a SAS credential the URL contains the secret.
func Redact(err error) error {
	if err == nil || !hasSecret(err.Error()) {
		return err
	}
	if u, ok := errors.AsType[*url.Error](err); ok && !hasSecret(u.Err.Error()) {
		return &url.Error{Op: u.Op, URL: RedactText(u.URL), Err: u.Err}
	}
	return &redactedError{text: RedactText(err.Error()), causes: innocentCauses(err, nil)}
}

func hasSecret(text string) bool { return RedactText(text) != text }

// innocentCauses returns the wrapped errors whose text contains no secret, so that errors.Is still finds a cancelled context
// or a closed connection.
func innocentCauses(err error, found []error) []error {
	var wrapped []error
	switch w := err.(type) {
	case interface{ Unwrap() error }:
		wrapped = []error{w.Unwrap()}
	case interface{ Unwrap() []error }:
		wrapped = w.Unwrap()
	}
	for _, cause := range wrapped {
		switch {
		case cause == nil:
		case hasSecret(cause.Error()):
			found = innocentCauses(cause, found)
		default:
			found = append(found, cause)
		}
	}
	return found
}

type redactedError struct {
	text   string
	causes []error
}

func (e *redactedError) Error() string   { return e.text }
func (e *redactedError) Unwrap() []error { return e.causes }

// RedactText replaces the values of signatures and keys in a text: in a URL, in a connection string, or in the service's
// message that "the MAC signature found in the HTTP request '...' is not the same".
func RedactText(text string) string {
	for _, mark := range []string{"sig=", "AccountKey=", "SharedAccessSignature=", "SharedKeyLite ", "SharedKey ", "HTTP request '", "HTTP request &#39;"} {
		text = redactAfter(text, mark, "&; \"'\n\r\t<>")
	}
	return text
}

// redactAfter replaces the text after each mark, up to one of the characters in ends.
func redactAfter(text, mark, ends string) string {
	var b strings.Builder
	for {
		i := strings.Index(text, mark)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		i += len(mark)
		b.WriteString(text[:i])
		b.WriteString(redacted)
		end := strings.IndexAny(text[i:], ends)
		if end < 0 {
			return b.String()
		}
		text = text[i+end:]
	}
}

// Transport wraps a caller's own transport and removes secrets from its errors. The SDK logs these errors before any policy
// of this library sees them, and itself redacts only the first occurrence of the URL.
type Transport struct {
	Inner policy.Transporter
}

// Do sends the request.
func (t Transport) Do(req *http.Request) (*http.Response, error) {
	resp, err := t.Inner.Do(req)
	return resp, Redact(err)
}
