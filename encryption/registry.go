package encryption

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Registry holds data keys: random, each stored wrapped under a KeyWrapper's, in one partition of a table.
//
//	PartitionKey  RowKey                                properties
//	datakeys      key_5f0a...                           Wrapped WrappedBy Algorithm State="active" Check Created
//	datakeys      beacon_email                          Wrapped WrappedBy Algorithm State="active" Check Created
//	datakeys      current                               DataKey=5f0a... Since Check
//
// registrycheck.go says what Check covers, and which rows are accepted.
//
// What it reads it keeps, unwrapped, in memory for a time. It is safe for concurrent use, and one serves any number of
// repositories.
type Registry struct {
	hidden
	state *registry
}

// RegistryOptions are the options of a Registry; nil is the same as the zero value.
type RegistryOptions struct {
	// Name is the partition, "datakeys" for "". Registries of different tenants or environments have tables, or names, of their own.
	Name string
	// TTL is how long an unwrapped key, and which one is current, is kept in memory, 5 minutes for 0, and at most 24 hours. Taking a wrapping key
	// away from a program, and a new data key, take effect within it.
	TTL time.Duration
	// MaxUses is how often an unwrapped key is used before it is fetched again, 1,048,576 times for 0.
	MaxUses int64
	// Trusted are the ids of the data keys, and of the keys of beacons, that are accepted. New writes use the first of them,
	// whichever the table says is current. Since an id is a hash of its key, whoever can write the table can put in no key of
	// their own, and no older state of the table. nil accepts what an AES wrapping key (A128KW, A192KW, A256KW) has wrapped for
	// this registry, and nothing that was wrapped by RSA or by an algorithm that this package does not know: whoever has the
	// public half of an RSA key can wrap with it.
	Trusted []DataKeyID
	// TrustTable accepts, without Trusted, also keys that are wrapped by RSA or an unknown algorithm: whoever can write the
	// registry's table, and has the public half of the wrapping key, can then put in a data key that they know.
	TrustTable bool
	// AcceptUnbound accepts, without Trusted, rows from before checks covered registry, table and state: whoever can write
	// the table can copy such a row from another registry under the same wrapping key. Rewrap binds all rows and brings it to an end.
	AcceptUnbound bool
}

const (
	defaultRegistry = "datakeys"
	defaultTTL      = 5 * time.Minute
	maxTTL          = 24 * time.Hour // what RemoveUnusedDataKey waits for, whatever TTL its own program has
	defaultUses     = 1 << 20
)

// registry is what lies behind a Registry, behind a pointer, so that fmt never comes to the keys.
type registry struct {
	table   *tables.Table
	wrapper KeyWrapper
	name    string
	ttl     time.Duration
	trusted []DataKeyID // nil is what accepts says
	accepts acceptance
	now     func() time.Time

	current *cache[struct{}, DataKeyID]
	keys    *cache[DataKeyID, heldKey]
	newest  newestSeen
}

// NewRegistry makes a registry on a table, which has to be there. It makes no request.
func NewRegistry(table *tables.Table, wrapper KeyWrapper, options *RegistryOptions) (*Registry, error) {
	const op = "NewRegistry"
	if options == nil {
		options = &RegistryOptions{}
	}
	r := &registry{table: table, wrapper: wrapper, name: options.Name, ttl: options.TTL, trusted: slices.Clone(options.Trusted),
		accepts: acceptance{anyWrapping: options.TrustTable, unbound: options.AcceptUnbound}, now: time.Now}
	uses := options.MaxUses
	if r.name == "" {
		r.name = defaultRegistry
	}
	if r.ttl == 0 {
		r.ttl = defaultTTL
	}
	if uses == 0 {
		uses = defaultUses
	}
	switch {
	case table == nil || wrapper == nil:
		return nil, tables.Invalidf(op, "it needs a table and a KeyWrapper")
	case r.ttl < 0 || r.ttl > maxTTL || uses < 0:
		return nil, tables.Invalidf(op, "RegistryOptions.TTL is %v and MaxUses %d; TTL must be between 0 (meaning %v) and %v, and MaxUses 0 (meaning %d) or more", r.ttl, uses, defaultTTL, maxTTL, int64(defaultUses))
	case compoundkey.CheckKey(r.name) != nil:
		return nil, tables.Invalidf(op, "the name cannot be a partition key")
	}
	r.current = newCache[struct{}, DataKeyID](r.ttl, uses)
	r.keys = newCache[DataKeyID, heldKey](r.ttl, uses)
	r.keys.refuses = unreadable
	return &Registry{state: r}, nil
}

