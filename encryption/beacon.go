package encryption

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Beacon makes index keys of encrypted values with a keyed hash. Equal values have equal beacons, so the service learns which entities have equal
// values, and how many. With fewer bits different values share a beacon: that hides more, but lookups return false positives; remove those with
// Matching. It is safe for concurrent use.
type Beacon struct {
	hidden
	registry *registry
	name     string
	bits     int
	key      atomic.Pointer[secret]
}

// beaconBits makes false positives impossible in practice.
const beaconBits = 128

// Beacon returns a beacon of the registry, whose key Store.Create and Store.Start fetch, after they have created it if there is none. If the
// registry's table is not from Store.Table, call Beacon.Ensure before the first use. bits is the length of the hashes, 8 to 128 (0 means 128); it
// must never change for an existing index. Requests: 0.
func (r *Registry) Beacon(name string, bits int) (*Beacon, error) {
	bits = cmp.Or(bits, beaconBits)
	b := &Beacon{registry: r.state, name: name, bits: bits}
	if name == "" || compoundkey.Err(b.row()) != nil || bits < 8 || bits > beaconBits {
		return nil, errs.Wiringf("Beacon", "", "the name is %q and bits is %d; the name must be one that compoundkey allows in a key, and bits 0 (meaning %d) or 8 to %[3]d", name, bits, beaconBits)
	}
	patterns.Register(r.state.table, fmt.Sprintf("beacon %q of %d bits of registry %q in table %s", name, bits, r.state.name, r.state.table.Name()), b.Ensure)
	return b, nil
}

// row returns the row key of the beacon's key.
func (b *Beacon) row() string { return compoundkey.Join(prefixBeacon, compoundkey.String(b.name)) }

// Ensure fetches the key of the beacon, for as long as the program runs, and creates it before if there is none. Programs that call it at once
// all use the same key. The key never changes, since an index made with it finds nothing under another. With RegistryOptions.Trusted, Ensure
// creates none: no program would use a key that Trusted does not name. Requests: 1, and 1 to unwrap; 3 more to create the key.
func (b *Beacon) Ensure(ctx context.Context) error {
	key, err := b.registry.fetch(ctx, b.row())
	if errors.Is(err, tables.ErrNotFound) && len(b.registry.trusted) == 0 {
		var wrapped *keyRow
		if wrapped, err = b.registry.wrap(ctx, randomKey(), b.row()); err != nil {
			return err
		}
		if err = b.registry.keyRows.Insert(ctx, wrapped); err == nil || errors.Is(err, tables.ErrExists) || errors.Is(err, tables.ErrUnknownOutcome) {
			key, err = b.registry.fetch(ctx, b.row()) // the key of whoever came first
		}
	}
	if err == nil {
		b.key.Store(&key.secret)
	}
	return err
}

func (b *Beacon) bytes() []byte {
	if key := b.key.Load(); key != nil {
		return key.bytes()
	}
	return nil
}

// KeyID is the id of the beacon's key, for RegistryOptions.Trusted. It is public. It is zero until Ensure has fetched the key.
func (b *Beacon) KeyID() DataKeyID {
	if key := b.bytes(); key != nil {
		return idOf(key)
	}
	return DataKeyID{}
}

// Part returns the index key of a value: compoundkey.Bytes of the first bits of
//
//	HMAC-SHA256(key, "tablepatterns/encryption/1/beacon", name, type code and octets of the value)
//
// with 4 bytes of length before each of the three texts. A null value has the zero Part. For lookups regardless of case, fold values first
// (compoundkey.FoldCase). Until Ensure has fetched the key, the Part is invalid, and what uses it returns an error.
func (b *Beacon) Part(v tables.Value) compoundkey.Part {
	if v.IsNull() {
		return compoundkey.Part{}
	}
	key := b.bytes()
	if len(key) != keySize {
		return compoundkey.String("\xff") // a Beacon without its key must not return the Part of a null value
	}
	plain, _ := appendValue(nil, v)
	sum := hmacOf(key, appendFields(nil, "tablepatterns/encryption/1/beacon", b.name, string(plain)))[:(b.bits+7)/8]
	if spare := 8*len(sum) - b.bits; spare > 0 {
		sum[len(sum)-1] &= 0xff << spare
	}
	return compoundkey.Bytes(sum)
}

// Matching yields only those results of a lookup by beacon that really have the value.
func Matching[T any](found iter.Seq2[*T, error], has func(*T) bool) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for v, err := range found {
			if err != nil {
				yield(nil, err)
				return
			}
			if has(v) && !yield(v, nil) {
				return
			}
		}
	}
}
