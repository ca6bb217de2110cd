package encryption

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "REDACTED"

// secret is key material. Package fmt cannot call Format on an unexported field of another struct. With a
// verb that does not fit, it prints the value behind a single pointer; behind two pointers it prints only an
// address.
type secret struct{ octets **[]byte }

func newSecret(b []byte) secret {
	own := append([]byte(nil), b...)
	pointer := &own
	return secret{&pointer}
}

func (s secret) bytes() []byte {
	if s.octets == nil {
		return nil
	}
	return **s.octets
}

// hidden is embedded by types whose values must be redacted in every verb of fmt, in JSON and in slog.
type hidden struct{}

// Format implements fmt.Formatter: it prints REDACTED for every verb.
func (hidden) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalJSON implements json.Marshaler: it returns "REDACTED".
func (hidden) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// LogValue implements slog.LogValuer: it returns REDACTED.
func (hidden) LogValue() slog.Value { return slog.StringValue(redacted) }