// DataKeyInfo says what the registry knows of a data key, which is nothing secret.
type DataKeyInfo struct {
	ID        DataKeyID
	Created   time.Time
	WrappedBy string // the wrapping key's id
	Current   bool   // new writes use it
}

// The registry's rows.
const (
	rowCurrent   = "current"
	prefixKey    = "key"
	prefixBeacon = "beacon"
)

// keyRow is a wrapped key.
type keyRow struct {
	tables.Meta
	PartitionKey, RowKey string
	Wrapped              []byte
	WrappedBy            string
	Algorithm            string
	State                string // stateActive or stateRetired; "" in a row from before checks covered it
	Check                []byte // so that a wrapped key cannot be put into another row
	Created              time.Time
}

func (k *keyRow) wrapped() WrappedKey {
	return WrappedKey{KeyID: k.WrappedBy, Algorithm: k.Algorithm, Bytes: k.Wrapped}
}

// currentRow says which data key is for new writes.
type currentRow struct {
	tables.Meta
	PartitionKey, RowKey string
	DataKey              string
	Since                time.Time
	Check                []byte // so that nobody without the key can name it
}

func keyRowKey(id DataKeyID) string { return compoundkey.Join(prefixKey, compoundkey.Bytes(id[:])) }

// idOf is the id of a new data key: the first 16 bytes of HMAC-SHA256, with the key itself. So who knows the id knows the key
// when they see it.
func idOf(key []byte) (id DataKeyID) {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("tablepatterns/encryption/1/id"))
	copy(id[:], mac.Sum(nil))
	return id
}

func randomKey() []byte {
	key := make([]byte, keySize)
	rand.Read(key) // never fails: it ends the program instead
	return key
}

// wrap makes the row of a key.
func (r *registry) wrap(ctx context.Context, key []byte, row string) (*keyRow, error) {
	wrapped, err := r.wrapper.Wrap(ctx, key)
	if err != nil {
		return nil, err
	}
	made := &keyRow{PartitionKey: r.name, RowKey: row, Wrapped: wrapped.Bytes, WrappedBy: wrapped.KeyID, Algorithm: wrapped.Algorithm,
		State: stateActive, Created: r.stamp()}
	made.Check = r.checkOf(key, made)
	return made, nil
}

// stamp is the time, as the service can hold it.
func (r *registry) stamp() time.Time { return r.now().UTC().Truncate(time.Millisecond) }

// unwrap returns the key in a row. tables.ErrGarbled says that it is not the one which was put there.
func (r *registry) unwrap(ctx context.Context, row *keyRow) ([]byte, error) {
	if !r.wrapper.Holds(row.WrappedBy, row.Algorithm) {
		return nil, errNoWrapper(row.wrapped())
	}
	if err := r.admits(row); err != nil {
		return nil, err
	}
	key, err := r.wrapper.Unwrap(ctx, row.wrapped())
	if err != nil {
		return nil, err
	}
	if len(key) != keySize || subtle.ConstantTimeCompare(r.checkOf(key, row), row.Check) != 1 {
		return nil, errNotWrapped()
	}
	return key, nil
}

// trusts reports whether a key may be used.
func (r *registry) trusts(id DataKeyID) bool {
	return len(r.trusted) == 0 || slices.Contains(r.trusted, id)
}

// errNotTrusted is a tables.ErrInvalid: an option does not have it, or the row is not what its maker has put there.
func errNotTrusted(id DataKeyID) error {
	return fmt.Errorf("%w: a key with the id %s, which is not among RegistryOptions.Trusted", tables.ErrInvalid, id)
}

