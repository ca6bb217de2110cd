package encryption

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"iter"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Beacon makes index keys of encrypted values, by a keyed hash: equal values have equal beacons, so that they can be looked
// up, and so the service sees which entities have equal values, and how many. Fewer bits hide more of that: different values
// share a beacon then, and what is found has to be filtered by Matching. It is pure, and safe for concurrent use.
type Beacon struct {
	hidden
	name string
	bits int
	key  secret
}

// beaconBits are those of a beacon that has no false positives in practice.
const beaconBits = 128

// CreateBeacon makes the key of a beacon, once for each name; it is tables.ErrExists when there is one. Every beacon
// under one key has that key for life: with another one, nothing is found any more. Requests: 1 to wrap, 1.
func (r *Registry) CreateBeacon(ctx context.Context, name string) error {
	row := compoundkey.Join(prefixBeacon, compoundkey.String(name))
	if name == "" || compoundkey.Err(row) != nil {
		return tables.Invalidf("CreateBeacon", "the name of the beacon cannot be a row key")
	}
	key, err := r.state.wrap(ctx, randomKey(), row)
	if err != nil {
		return err
	}
	typed, err := tables.RowsOf[keyRow](r.state.table)
	if err != nil {
		return err
	}
	return typed.Insert(ctx, key)
}

// Beacon fetches the key of a beacon, for as long as the program keeps it. bits is the length of its hashes, 8 to 128, or 0
// for 128; an index needs the same ones all its life. Requests: 1, 1 to unwrap.
func (r *Registry) Beacon(ctx context.Context, name string, bits int) (Beacon, error) {
	if bits == 0 {
		bits = beaconBits
	}
	row := compoundkey.Join(prefixBeacon, compoundkey.String(name))
	if name == "" || compoundkey.Err(row) != nil || bits < 8 || bits > beaconBits {
		return Beacon{}, tables.Invalidf("Beacon", "a beacon of %d bits; it has a name, and 8 to %d bits", bits, beaconBits)
	}
	key, err := r.state.fetch(ctx, row)
	if err != nil {
		return Beacon{}, err
	}
	return Beacon{name: name, bits: bits, key: key.secret}, nil
}

// KeyID is the id of the beacon's key, for RegistryOptions.Trusted. It is public.
func (b Beacon) KeyID() DataKeyID { return idOf(b.key.bytes()) }

// Part returns the index key of a value: compoundkey.Bytes of the first bits of
//
//	HMAC-SHA256(key, "tablepatterns/encryption/1/beacon", name, type code and octets of the value)
//
// each of the three preceded by 4 bytes of length. A null value has none: it is the zero Part. Where values that differ by
// case are to be found by each other, make them equal before (compoundkey.FoldCase).
func (b Beacon) Part(v tables.Value) compoundkey.Part {
	if v.IsNull() {
		return compoundkey.Part{}
	}
	if len(b.key.bytes()) != keySize {
		return compoundkey.String("\xff") // a part with an error: a beacon without a key must not look like an index without a value
	}
	plain, _ := appendValue(nil, v)
	mac := hmac.New(sha256.New, b.key.bytes())
	for _, field := range []string{"tablepatterns/encryption/1/beacon", b.name, string(plain)} {
		mac.Write(appendField(nil, field))
	}
	sum := mac.Sum(nil)[:(b.bits+7)/8]
	if spare := 8*len(sum) - b.bits; spare > 0 {
		sum[len(sum)-1] &= 0xff << spare
	}
	return compoundkey.Bytes(sum)
}

// Matching filters what was found by a beacon: it yields the entities that have the value in fact.
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
