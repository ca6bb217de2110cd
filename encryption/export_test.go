package encryption

import (
	"context"
	"time"

	"github.com/tablepatterns/tablepatterns/patterns"
)

// The parts that tests hold against vectors, and count.
var (
	KeyWrap   = keyWrap
	KeyUnwrap = keyUnwrap
	NewSalt   = newSalt
)

// ValueNonce is the nonce of the value at a place.
func ValueNonce(index uint16) []byte { return valueNonce(index) }

// SetNow sets the registry's clock.
func (r *Registry) SetNow(now func() time.Time) {
	r.state.now, r.state.current.now, r.state.keys.now = now, now, now
}

// SealUnder makes a row under a given salt and data key, so that it is the same each time.
func SealUnder(key []byte, id DataKeyID, salt [32]byte, scope, table, partition, row string, names []string, values []patterns.Value, padding int) (sealed [][]byte, seal []byte, err error) {
	o := origin{key: id, salt: salt}
	keys, err := derive(key, domainValue, id, &salt)
	if err != nil {
		return nil, nil, err
	}
	copy(o.commitment[:], keys.commitment)
	at := place{scope, table, partition, row}
	for i, name := range names {
		sealed = append(sealed, keys.seal(o, at.context(domainValue), name, i, values[i], padding))
	}
	return sealed, keys.appendSeal(o, at, names), nil
}

// Uncommitted makes a row of one value, and an empty stream, which are right in all but the key commitment.
func Uncommitted(key []byte, id DataKeyID, table string, entity patterns.Key, name string, v patterns.Value) (value, seal, stream []byte, err error) {
	o, keys, err := newWrite(key, domainValue, id)
	if err != nil {
		return nil, nil, nil, err
	}
	o.commitment[0] ^= 1
	at := place{"", table, entity.Partition, entity.Row}
	value, seal = keys.seal(o, at.context(domainValue), name, 0, v, 1), keys.appendSeal(o, at, []string{name})
	if o, keys, err = newWrite(key, domainStream, id); err != nil {
		return nil, nil, nil, err
	}
	o.commitment[0] ^= 1
	h := header{kind: kindStream, origin: o}
	stream = h.append(nil)
	c := Stream{}.chunks(keys, nil, stream)
	return value, seal, keys.aead.Seal(stream, chunkNonce(0, true), nil, c.data), nil
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
func ParseValue(padded []byte, code byte) (patterns.Value, bool) {
	plain, ok := unpad(padded)
	if !ok {
		return patterns.Value{}, false
	}
	return parseValue(plain, code)
}
