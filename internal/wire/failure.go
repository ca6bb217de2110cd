package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// Unreachable reports whether the network failed, so that there was no response or only a part of one. It is false if
// the caller's context has ended, and if the caller is the reason that an attempt was not sent, for example because a
// reader that the caller gave has failed.
func Unreachable(err error) bool {
	if HasEnded(err) {
		return false
	}
	if _, ok := errors.AsType[NotSent](err); ok {
		return false
	}
	var network net.Error
	if !errors.As(err, &network) {
		return errors.Is(err, io.ErrUnexpectedEOF)
	}
	_, bare := network.(syscall.Errno) // the cause of an *fs.PathError; errors of the network wrap it in a net.Error of their own
	return !bare
}

// NoToken reports whether the credential gave no token, so that nothing was sent. It is false if the caller's context has ended.
func NoToken(err error) bool {
	_, ok := errors.AsType[*noToken](err)
	return ok && !HasEnded(err)
}

// HasEnded reports whether err says that a context has ended: it was cancelled, or its deadline passed.
func HasEnded(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Tokens wraps a caller's credential. It marks the credential's errors for NoToken: nothing else distinguishes them from errors of the
// caller's policies, since each kind of credential has its own types of errors.
type Tokens struct{ Credential azcore.TokenCredential }

// GetToken returns the credential's token.
func (t Tokens) GetToken(ctx context.Context, options policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := t.Credential.GetToken(ctx, options)
	if err != nil {
		err = &noToken{err}
	}
	return token, err
}

// noToken keeps its cause visible: the SDK does not repeat a request whose credential failed for good.
type noToken struct{ cause error }

func (e *noToken) Error() string { return "the credential gave no token: " + e.cause.Error() }
func (e *noToken) Unwrap() error { return e.cause }

// IsStatus reports whether err is a response of the service with this status. Responses to HEAD have no error code.
func IsStatus(err error, status int) bool {
	var answer *azcore.ResponseError
	return errors.As(err, &answer) && answer.StatusCode == status
}

// HasCode reports whether err is a response of the service with one of these error codes.
func HasCode(err error, codes ...string) bool {
	var answer *azcore.ResponseError
	return errors.As(err, &answer) && slices.Contains(codes, answer.ErrorCode)
}

// IsETag reports whether text has the form of an ETag: W/"x" or "x", in ASCII without spaces. Without this
// check, the library would notice an ETag that was lost or truncated in transit only when a later write fails
// with a conflict.
func IsETag(text string) bool {
	text = strings.TrimPrefix(text, "W/")
	if len(text) < 3 || text[0] != '"' || text[len(text)-1] != '"' {
		return false
	}
	for _, c := range []byte(text[1 : len(text)-1]) {
		if c <= ' ' || c == '"' || c >= 0x7F {
			return false
		}
	}
	return true
}
