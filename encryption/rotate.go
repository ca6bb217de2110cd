package encryption

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/tables"
)

// CreateDataKey creates a data key that new writes use from now on; other programs use it within their TTL. Before
// the first write, call it once, or call EnsureDataKey. It returns tables.ErrConflict if another program created a
// key at the same time; use that key. CreateDataKey retires the previous key in the same transaction: that key still
// decrypts, and programs that read the registry afterwards write under the new one, unless RegistryOptions.Trusted
// names another first. Requests: 1 to wrap, 1 to read, 1 transaction; if there was a key, 1 more to read it and 1 to
// unwrap it.
func (r *Registry) CreateDataKey(ctx context.Context) (DataKeyID, error) {
	return r.createDataKey(ctx, false)
}

// createDataKey creates a data key. If onlyFirst is set and there is a data key already, it returns errHasDataKey.
func (r *Registry) createDataKey(ctx context.Context, onlyFirst bool) (DataKeyID, error) {
	const op = "CreateDataKey"
	s, key := r.state, randomKey()
	id := idOf(key)
	row, err := s.wrap(ctx, key, keyRowKey(id))
	if err != nil {
		return DataKeyID{}, err
	}
	current, _, err := s.readCurrent(ctx)
	first := errors.Is(err, tables.ErrNotFound)
	if onlyFirst && !first {
		return DataKeyID{}, cmp.Or(err, errHasDataKey)
	}
	if first {
		current = &currentRow{PartitionKey: s.name, RowKey: rowCurrent}
	}
	if current == nil { // an err beside a row means that the row names no key, and this call replaces it
		return DataKeyID{}, err
	}
	retired, since, err := s.retired(ctx, current)
	if err != nil {
		return DataKeyID{}, err
	}
	current.DataKey, current.Since = id.String(), s.stamp()
	if !since.Before(current.Since) {
		current.Since = since.Add(time.Millisecond) // this program's clock is slow; programs refuse a row that is older than the previous one
	}
	current.Check = s.currentCheck(key, current.Since)
	err = s.commitKey(ctx, row, current, first, retired)
	if errors.Is(err, tables.ErrExists) {
		return DataKeyID{}, &tables.Error{Op: op, Table: s.table.Name(), Kind: tables.ErrConflict, Err: errors.New("another program created the first data key at the same time; use that one")}
	}
	if err != nil {
		return DataKeyID{}, err
	}
	s.current.forget(struct{}{})
	return id, nil
}

// EnsureDataKey creates the first data key if there is none, and otherwise changes nothing. Several programs may call it at once: all
// use the same key. Store.Create calls it for a registry in one of the store's tables. With RegistryOptions.Trusted it does nothing, since
// no program would use a key that Trusted does not name. Requests: 1, and those of CreateDataKey for the first key.
func (r *Registry) EnsureDataKey(ctx context.Context) error {
	if len(r.state.trusted) > 0 {
		return nil
	}
	_, _, err := r.state.readCurrent(ctx)
	if !errors.Is(err, tables.ErrNotFound) {
		return err
	}
	if _, err = r.createDataKey(ctx, true); errors.Is(err, tables.ErrConflict) || errors.Is(err, errHasDataKey) {
		return nil // another program has created it
	}
	return err
}

var errHasDataKey = errors.New("the registry already has a data key")

// retired returns the row of the data key that "current" names, with its state changed to retired, and the Since of
// "current". It returns nil if the key cannot be used or the Check of "current" is wrong: then no write uses the key.
func (r *registry) retired(ctx context.Context, current *currentRow) (*keyRow, time.Time, error) {
	id, ok := parseDataKeyID(current.DataKey)
	if !ok {
		return nil, time.Time{}, nil
	}
	row, err := r.keyRows.Get(ctx, tables.Key{Partition: r.name, Row: keyRowKey(id)})
	var key []byte
	if err == nil {
		key, err = r.unwrap(ctx, row)
	}
	switch {
	case err != nil && unreadable(err):
		return nil, time.Time{}, nil
	case err != nil:
		return nil, time.Time{}, err
	case !hmac.Equal(r.currentCheck(key, current.Since), current.Check):
		return nil, time.Time{}, nil
	}
	row.State = stateRetired
	row.Check = r.checkOf(key, row)
	return row, current.Since, nil
}

