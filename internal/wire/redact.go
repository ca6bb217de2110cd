package wire

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

const redacted = "REDACTED"

// Redact returns err with every shared access signature in its text replaced. A transport error carries the whole
// address of its request, and with a SAS credential that is the secret itself.
func Redact(err error) error {
	if err == nil || !hasSecret(err.Error()) {
		return err
	}
	var u *url.Error
	if errors.As(err, &u) && !hasSecret(u.Err.Error()) {
		return &url.Error{Op: u.Op, URL: RedactText(u.URL), Err: u.Err}
	}
	redacted := &redactedError{text: RedactText(err.Error()), causes: innocentCauses(err, nil)}
	if response := redactedResponse(err); response != nil {
		redacted.causes = append(redacted.causes, response)
	}
	return redacted
}

func hasSecret(text string) bool { return RedactText(text) != text }

// innocentCauses walks down to the wrapped errors that hold no secret, so that errors.Is still sees a cancelled
// context or a closed connection.
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

// redactedResponse keeps status and code of a service's answer whose text quotes a secret.
func redactedResponse(err error) error {
	var response *azcore.ResponseError
	if !errors.As(err, &response) {
		return nil
	}
	innocent := &azcore.ResponseError{ErrorCode: response.ErrorCode, StatusCode: response.StatusCode}
	// Its text cannot be set in another way, and is made of the raw answer when it is not set.
	text, _ := json.Marshal(map[string]any{
		"errorCode": response.ErrorCode, "statusCode": response.StatusCode, "errorMessage": RedactText(response.Error()),
	})
	if innocent.UnmarshalJSON(text) != nil {
		return nil
	}
	return innocent
}

type redactedError struct {
	text   string
	causes []error
}

func (e *redactedError) Error() string   { return e.text }
func (e *redactedError) Unwrap() []error { return e.causes }

// RedactText replaces the values of signatures and keys in a text, an address or a connection string.
func RedactText(text string) string {
	for _, mark := range []string{"sig=", "AccountKey=", "SharedAccessSignature=", "SharedKeyLite ", "SharedKey "} {
		text = redactAfter(text, mark)
	}
	return text
}

func redactAfter(text, mark string) string {
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
		end := strings.IndexAny(text[i:], "&; \"'\n\r\t<>")
		if end < 0 {
			return b.String()
		}
		text = text[i+end:]
	}
}
