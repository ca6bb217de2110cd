package eventual

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

var sentAt = time.Date(2026, 11, 20, 13, 0, 0, 500_000_000, time.UTC)

// TestGoldenEnvelope pins the stored form: messages of earlier builds wait on queues.
// ordersPlace is the queue "orders" of an account.
var ordersPlace = place{"contoso.table.core.windows.net", "orders"}

func TestGoldenEnvelope(t *testing.T) {
	for want, e := range map[string]*envelope{
		`{"v":1,"id":"A7","type":"ship","sent":"2026-11-20T13:00:00.5Z","body":{"order":7}}`: {
			Version: 1, ID: "A7", Type: "ship", Sent: sentAt, Body: jsontext.Value(`{"order":7}`)},
		`{"v":1,"id":"A7","type":"ship","sent":"2026-11-20T13:00:00.5Z","steps":["charge","pack"],"body":null}`: {
			Version: 1, ID: "A7", Type: "ship", Sent: sentAt, Steps: []string{"charge", "pack"}, Body: jsontext.Value("null")},
		`{"v":1,"id":"A7","type":"tablepatterns.intent","sent":"2026-11-20T13:00:00.5Z","waits":3,"body":{}}`: {
			Version: 1, ID: "A7", Type: intentType, Sent: sentAt, Waits: 3, Body: jsontext.Value("{}")},
		`{"v":1,"id":"A7","type":"ship","sent":"2026-11-20T13:00:00.5Z","claim":{"blob":"A7","length":70000,"sha256":"9f86"}}`: {
			Version: 1, ID: "A7", Type: "ship", Sent: sentAt, Claim: &claim{Blob: "A7", Length: 70000, SHA256: "9f86"}},
	} {
		text, fits, err := e.encode(ordersPlace, nil)
		if err != nil || !fits {
			t.Fatalf("%s: %v, fits: %v", want, err, fits)
		}
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil || string(raw) != want {
			t.Errorf("encoded as %s (%v), want %s", raw, err, want)
		}
		for _, stored := range []string{text, strings.TrimRight(text, "="), want, "\n " + want + "\n"} {
			got := assert.Must[*envelope](t)(decodeEnvelope(stored, "other", time.Time{}))
			again, _, _ := got.encode(ordersPlace, nil)
			assert.Equal(t, again, text, "%s, again", stored)
		}
	}
}

// TestForeignEnvelopes: what other programs and people put on the queue, and other builds of this library.
func TestForeignEnvelopes(t *testing.T) {
	inserted := sentAt.Add(time.Hour)
	e, err := decodeEnvelope(`{"type":"ship","color":"red","body": [1, 2]}`, "m-1", inserted)
	if err != nil || e.ID != "m-1" || !e.Sent.Equal(inserted) || string(e.Body) != "[1, 2]" || e.Version != 1 {
		t.Errorf("%+v, %v", e, err)
	}
	if e, err = decodeEnvelope(`{"type":"ship"}`, "m-1", inserted); err != nil || string(e.Body) != "null" {
		t.Errorf("%+v, %v", e, err)
	}
	for text, reason := range map[string]string{
		"":                              "neither",
		"hello, world":                  "neither",
		"aGVsbG8=":                      "neither",
		`{"type":"ship"`:                "neither",
		`{"type":"ship"} x`:             "neither",
		`[]`:                            "neither",
		`{"type":7}`:                    "neither",
		`{"v":"1","type":"ship"}`:       "neither",
		`{"type":"a","sent":"tuesday"}`: "neither",
		`{"id":"A7","body":1}`:          "no member type",
		`{"v":7,"kind":"ship"}`:         "the envelope has version 7",
		`{"v":7,"type":{"of":"ship"}}`:  "the envelope has version 7",
		`{"v":-1,"type":"ship"}`:        "the envelope has version -1",
	} {
		assert.ErrorContains(t, assert.Err(decodeEnvelope(text, "m", inserted)), reason, "%q", text)
	}
}