// commitKey writes a new data key, the row that names it and the retired key, if there is one.
func (r *registry) commitKey(ctx context.Context, row *keyRow, current *currentRow, first bool, retired *keyRow) error {
	x := r.table.NewTransaction()
	keyEntity, err := r.keyRows.Entity(row)
	if err != nil {
		return err
	}
	currentEntity, err := r.currentRows.Entity(current)
	if err != nil {
		return err
	}
	x.Insert(keyEntity)
	if first {
		x.Insert(currentEntity)
	} else {
		x.Replace(currentEntity)
	}
	if retired != nil {
		retiredEntity, err := r.keyRows.Entity(retired)
		if err != nil {
			return err
		}
		x.Replace(retiredEntity)
	}
	_, err = x.Commit(ctx)
	return err
}

// Rewrap wraps every key of the registry again with the registry's wrapper. If the wrapper is a Chain whose first
// wrapper is new, the registry no longer needs the old wrapping key afterwards. Encrypted entities are not changed.
// Rewrap returns the number of keys that it wrote; it skips keys that are already under the newest version of the
// wrapping key, so it can be repeated after a crash. It replaces a wrapped key only after it has unwrapped the new
// form successfully. Requests: 2, and 1 more for each 1,000 keys; for each key 1 to unwrap and 1 to wrap; for each
// changed key 1 more to unwrap and 1 to write.
func (r *Registry) Rewrap(ctx context.Context) (int, error) {
	written := 0
	for _, prefix := range []string{prefixKey, prefixBeacon} {
		for row, err := range r.state.rows(ctx, prefix) {
			if err != nil {
				return written, err
			}
			changed, err := r.state.rewrap(ctx, row)
			if err != nil {
				return written, keyError("Rewrap", row, err)
			}
			if !changed {
				continue
			}
			err = r.state.keyRows.Replace(ctx, row)
			if errors.Is(err, tables.ErrConflict) || errors.Is(err, tables.ErrNotFound) {
				continue // another Rewrap has written it, or it was removed
			}
			if err != nil {
				return written, err
			}
			written++
		}
	}
	return written, nil
}

// rewrap wraps a key again and puts it into its row.
func (r *registry) rewrap(ctx context.Context, row *keyRow) (changed bool, err error) {
	key, err := r.unwrap(ctx, row)
	if err != nil {
		return false, err
	}
	if id := idOf(key); !r.trusts(id) {
		return false, errNotTrusted(id) // do not wrap an attacker's key under an AES key, which would make it look like one of the registry's
	}
	wrapped, err := r.wrapper.Wrap(ctx, key)
	if err != nil || wrapped.KeyID == row.WrappedBy && wrapped.Algorithm == row.Algorithm {
		return false, err
	}
	row.Wrapped, row.WrappedBy, row.Algorithm = wrapped.Bytes, wrapped.KeyID, wrapped.Algorithm
	again, err := r.unwrap(ctx, row) // test the new form before it replaces the old one, which may be the only form that can be unwrapped
	if err == nil && subtle.ConstantTimeCompare(again, key) != 1 {
		err = errNotWrapped()
	}
	return err == nil, err
}

func keyError(op string, row *keyRow, err error) error {
	return fmt.Errorf("%s: %s of the registry: %w", op, row.RowKey, err)
}

