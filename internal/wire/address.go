package wire

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// Address is the address of one entity.
type Address struct {
	Table, PartitionKey, RowKey string
}

// replaceStub replaces the stub address in the SDK's URL by the real one. It returns an error if a new version of the SDK
// writes addresses in another form, because the request would then address the stub.
func (a *Address) replaceStub(u *url.URL) error {
	stub := a.Table + "(PartitionKey='" + StubKey + "',RowKey='" + StubKey + "')"
	prefix, ok := strings.CutSuffix(u.Path, stub)
	if !ok {
		return errors.New("the SDK addressed an entity in an unknown form; use the version of the SDK in this module's go.mod")
	}
	escaped := (&url.URL{Path: prefix}).EscapedPath()
	u.Path = prefix + a.Table + "(PartitionKey='" + strings.ReplaceAll(a.PartitionKey, "'", "''") + "',RowKey='" + strings.ReplaceAll(a.RowKey, "'", "''") + "')"
	u.RawPath = string(a.AppendEscaped([]byte(escaped)))
	return nil
}

// AppendEscaped appends the entity's path segment, escaped for a URL: quotes are doubled, then percent-encoded.
func (a *Address) AppendEscaped(dst []byte) []byte {
	dst = append(append(dst, a.Table...), "(PartitionKey='"...)
	dst = appendEscapedKey(dst, a.PartitionKey)
	dst = append(dst, "',RowKey='"...)
	dst = appendEscapedKey(dst, a.RowKey)
	return append(dst, "')"...)
}

func appendEscapedKey(dst []byte, key string) []byte {
	for i := 0; i < len(key); i++ {
		switch c := key[i]; {
		case unreserved(c):
			dst = append(dst, c)
		case c == '\'':
			dst = append(dst, "%27%27"...)
		default:
			dst = appendPercent(dst, c)
		}
	}
	return dst
}

// unreserved reports whether c is one of RFC 3986's unreserved characters. Every other character of a key or name is
// percent-encoded in a path, because proxies, gateways and services treat '+', '&', '=', ':', '@' and '$' differently.
func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' || c == '~'
}

func appendPercent(dst []byte, c byte) []byte {
	const upperHex = "0123456789ABCDEF"
	return append(dst, '%', upperHex[c>>4], upperHex[c&15])
}

// Paths is the part of Caller that is for all calls. It percent-encodes the characters that the SDK
// does not encode in the paths that it builds. It runs before the credential of an attempt signs the request,
// so the signature covers its result.
type Paths struct {
	// Tables is set for the table service. In its paths only text between single quotes is a key or name, and '$', '=', ','
	// and parentheses outside of quotes are syntax. In paths of other services all text between slashes is a name.
	Tables bool
}

// Do encodes the path and sends the request.
func (p Paths) Do(req *policy.Request) (*http.Response, error) {
	u := req.Raw().URL
	escaped := u.EscapedPath()
	if full := p.encode(escaped); full != escaped {
		u.RawPath = full
	}
	return req.Next()
}

// encode percent-encodes the names in a path that is already percent-encoded in part. The result decodes to the same path.
func (p Paths) encode(escaped string) string {
	var dst []byte
	quoted, done := !p.Tables, 0
	for i := 0; i < len(escaped); i++ {
		switch c := escaped[i]; {
		case p.Tables && c == '\'':
			quoted = !quoted
		case quoted && !unreserved(c) && c != '%' && c != '/':
			dst = appendPercent(append(dst, escaped[done:i]...), c)
			done = i + 1
		}
	}
	if dst == nil {
		return escaped
	}
	return string(append(dst, escaped[done:]...))
}