// fetch reads and unwraps the key in a row.
func (r *registry) fetch(ctx context.Context, row string) (heldKey, error) {
	rows, err := tables.RowsOf[keyRow](r.table)
	if err != nil {
		return heldKey{}, err
	}
	stored, err := rows.Get(ctx, tables.Key{Partition: r.name, Row: row})
	if err != nil {
		return heldKey{}, err
	}
	key, err := r.unwrap(ctx, stored)
	if err != nil {
		return heldKey{}, err
	}
	if id := idOf(key); !r.trusts(id) {
		return heldKey{}, errNotTrusted(id)
	}
	return heldKey{newSecret(key), stored.State}, nil
}

// held returns a data key by its id. See unreadable for its errors.
func (r *registry) held(ctx context.Context, id DataKeyID) (heldKey, error) {
	if !r.trusts(id) {
		return heldKey{}, errNotTrusted(id)
	}
	return r.keys.get(ctx, id, func(ctx context.Context) (heldKey, error) { return r.fetch(ctx, keyRowKey(id)) })
}

// dataKey returns the octets of a data key by its id.
func (r *registry) dataKey(ctx context.Context, id DataKeyID) ([]byte, error) {
	key, err := r.held(ctx, id)
	return key.bytes(), err
}

// readCurrent reads which data key the table says is for new writes. The row comes also where it names none.
func (r *registry) readCurrent(ctx context.Context) (*currentRow, DataKeyID, error) {
	rows, err := tables.RowsOf[currentRow](r.table)
	if err != nil {
		return nil, DataKeyID{}, err
	}
	row, err := rows.Get(ctx, tables.Key{Partition: r.name, Row: rowCurrent})
	if err != nil {
		return nil, DataKeyID{}, err
	}
	id, ok := parseDataKeyID(row.DataKey)
	if !ok {
		return row, DataKeyID{}, fmt.Errorf("%w: the registry's row %q names no data key", tables.ErrGarbled, rowCurrent)
	}
	return row, id, nil
}

// named returns which data key the options or the table name for new writes, as of now. Nothing of it is checked.
func (r *registry) named(ctx context.Context) (DataKeyID, error) {
	if len(r.trusted) > 0 {
		return r.trusted[0], nil
	}
	_, id, err := r.readCurrent(ctx)
	return id, err
}

// writeKey returns the data key for new writes.
func (r *registry) writeKey(ctx context.Context) (DataKeyID, []byte, error) {
	id, err := r.current.get(ctx, struct{}{}, r.writable)
	if errors.Is(err, errNoDataKey) {
		return id, nil, tables.Invalidf("Store", "the registry has no data key: Registry.CreateDataKey makes the first one")
	}
	var key []byte
	if err == nil {
		key, err = r.dataKey(ctx, id)
	}
	if err != nil && unreadable(err) {
		return id, nil, &tables.Error{Op: "Store", Kind: tables.ErrInvalid, Err: errUnusableKey}
	}
	return id, key, err
}

var errUnusableKey = errors.New("the data key for new writes is not to be had: Registry.Check says why")

// DataKeys yields what the registry holds. Requests: 2, 1 more for each 1,000 keys.
func (r *Registry) DataKeys(ctx context.Context) iter.Seq2[DataKeyInfo, error] {
	return func(yield func(DataKeyInfo, error) bool) {
		current, err := r.state.named(ctx)
		if err != nil && !unreadable(err) {
			yield(DataKeyInfo{}, err)
			return
		}
		for row, err := range r.state.rows(ctx, prefixKey) {
			if err != nil {
				yield(DataKeyInfo{}, err)
				return
			}
			info := DataKeyInfo{Created: row.Created, WrappedBy: row.WrappedBy}
			var id []byte
			if err := compoundkey.Parse(row.RowKey, prefixKey, compoundkey.ToBytes(&id)); err != nil || len(id) != len(info.ID) {
				continue // no row of this package's
			}
			info.ID = DataKeyID(id)
			info.Current = info.ID == current
			if !yield(info, nil) {
				return
			}
		}
	}
}

// rows yields the wrapped keys whose row keys begin with a prefix.
func (r *registry) rows(ctx context.Context, prefix string) iter.Seq2[*keyRow, error] {
	typed, err := tables.RowsOf[keyRow](r.table)
	if err != nil {
		return func(yield func(*keyRow, error) bool) { yield(nil, err) }
	}
	return typed.Query().Partition(r.name).Rows(compoundkey.All().Under(prefix)).All(ctx)
}