// TestInlineLimit: 49,152 bytes of JSON are 65,536 of base64, and one more is over the limit.
func TestInlineLimit(t *testing.T) {
	e := &envelope{Version: 1, ID: "A7", Type: "ship", Sent: sentAt}
	e.Body = jsontext.Value(`""`)
	text, _, _ := e.encode(ordersPlace, nil)
	raw, _ := base64.StdEncoding.DecodeString(text)
	room := maxInline - len(raw)
	for extra, want := range map[int]bool{0: true, 1: false} {
		e.Body = jsontext.Value(`"` + strings.Repeat("x", room+extra) + `"`)
		text, fits, err := e.encode(ordersPlace, nil)
		if err != nil || fits != want || fits != (len(text) <= maxText) {
			t.Errorf("%d bytes over: %d characters, fits: %v, %v", extra, len(text), fits, err)
		}
	}
}

// FuzzEnvelope: no text makes the reader panic, and what it reads it can write, to be read as the same.
func FuzzEnvelope(f *testing.F) {
	for _, text := range []string{"", "{", `{"type":"a"}`, "eyJ0eXBlIjoiYSJ9", `{"v":2}`, `{"type":"a","body":{"x":[1,2.50]}}`,
		`{"type":"a","steps":["x"],"claim":{"blob":"b","length":1,"sha256":"00"}}`, `{"type":"a","sent":"2026-11-20T13:00:00Z"}`,
		`{"type":"\ud800"}`, "{\"type\":\"\xff\"}", `{"type":"a","claim":null,"body":null}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := decodeEnvelope(text, "id", sentAt)
		if err != nil {
			return
		}
		stored, _, err := e.encode(ordersPlace, nil)
		assert.NoError(assert.Fatal(t), err, "%q was read and cannot be written", text)
		again, err := decodeEnvelope(stored, "other", time.Time{})
		assert.NoError(assert.Fatal(t), err, "%q was written as %q, which cannot be read", text, stored)
		if twice, _, err := again.encode(ordersPlace, nil); err != nil || twice != stored {
			t.Fatalf("%q, then %q (%v)", stored, twice, err)
		}
	})
}

// FuzzClaim: whatever a message says of its body, the blob that it names is its own.
func FuzzClaim(f *testing.F) {
	for _, text := range []string{`{"type":"a","id":"ABC","claim":{"blob":"ABC","length":1,"sha256":"00"}}`, `{"type":"a","id":"../x","claim":{"blob":"../x"}}`,
		`{"type":"a","id":"ABC","claim":{"blob":"ABD","length":-1}}`, `{"type":"a","claim":{"blob":""}}`, `{"type":"a","id":"","claim":{}}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := decodeEnvelope(text, "SERVICE", sentAt)
		if err != nil || e.Claim == nil || !e.claimsOwn() {
			return
		}
		if name := claimPrefix + e.Claim.Blob; e.Claim.Blob != e.ID || claimOwner(e).CheckName(name) != nil {
			t.Errorf("%q names blob %q", text, name)
		}
		for _, other := range []*envelope{{ID: e.ID, Type: e.Type + "x"}, {ID: e.ID + "x", Type: e.Type}} {
			if claimOwner(e).CheckLabels("b", claimOwner(other).Metadata(nil)) == nil {
				t.Errorf("%q owns the body of message %q of type %q", text, other.ID, other.Type)
			}
		}
	})
}

// FuzzSigned: no change of a signed message leaves it signed, and signing never panics.
func FuzzSigned(f *testing.F) {
	keys := assert.Must[*SigningKeys](f)(NewSigningKeys([]byte("sixteen bytes....")))
	f.Add(`{"type":"a"}`, 3, byte('x'))
	f.Add(`{"type":"a","mac":"x"}`, 20, byte('"'))
	f.Add(`{}`, 0, byte(' '))
	f.Fuzz(func(t *testing.T, text string, at int, by byte) {
		keys.verify(ordersPlace, []byte(text))
		if len(text) < 2 || text[len(text)-1] != '}' {
			return
		}
		signed := keys.sign(ordersPlace, []byte(text))
		if !keys.verify(ordersPlace, signed) || keys.verify(place{ordersPlace.account, "bills"}, signed) {
			t.Fatalf("%q: signed for orders %v, for bills %v", signed, keys.verify(ordersPlace, signed), keys.verify(place{ordersPlace.account, "bills"}, signed))
		}
		if at = max(at, 0) % len(signed); signed[at] == by {
			return
		}
		signed[at] = by
		if keys.verify(ordersPlace, signed) {
			t.Errorf("%q is still signed", signed)
		}
	})
}
