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

// CreateDataKey creates a data key for all further writes; other programs use it within their TTL. The previous key is retired in the same
// transaction: it still decrypts, but is not written under, unless RegistryOptions.Trusted names another first. It returns tables.ErrConflict if
// another program created a key at the same time; use that key. Requests: 1 to wrap, 1 to read, 1 transaction; if there was a key, 1 more to read
// it and 1 to unwrap it.
func (r *Registry) CreateDataKey(ctx context.Context) (DataKeyID, error) {
	return r.createDataKey(ctx, false)
}

// createDataKey with onlyFirst returns errHasDataKey if there is a data key already.
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
	if current == nil { // the row names no key, and this call replaces it
		return DataKeyID{}, err
	}
	retired, since, err := s.retired(ctx, current)
	if err != nil {
		return DataKeyID{}, err
	}
	current.DataKey, current.Since = id.String(), s.stamp()
	if !since.Before(current.Since) {
		current.Since = since.Add(time.Millisecond) // this program's clock is slow: a row older than the previous one would be refused
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

// EnsureDataKey creates the first data key if there is none. Programs that call it at once all use the same key. Store.Create calls it for a
// registry in one of the store's tables. It does nothing with RegistryOptions.Trusted: no program would use a key that Trusted does not name.
// Requests: 1, and those of CreateDataKey for the first key.
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

// retired returns the current data key's row, changed to retired, and the Since of "current". It returns nil if the key cannot be used or the Check
// of "current" is wrong: then no write uses the key.
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

// Rewrap wraps every key of the registry again with the registry's wrapper, and leaves encrypted entities as they are. With a Chain whose first
// wrapper is new, the registry no longer needs the old wrapping key afterwards. It returns how many keys it wrote; it skips those under the newest
// version of the wrapping key, so it can be repeated after a crash, and replaces a wrapped key only after it has unwrapped the new form. Requests:
// 2, and 1 more for each 1,000 keys; for each key 1 to unwrap and 1 to wrap; for each changed key 1 more to unwrap and 1 to write.
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
				continue // by another Rewrap, or removed
			}
			if err != nil {
				return written, err
			}
			written++
		}
	}
	return written, nil
}

func (r *registry) rewrap(ctx context.Context, row *keyRow) (changed bool, err error) {
	key, err := r.unwrap(ctx, row)
	if err != nil {
		return false, err
	}
	if id := idOf(key); !r.trusts(id) {
		return false, errNotTrusted(id) // under an AES key, an attacker's key would look like one of the registry's
	}
	wrapped, err := r.wrapper.Wrap(ctx, key)
	if err != nil || wrapped.KeyID == row.WrappedBy && wrapped.Algorithm == row.Algorithm {
		return false, err
	}
	row.Wrapped, row.WrappedBy, row.Algorithm = wrapped.Bytes, wrapped.KeyID, wrapped.Algorithm
	again, err := r.unwrap(ctx, row) // test the new form before it replaces the old one
	if err == nil && subtle.ConstantTimeCompare(again, key) != 1 {
		err = errNotWrapped()
	}
	return err == nil, err
}

func keyError(op string, row *keyRow, err error) error {
	return fmt.Errorf("%s: %s of the registry: %w", op, row.RowKey, err)
}

// Check unwraps every key of the registry and reports each that is missing, cannot be unwrapped or is not trusted, and why; errors of reads
// deliberately do not tell. Requests: 3, 1 more for each 1,000 keys, and 1 to unwrap each.
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
				if err == nil && len(r.state.trusted) == 0 { // with Trusted, writes ignore it
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

// rotationMargin, beside the longest TTL, covers the difference between clocks and a write that took the key at the end of the TTL.
const rotationMargin = 15 * time.Minute

// RemoveUnusedDataKey deletes a data key under which nothing in the given tables is encrypted any more. Pass the tables of the entities and of
// their copies: what is encrypted under the key elsewhere, in another table, a blob (see UsesInBlobs) or a backup, is lost unless a backup has the
// key's row. It returns tables.ErrConflict for the current key, for a key in RegistryOptions.Trusted, for one that still has uses (run Reencrypt),
// and during the first 24 hours (the longest TTL) and 15 minutes after the last CreateDataKey, since other programs may still write with the key.
// First stop or change programs that have the key among RegistryOptions.Trusted. Requests: those of Uses, and 3 more.
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
