package eventual

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	envelopeVersion = 1

	// maxText is the service's limit on a message's text.
	maxText = 64 << 10
	// maxInline is how many bytes of JSON fit into maxText as base64.
	maxInline = maxText / 4 * 3
	// maxBody limits a body that is stored in a blob: sender and worker hold it in memory.
	maxBody = 16 << 20
	// maxType limits the name of a message's type.
	maxType = 200

	// ownTypes is the prefix of the types of the library's own messages.
	ownTypes = "tablepatterns."
)

// envelope is the stored form of a message: base64 of this as JSON, since the queue service accepts only text, and
// its XML no control characters. It is a stored format: a change needs a new version.
//
// Later has two tags for one meaning: "embed" in the JSON module and from Go 1.27 on, "inline" in the experiment of Go 1.25 and 1.26.
type envelope struct {
	Version int            `json:"v"`
	ID      string         `json:"id"`
	Type    string         `json:"type"`
	Sent    time.Time      `json:"sent"`
	Steps   []string       `json:"steps,omitempty"` // finished ones
	Waits   int            `json:"waits,omitzero"`  // deliveries to older builds, which did not know the intent's names
	Body    jsontext.Value `json:"body,omitzero"`
	Claim   *claim         `json:"claim,omitzero"`        // replaces a body that is too large for a message
	Trace   string         `json:"traceparent,omitempty"` // W3C trace context of the sender, if its account has a TracerProvider
	Later   jsontext.Value `json:",embed,inline"`         // members of a later version, written back with the steps
	MAC     string         `json:"mac,omitempty"`         // see SigningKeys; sign adds it as the last member

	raw []byte // the JSON from which it was read, including the MAC
}

// claim names the blob of a large body, and says which length and hash the body must have.
type claim struct {
	Blob   string `json:"blob"` // the blob claims/<Blob>
	Length int    `json:"length"`
	SHA256 string `json:"sha256"`
}

// encode returns the message's text, signed if there are keys. fits is false if it exceeds the service's limit.
func (e *envelope) encode(queue string, keys *SigningKeys) (text string, fits bool, err error) {
	plain := *e
	plain.MAC = ""
	raw, err := json.Marshal(&plain)
	if err != nil {
		return "", false, err
	}
	if keys != nil {
		raw = keys.sign(queue, raw)
	}
	return base64.StdEncoding.EncodeToString(raw), len(raw) <= maxInline, nil
}

// Reasons why a message cannot be read. None of these errors quotes the message.
var (
	errNoEnvelope = errors.New("the message is neither the JSON of an envelope nor base64 of it; send messages with Queue.Send")
	errNoType     = errors.New("the envelope has no member type; name the type of a handler")
)

// decodeEnvelope reads a message's text: base64, with or without padding, or plain JSON, as people and other programs
// send it. Missing members are filled in from what the service reports about the message.
func decodeEnvelope(text, serviceID string, inserted time.Time) (*envelope, error) {
	raw := []byte(strings.TrimSpace(text))
	if len(raw) == 0 || raw[0] != '{' {
		decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(string(raw), "="))
		if err != nil {
			return nil, errNoEnvelope
		}
		raw = decoded
	}
	var head struct {
		Version int `json:"v"`
	}
	if err := json.Unmarshal(raw, &head); err != nil || !jsontext.Value(raw).IsValid() {
		return nil, errNoEnvelope
	}
	if head.Version != 0 && head.Version != envelopeVersion {
		return nil, fmt.Errorf("the envelope has version %d, and this build reads version %d; run workers of the newer build", head.Version, envelopeVersion)
	}
	var e envelope
	if err := json.Unmarshal(raw, &e); err != nil {
		return nil, errNoEnvelope
	}
	if e.Type == "" {
		return nil, errNoType
	}
	e.Version, e.raw = envelopeVersion, raw
	e.ID = cmp.Or(e.ID, serviceID)
	if e.Sent.IsZero() {
		e.Sent = inserted
	}
	if e.Claim == nil && e.Body == nil {
		e.Body = jsontext.Value("null")
	}
	return &e, nil
}

// checkType refuses illegal names of types.
func checkType(messageType string) error {
	switch {
	case messageType == "":
		return errors.New("the message type is empty; give the type of a handler")
	case len(messageType) > maxType:
		return fmt.Errorf("the message type has %d bytes; it must have at most %d", len(messageType), maxType)
	case strings.ToValidUTF8(messageType, "") != messageType:
		return errors.New("the message type is not valid UTF-8")
	case strings.ContainsFunc(messageType, unicode.IsControl):
		return fmt.Errorf("message type %q has a control character; use printable characters", messageType)
	}
	return nil
}
