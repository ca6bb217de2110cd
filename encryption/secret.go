package encryption

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "REDACTED"

// secret is key material. It hides behind two pointers, since fmt cannot call Format on an unexported field of somebody's
// struct: there it prints the address of a pointer, but what is behind a single one where the verb does not fit.
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

// hidden makes the types that embed it redact themselves: in every verb of fmt, in JSON, in slog.
type hidden struct{}

// Format implements fmt.Formatter.
func (hidden) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalJSON implements json.Marshaler.
func (hidden) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// LogValue implements slog.LogValuer.
func (hidden) LogValue() slog.Value { return slog.StringValue(redacted) }
