package encryption

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Registry holds random data keys, each wrapped by a KeyWrapper and stored in one partition of a table.
//
//	PartitionKey  RowKey                                properties
//	datakeys      key_5f0a...                           Wrapped WrappedBy Algorithm State="active" Check Created
//	datakeys      beacon_email                          Wrapped WrappedBy Algorithm State="active" Check Created
//	datakeys      current                               DataKey=5f0a... Since Check
//
// Check, a MAC under the key itself, binds the row to its registry, account, table and state; RegistryOptions decide which rows are accepted.
// Unwrapped keys are cached in memory. A Registry is safe for concurrent use and for any number of repositories.
type Registry struct {
	hidden
	state *registry
}

// RegistryOptions are the options of a Registry; nil is the same as the zero value.
type RegistryOptions struct {
	// Name is the partition (default "datakeys"). Registries of different tenants or environments need different tables or names.
	Name string
	// TTL is how long an unwrapped key, and the id of the current one, stay in memory (default 5 minutes, at most 24 hours), and so how late a new
	// data key, or a program's lost access to a wrapping key, takes effect.
	TTL time.Duration
	// MaxUses is how often an unwrapped key is used before it is fetched again (default 1,048,576).
	MaxUses int64
	// Trusted lists the ids of the accepted data keys and beacon keys; new writes use the first, whatever the table names as current. An id is a
	// hash of its key, so an attacker who can write the table can neither insert a key nor restore an older state. With nil, keys are accepted that
	// an AES wrapping key (A128KW, A192KW, A256KW) has wrapped for this registry.
	Trusted []DataKeyID
	// TrustTable also accepts, without Trusted, keys wrapped with RSA or an unknown algorithm: anybody who can write the registry's table and has
	// the public half of the wrapping key can insert a data key that they know.
	TrustTable bool
}

const (
	defaultRegistry = "datakeys"
	defaultTTL      = 5 * time.Minute
	maxTTL          = 24 * time.Hour // RemoveUnusedDataKey waits for this long, whatever this program's TTL
	defaultUses     = 1 << 20
)

// registry is behind a pointer so that fmt never prints the keys.
type registry struct {
	table   *tables.Table
	wrapper KeyWrapper
	name    string
	trusted []DataKeyID
	now     func() time.Time

	trustTable bool // only if trusted is empty

	keyRows     *tables.Rows[keyRow]
	currentRows *tables.Rows[currentRow]

	current *cache[struct{}, DataKeyID]
	keys    *cache[DataKeyID, heldKey]
	newest  newestSeen
}

// NewRegistry makes a registry in a table. Store.Create creates its first data key if the table is from Store.Table; otherwise call EnsureDataKey
// before the first write. Requests: none.
func NewRegistry(table *tables.Table, wrapper KeyWrapper, options *RegistryOptions) (*Registry, error) {
	const op = "NewRegistry"
	if options == nil {
		options = &RegistryOptions{}
	}
	r := &registry{table: table, wrapper: wrapper, name: cmp.Or(options.Name, defaultRegistry), trusted: slices.Clone(options.Trusted),
		trustTable: options.TrustTable, now: time.Now}
	ttl, uses := cmp.Or(options.TTL, defaultTTL), cmp.Or(options.MaxUses, defaultUses)
	switch {
	case table == nil || wrapper == nil:
		return nil, errs.Wiringf(op, "", "the table or the KeyWrapper is nil; give both")
	case ttl < 0 || ttl > maxTTL || uses < 0:
		return nil, errs.Wiringf(op, "", "RegistryOptions.TTL is %v and MaxUses %d; TTL must be between 0 (meaning %v) and %v, and MaxUses 0 (meaning %d) or more", ttl, uses, defaultTTL, maxTTL, int64(defaultUses))
	case compoundkey.CheckKey(r.name) != nil:
		return nil, errs.Wiringf(op, "", "RegistryOptions.Name cannot be a partition key; use the characters that compoundkey allows")
	}
	var err error
	if r.keyRows, err = tables.RowsOf[keyRow](table); err != nil {
		return nil, err
	}
	if r.currentRows, err = tables.RowsOf[currentRow](table); err != nil {
		return nil, err
	}
	r.current = newCache[struct{}, DataKeyID](ttl, uses)
	r.keys = newCache[DataKeyID, heldKey](ttl, uses)
	r.keys.refuses = unreadable
	made := &Registry{state: r}
	patterns.Register(table, fmt.Sprintf("the first data key of registry %q in table %s", r.name, table.Name()), made.EnsureDataKey)
	return made, nil
}

// DataKeyInfo is the public information about a data key.
type DataKeyInfo struct {
	ID        DataKeyID
	Created   time.Time
	WrappedBy string // the wrapping key's id
	Current   bool   // new writes use this key
}

