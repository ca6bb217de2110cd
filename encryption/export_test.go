package encryption

import (
	"context"
	"time"

	"github.com/tablepatterns/tablepatterns/tables"
)

// The parts that tests hold against vectors, and count.
var (
	Expand    = expand
	NewAEAD   = newAEAD
	KeyWrap   = keyWrap
	KeyUnwrap = keyUnwrap
	NewSalt   = newSalt
)

// SetNow sets the registry's clock.
func (r *Registry) SetNow(now func() time.Time) {
	r.state.now, r.state.current.now, r.state.keys.now = now, now, now
}

// RegistryRows are the row of a data key and the row "current", as they are read.
type RegistryRows struct {
	Row, WrappedBy, Algorithm, State string
	Wrapped, Check                   []byte
	Created                          time.Time

	DataKey      string
	Since        time.Time
	CurrentCheck []byte
}

// OpenRows does with rows that were read what a write does to get its data key.
func (r *Registry) OpenRows(ctx context.Context, rows *RegistryRows) (DataKeyID, []byte, error) {
	id, ok := parseDataKeyID(rows.DataKey)
	if !ok || keyRowKey(id) != rows.Row {
		return id, nil, tables.ErrGarbled // current names no key, or another row is read
	}
	key, err := r.state.unwrap(ctx, &keyRow{RowKey: rows.Row, Wrapped: rows.Wrapped, WrappedBy: rows.WrappedBy, Algorithm: rows.Algorithm, State: rows.State,
		Check: rows.Check, Created: rows.Created})
	if err != nil {
		return id, nil, err
	}
	current := &currentRow{DataKey: rows.DataKey, Since: rows.Since, Check: rows.CurrentCheck}
	return id, key, r.state.checkCurrent(current, heldKey{newSecret(key), rows.State})
}

// Uncommitted makes a row of one value, and an empty stream, which are right in all but the key commitment.
func Uncommitted(key []byte, id DataKeyID, table *tables.Table, entity tables.Key, name string, v tables.Value) (value, seal, stream []byte, err error) {
	o, keys, err := newWrite(key, domainValue, id)
	if err != nil {
		return nil, nil, nil, err
	}
	o.commitment[0] ^= 1
	at := place{location: locationOf(table, entity)}
	value, seal = keys.seal(o, at.context(domainValue), name, v, 1), keys.appendSeal(o, at, &contents{names: []string{name}})
	if o, keys, err = newWrite(key, domainStream, id); err != nil {
		return nil, nil, nil, err
	}
	o.commitment[0] ^= 1
	h := header{kind: kindStream, origin: o}
	stream = h.append(nil)
	c := Stream{}.chunks(keys, nil, stream)
	return value, seal, keys.aead.Seal(stream, nil, nil, c.at(0, true)), nil
}

// EncodeContext is what a required context is bound as.
var EncodeContext = encodeContext

// ParseSeal reads a seal, and returns how many properties and copies it names.
func ParseSeal(b []byte) (named, signed, copies int, ok bool) {
	s, ok := parseSeal(b)
	return len(s.names), len(s.signed), len(s.copies), ok
}

// PKCS7 is the check of the old libraries' padding.
func PKCS7(b []byte) (length, ok int) { return pkcs7(b) }

// Cache is the cache of unwrapped keys, of texts.
type Cache struct{ *cache[string, string] }

// NewCache makes one that holds a text for a time.
func NewCache(ttl time.Duration) Cache { return Cache{newCache[string, string](ttl, 1<<20)} }

// Get is the text of k, or what fetch returns.
func (c Cache) Get(ctx context.Context, k string, fetch func(context.Context) (string, error)) (string, error) {
	return c.get(ctx, k, fetch)
}

// Forget removes the text of k.
func (c Cache) Forget(k string) { c.forget(k) }

// Len is the number of texts in memory.
func (c Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries)
}

// ParseValue reads what was authenticated: code, octets and padding.
func ParseValue(padded []byte, code byte) (tables.Value, bool) {
	plain, ok := unpad(padded)
	if !ok {
		return tables.Value{}, false
	}
	return parseValue(plain, code)
}
