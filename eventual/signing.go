package eventual

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/tables"
)

// SigningKeys authenticate the messages of a queue: the first key signs, all verify. To rotate, give every program first the old and the new key in
// this order, then the new and the old one, then only the new one; begin a step only after all programs have completed the one before. fmt,
// log/slog and JSON encoders never show the keys. It is safe for concurrent use.
type SigningKeys struct {
	// secrets is a function because package fmt prints unexported fields, and values to which they point, without calling their methods.
	secrets func() [][]byte
	stored  *storedKey // nil for keys of the program
}

func (s *SigningKeys) keys() [][]byte {
	if s == nil || s.secrets == nil {
		return nil
	}
	return s.secrets()
}

const (
	leastSigningKey = 16 // bytes
	signingKeyBytes = 32 // of a generated key
	maxSigningKeys  = 16

	signingPartition = "tpsigning" // the partition key, to which the name is appended
	signingRow       = "key"
	signingProperty  = "Key"
)

// NewSigningKeys takes 1 to 16 secrets of the program, of at least 16 bytes each, for example from Azure Key Vault.
func NewSigningKeys(keys ...[]byte) (*SigningKeys, error) {
	const op = "NewSigningKeys"
	if len(keys) == 0 || len(keys) > maxSigningKeys {
		return nil, errs.Wiringf(op, "", "got %d keys; give 1 to %d", len(keys), maxSigningKeys)
	}
	var own [][]byte
	for i, key := range keys {
		if len(key) < leastSigningKey {
			return nil, errs.Wiringf(op, "", "key %d has %d bytes; it must have at least %d", i+1, len(key), leastSigningKey)
		}
		own = append(own, slices.Clone(key))
	}
	return &SigningKeys{secrets: func() [][]byte { return own }}, nil
}

// StoredSigningKeys returns the key that a row of a table holds, for programs that have no other place for a secret. Queue.Create, and so
// Store.Create, stores a random one if there is none, and creates the table; the queue reads it before its first message. Anyone who can read the
// row can sign: let only the programs of the queue read the table. name distinguishes the keys of several queues. All programs of a queue get the
// same key.
//
// The row has the PartitionKey "tpsigning_" and name, the RowKey "key", and 32 bytes in the property Key. Requests: 0; 1 before the first message, and
// 4 for the first Create of a queue.
func StoredSigningKeys(table *tables.Table, name string) *SigningKeys {
	stored := &storedKey{table: table, key: tables.Key{Partition: compoundkey.Join(signingPartition, compoundkey.String(name)), Row: signingRow}}
	return &SigningKeys{stored: stored, secrets: func() [][]byte {
		if secret := stored.held.Load(); secret != nil {
			return [][]byte{*secret}
		}
		return nil
	}}
}

// storedKey is a key in a row of a table.
type storedKey struct {
	table *tables.Table
	key   tables.Key
	held  atomic.Pointer[[]byte] // nil until it is read
}

// load reads a stored key, once; with create it stores a random one if there is none.
func (s *SigningKeys) load(ctx context.Context, create bool) error {
	if s == nil || s.stored == nil || s.stored.held.Load() != nil {
		return nil
	}
	const op = "StoredSigningKeys"
	k, rows := s.stored, s.stored.table.Entities()
	row, err := rows.Get(ctx, k.key)
	if create && (errors.Is(err, tables.ErrNotFound) || errors.Is(err, tables.ErrMissingResource)) {
		if err = k.table.CreateIfMissing(ctx); err != nil {
			return err
		}
		row = &tables.Entity{Key: k.key}
		secret := make([]byte, signingKeyBytes)
		rand.Read(secret)
		row.Set(signingProperty, tables.Binary(secret))
		if err = rows.Insert(ctx, row); err == nil || errors.Is(err, tables.ErrExists) || errors.Is(err, tables.ErrUnknownOutcome) {
			row, err = rows.Get(ctx, k.key) // the key of whoever came first
		}
	}
	if err != nil {
		return err
	}
	secret, ok := row.Get(signingProperty).Bytes()
	if !ok || len(secret) < leastSigningKey {
		return &tables.Error{Op: op, Table: k.table.Name(), Key: k.key, Kind: tables.ErrGarbled,
			Err: fmt.Errorf("property %s of the row is not a Binary of at least %d bytes; delete the row to have a new key made", signingProperty, leastSigningKey)}
	}
	k.held.Store(&secret)
	return nil
}