const (
	rowCurrent   = "current"
	prefixKey    = "key"
	prefixBeacon = "beacon"
)

type keyRow struct {
	tables.Meta
	PartitionKey, RowKey string
	Wrapped              []byte
	WrappedBy            string
	Algorithm            string
	State                string
	Check                []byte
	Created              time.Time
}

func (k *keyRow) wrapped() WrappedKey {
	return WrappedKey{KeyID: k.WrappedBy, Algorithm: k.Algorithm, Bytes: k.Wrapped}
}

// currentRow names the data key for new writes.
type currentRow struct {
	tables.Meta
	PartitionKey, RowKey string
	DataKey              string
	Since                time.Time
	Check                []byte // proves that its writer has the key
}

func keyRowKey(id DataKeyID) string { return compoundkey.Join(prefixKey, compoundkey.Bytes(id[:])) }

// idOf returns the first 16 bytes of HMAC-SHA256 with the key itself, so an id proves which key it belongs to.
func idOf(key []byte) DataKeyID {
	return DataKeyID(hmacOf(key, []byte("tablepatterns/encryption/1/id"))[:16])
}

func randomKey() []byte {
	key := make([]byte, keySize)
	rand.Read(key) // never fails
	return key
}

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

// stamp returns the time in a precision that the service stores.
func (r *registry) stamp() time.Time { return r.now().UTC().Truncate(time.Millisecond) }

// unwrap returns the key in a row, or tables.ErrGarbled if the row does not match its Check.
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

func (r *registry) trusts(id DataKeyID) bool {
	return len(r.trusted) == 0 || slices.Contains(r.trusted, id)
}

func errNotTrusted(id DataKeyID) error {
	return fmt.Errorf("%w: data key %s is not among RegistryOptions.Trusted; add its id if you trust it", tables.ErrWiring, id)
}

func (r *registry) fetch(ctx context.Context, row string) (heldKey, error) {
	stored, err := r.keyRows.Get(ctx, tables.Key{Partition: r.name, Row: row})
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

// held returns a data key, from the cache if possible.
func (r *registry) held(ctx context.Context, id DataKeyID) (heldKey, error) {
	if !r.trusts(id) {
		return heldKey{}, errNotTrusted(id)
	}
	return r.keys.get(ctx, id, func(ctx context.Context) (heldKey, error) { return r.fetch(ctx, keyRowKey(id)) })
}

func (r *registry) dataKey(ctx context.Context, id DataKeyID) ([]byte, error) {
	key, err := r.held(ctx, id)
	return key.bytes(), err
}

// readCurrent reads the row "current". If that names no key, it returns the row and an error.
func (r *registry) readCurrent(ctx context.Context) (*currentRow, DataKeyID, error) {
	row, err := r.currentRows.Get(ctx, tables.Key{Partition: r.name, Row: rowCurrent})
	if err != nil {
		return nil, DataKeyID{}, err
	}
	id, ok := parseDataKeyID(row.DataKey)
	if !ok {
		return row, DataKeyID{}, fmt.Errorf("%w: the registry's row %q names no data key; call Registry.CreateDataKey", tables.ErrGarbled, rowCurrent)
	}
	return row, id, nil
}

// named returns the id of the data key for new writes, without a check whether it may be used.
func (r *registry) named(ctx context.Context) (DataKeyID, error) {
	if len(r.trusted) > 0 {
		return r.trusted[0], nil
	}
	_, id, err := r.readCurrent(ctx)
	return id, err
}

func (r *registry) writeKey(ctx context.Context) (DataKeyID, []byte, error) {
	id, err := r.current.get(ctx, struct{}{}, r.writable)
	if errors.Is(err, errNoDataKey) {
		return id, nil, errs.Wiringf("Store", "", "%w", errNoDataKey)
	}
	var key []byte
	if err == nil {
		key, err = r.dataKey(ctx, id)
	}
	if err != nil && unreadable(err) {
		return id, nil, &tables.Error{Op: "Store", Kind: tables.ErrWiring, Err: errUnusableKey}
	}
	return id, key, err
}

var errUnusableKey = errors.New("cannot load the data key for new writes; call Registry.Check for the cause")

// DataKeys yields the data keys of the registry. Requests: 2 (1 with RegistryOptions.Trusted), and 1 more for each 1,000 keys.
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
				continue // this package did not write the row
			}
			info.ID = DataKeyID(id)
			info.Current = info.ID == current
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (r *registry) rows(ctx context.Context, prefix string) iter.Seq2[*keyRow, error] {
	return r.keyRows.Query().Partition(r.name).Rows(compoundkey.All().Under(prefix)).All(ctx)
}
