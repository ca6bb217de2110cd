package encryption

import (
	"cmp"
	"context"
	"iter"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Beacon makes index keys of encrypted values with a keyed hash. Equal values have equal beacons, so the service learns which entities have equal
// values, and how many. With fewer bits different values share a beacon: that hides more, but lookups return false positives; remove those with
// Matching. It is safe for concurrent use.
type Beacon struct {
	hidden
	name string
	bits int
	key  secret
}

// beaconBits makes false positives impossible in practice.
const beaconBits = 128

// CreateBeacon creates the key of a beacon; it returns tables.ErrExists if the key exists. The key never changes, since an index made with it finds
// nothing under another. Requests: 1 to wrap, 1 to insert.
func (r *Registry) CreateBeacon(ctx context.Context, name string) error {
	row := compoundkey.Join(prefixBeacon, compoundkey.String(name))
	if name == "" || compoundkey.Err(row) != nil {
		return errs.Invalidf("CreateBeacon", "the beacon's name %q cannot be part of a row key; use the characters that compoundkey allows", name)
	}
	key, err := r.state.wrap(ctx, randomKey(), row)
	if err != nil {
		return err
	}
	return r.state.keyRows.Insert(ctx, key)
}

// Beacon fetches the key of a beacon, for as long as the program runs. bits is the length of the hashes, 8 to 128 (0 means 128); it must never
// change for an existing index. Requests: 1, and 1 to unwrap.
func (r *Registry) Beacon(ctx context.Context, name string, bits int) (Beacon, error) {
	bits = cmp.Or(bits, beaconBits)
	row := compoundkey.Join(prefixBeacon, compoundkey.String(name))
	if name == "" || compoundkey.Err(row) != nil || bits < 8 || bits > beaconBits {
		return Beacon{}, errs.Invalidf("Beacon", "the name is %q and bits is %d; the name must be one that CreateBeacon accepts, and bits 0 (meaning %d) or 8 to %[3]d", name, bits, beaconBits)
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
// with 4 bytes of length before each of the three texts. A null value has the zero Part. For lookups regardless of case, fold values first
// (compoundkey.FoldCase).
func (b Beacon) Part(v tables.Value) compoundkey.Part {
	if v.IsNull() {
		return compoundkey.Part{}
	}
	if len(b.key.bytes()) != keySize {
		return compoundkey.String("\xff") // the zero Beacon must not return the Part of a null value
	}
	plain, _ := appendValue(nil, v)
	sum := hmacOf(b.key.bytes(), appendFields(nil, "tablepatterns/encryption/1/beacon", b.name, string(plain)))[:(b.bits+7)/8]
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