// Format implements fmt.Formatter: no verb shows a key.
func (s *SigningKeys) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// String returns how many keys there are.
func (s *SigningKeys) String() string {
	if s == nil {
		return "no signing keys"
	}
	return fmt.Sprintf("%d signing keys", len(s.keys()))
}

// MarshalText returns the text of String.
func (s *SigningKeys) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue returns the text of String.
func (s *SigningKeys) LogValue() slog.Value { return slog.StringValue(s.String()) }

// The MAC is the last member of an envelope: HMAC-SHA256, in base64url, of macContext, the account's identity, the queue's name and the envelope's
// JSON without the MAC, with line feeds between them. So neither a changed message verifies, nor one from another queue or account.
const (
	macContext = "tablepatterns/message/2\n"
	macBegin   = `,"mac":"`
	macEnd     = `"}`
)

// place is where a message belongs.
type place struct{ account, queue string }

func (q *queue) place() place { return place{q.account.Identity(), q.name} }

func mac(key []byte, of place, raw []byte) string {
	h := hmac.New(sha256.New, key)
	_, _ = io.WriteString(h, macContext+of.account+"\n"+of.queue+"\n")
	h.Write(raw)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

func (s *SigningKeys) sign(of place, raw []byte) []byte {
	signed := append(slices.Clone(raw[:len(raw)-1]), macBegin...)
	return append(append(signed, mac(s.keys()[0], of, raw)...), macEnd...)
}

// splitMAC separates the MAC from the JSON that it authenticates; mac is "" if there is none at the end.
func splitMAC(signed []byte) (raw []byte, mac string) {
	length := base64.RawURLEncoding.EncodedLen(sha256.Size)
	at := len(signed) - len(macEnd) - length - len(macBegin)
	if at < 0 || !strings.HasPrefix(string(signed[at:]), macBegin) || !strings.HasSuffix(string(signed), macEnd) {
		return signed, ""
	}
	return append(slices.Clone(signed[:at]), '}'), string(signed[at+len(macBegin) : len(signed)-len(macEnd)])
}

func (s *SigningKeys) verify(of place, signed []byte) bool {
	raw, given := splitMAC(signed)
	valid := false
	for _, key := range s.keys() {
		valid = hmac.Equal([]byte(mac(key, of, raw)), []byte(given)) || valid
	}
	return valid
}

var (
	errUnsigned = errors.New("the message is not signed, and acts on stored data; programs of this queue sign with QueueOptions.SigningKeys")
	errForged   = errors.New("none of QueueOptions.SigningKeys has signed the message: it was changed, or made by a program with other keys")
)

func (q *queue) warnUnsigned(ctx context.Context) {
	if q.signing != nil {
		return
	}
	q.warned.Do(func() {
		q.signals().Log(ctx, telemetry.LineUnsigned, q.name, slog.String("queue", q.name))
	})
}

// authenticate refuses a message that needs a MAC and has no valid one. Programs without this library may send messages of the user's types, so
// these need one only with a claim or finished steps; a MAC that is present must verify.
func (q *queue) authenticate(e *envelope, now time.Time) error {
	if q.signing == nil {
		return nil
	}
	acts := strings.HasPrefix(e.Type, ownTypes) || e.Claim != nil || len(e.Steps) > 0
	if _, given := splitMAC(e.raw); given == "" {
		if acts && !now.Before(q.unsignedUntil) {
			return errUnsigned
		}
		return nil
	}
	if !q.signing.verify(q.place(), e.raw) {
		return errForged
	}
	e.trusted = true
	return nil
}