// Check unwraps every key of the registry and reports each key that is missing, cannot be unwrapped or is not
// trusted, and why. Errors from reads of entities deliberately do not contain these details. Requests: 3, 1
// more for each 1,000 keys, and 1 to unwrap each.
func (r *Registry) Check(ctx context.Context) error {
	var problems []error
	named, current, err := r.state.readCurrent(ctx)
	if err != nil {
		problems = append(problems, fmt.Errorf("checking the current data key: %w", err))
	}
	found := map[DataKeyID]bool{}
	for _, prefix := range []string{prefixKey, prefixBeacon} {
		for row, err := range r.state.rows(ctx, prefix) {
			if err != nil {
				return errors.Join(append(problems, err)...)
			}
			key, err := r.state.unwrap(ctx, row)
			if err == nil {
				id := idOf(key)
				found[id] = true
				if !r.state.trusts(id) {
					err = errNotTrusted(id)
				}
			}
			if err != nil {
				problems = append(problems, keyError("Check", row, err))
			}
			if row.RowKey == keyRowKey(current) {
				found[current] = true
				if err == nil && len(r.state.trusted) == 0 { // with Trusted, writes ignore the row "current"
					if err := r.state.checkCurrent(named, heldKey{newSecret(key), row.State}); err != nil {
						problems = append(problems, fmt.Errorf("checking the current data key: %w", err))
					}
				}
			}
		}
	}
	wanted := r.state.trusted
	if err == nil && len(wanted) == 0 {
		wanted = []DataKeyID{current}
	}
	for _, id := range wanted {
		if !found[id] {
			problems = append(problems, fmt.Errorf("%w: the registry has no data key %s; Registry.DataKeys lists the existing ones", tables.ErrNotFound, id))
		}
	}
	return errors.Join(problems...)
}

// rotationMargin is added to the longest TTL before a key is removed. It covers the difference between clocks, and a write that took the
// key from the cache at the end of the TTL and is not finished.
const rotationMargin = 15 * time.Minute

// RemoveUnusedDataKey deletes a data key under which no property in the given tables is encrypted any more. Pass the
// tables of the entities and those of their copies. Data encrypted under the key elsewhere, in another table, a blob
// (see UsesInBlobs) or a backup, is lost unless a backup has the key's row. It returns tables.ErrConflict for the
// current key, for a key in RegistryOptions.Trusted, and for a key that still has uses (run Reencrypt). It also
// returns tables.ErrConflict during the first 24 hours (the longest TTL) and 15 minutes after the last CreateDataKey,
// since other programs may still write with the key. First stop or change programs that have the key among
// RegistryOptions.Trusted. Requests: those of Uses, and 3 more.
func (r *Registry) RemoveUnusedDataKey(ctx context.Context, id DataKeyID, among ...*tables.Table) error {
	const op = "RemoveUnusedDataKey"
	s := r.state
	refuse := func(kind error, format string, args ...any) error {
		return &tables.Error{Op: op, Table: s.table.Name(), Kind: kind, Err: fmt.Errorf(format, args...)}
	}
	if len(among) == 0 {
		return refuse(tables.ErrInvalid, "no table was given; give all tables that may hold the key's data")
	}
	row, current, err := s.readCurrent(ctx)
	switch {
	case err != nil:
		return err
	case current == id || slices.Contains(s.trusted, id):
		return refuse(tables.ErrConflict, "data key %s is the current one or in RegistryOptions.Trusted; create another one, or remove it from Trusted", id)
	case s.now().Before(row.Since.Add(maxTTL + rotationMargin)):
		return refuse(tables.ErrConflict, "other programs may write with data key %s until %v after the last CreateDataKey; try again later", id, maxTTL+rotationMargin)
	}
	uses, err := Uses(ctx, among...)
	if err != nil {
		return err
	}
	if uses[id] != 0 {
		return refuse(tables.ErrConflict, "data key %s still has %d uses; run Reencrypt first", id, uses[id])
	}
	key, err := s.keyRows.Get(ctx, tables.Key{Partition: s.name, Row: keyRowKey(id)})
	if err == nil {
		err = s.keyRows.Delete(ctx, key)
	}
	s.keys.forget(id)
	return err
}
