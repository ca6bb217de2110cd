package encryption

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/patterns"
)

// CreateDataKey makes a data key that new writes use from now on, in other programs within their TTL. The first one has to
// be made before anything is written. It is patterns.ErrConflict when somebody else made one at the same time; theirs is as good.
// Requests: 1 to wrap, 1 to read, 1 transaction.
func (r *Registry) CreateDataKey(ctx context.Context) (DataKeyID, error) {
	const op = "CreateDataKey"
	s, key := r.state, randomKey()
	id := idOf(key)
	row, err := s.wrap(ctx, key, keyRowKey(id))
	if err != nil {
		return DataKeyID{}, err
	}
	current, _, err := s.readCurrent(ctx)
	first := errors.Is(err, patterns.ErrNotFound)
	if current == nil && !first { // one that names no key is replaced
		return DataKeyID{}, err
	}
	if first {
		current = &currentRow{PartitionKey: s.name, RowKey: rowCurrent}
	}
	current.DataKey, current.Since = id.String(), s.stamp()
	x := s.table.NewTransaction()
	keyEntity, err := entityOf(s.table, row)
	if err != nil {
		return DataKeyID{}, err
	}
	currentEntity, err := entityOf(s.table, current)
	if err != nil {
		return DataKeyID{}, err
	}
	x.Insert(keyEntity)
	if first {
		x.Insert(currentEntity)
	} else {
		x.Replace(currentEntity)
	}
	_, err = x.Commit(ctx)
	if errors.Is(err, patterns.ErrExists) && !errors.Is(err, patterns.ErrUnknownOutcome) {
		return DataKeyID{}, &patterns.Error{Op: op, Table: s.table.Name(), Index: -1, Kind: patterns.ErrConflict, Err: errors.New("somebody else made the first data key")}
	}
	if err != nil {
		return DataKeyID{}, err
	}
	s.current.forget(struct{}{})
	return id, nil
}

func entityOf[T any](table *patterns.Table, row *T) (*patterns.Entity, error) {
	typed, err := patterns.Typed[T](table)
	if err != nil {
		return nil, err
	}
	return typed.Entity(row)
}

// Rewrap wraps every key of the registry anew, by the wrapper as it is now: with a Chain whose first is the new wrapping
// key, the old one is not needed any more afterwards. Encrypted entities are not touched. It returns the number of keys that
// it wrote; those that are under the newest version already stay as they are, so it can be repeated after a crash. A wrapped
// key is replaced only once the new one was unwrapped. Requests: 2, 1 more for each 1,000 keys; for each key 1 to unwrap and 1 to
// wrap; 1 more to unwrap and 1 to write where it changes.
func (r *Registry) Rewrap(ctx context.Context) (int, error) {
	typed, err := patterns.Typed[keyRow](r.state.table)
	if err != nil {
		return 0, err
	}
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
			err = typed.Replace(ctx, row)
			if errors.Is(err, patterns.ErrConflict) || errors.Is(err, patterns.ErrNotFound) {
				continue // another Rewrap has it, or it was removed
			}
			if err != nil {
				return written, err
			}
			written++
		}
	}
	return written, nil
}

// rewrap puts a key into its row as it is wrapped now.
func (r *registry) rewrap(ctx context.Context, row *keyRow) (changed bool, err error) {
	key, err := r.unwrap(ctx, row)
	if err != nil {
		return false, err
	}
	if id := idOf(key); !r.trusts(id) {
		return false, errNotTrusted(id) // under a better wrapping key it would look like one of ours
	}
	wrapped, err := r.wrapper.Wrap(ctx, key)
	if err != nil || wrapped.KeyID == row.WrappedBy && wrapped.Algorithm == row.Algorithm {
		return false, err
	}
	row.Wrapped, row.WrappedBy, row.Algorithm = wrapped.Bytes, wrapped.KeyID, wrapped.Algorithm
	again, err := r.unwrap(ctx, row) // what is replaced may be the only form of the key that there is
	if err == nil && subtle.ConstantTimeCompare(again, key) != 1 {
		err = errNotWrapped()
	}
	return err == nil, err
}

// keyError names the row.
func keyError(op string, row *keyRow, err error) error {
	return fmt.Errorf("%s: %s of the registry: %w", op, row.RowKey, err)
}

// Check unwraps every key of the registry and says which one cannot be unwrapped or is not trusted, and why, and which one is
// missing; where entities cannot be decrypted, their error does not say so. Requests: 3, 1 more for each 1,000 keys, 1 to
// unwrap each.
func (r *Registry) Check(ctx context.Context) error {
	var problems []error
	_, current, err := r.state.readCurrent(ctx)
	if err != nil {
		problems = append(problems, fmt.Errorf("the current data key: %w", err))
	}
	found := map[DataKeyID]bool{}
	for _, prefix := range []string{prefixKey, prefixBeacon} {
		for row, err := range r.state.rows(ctx, prefix) {
			if err != nil {
				return errors.Join(append(problems, err)...)
			}
			key, err := r.state.unwrap(ctx, row)
			id := idOf(key)
			if err == nil && !r.state.trusts(id) {
				err = errNotTrusted(id)
			}
			if err != nil {
				problems = append(problems, keyError("Check", row, err))
			}
			found[id] = true
			if row.RowKey == keyRowKey(current) {
				found[current] = true
			}
		}
	}
	wanted := r.state.trusted
	if err == nil && len(wanted) == 0 {
		wanted = []DataKeyID{current}
	}
	for _, id := range wanted {
		if !found[id] {
			problems = append(problems, fmt.Errorf("%w: the registry has no key %s", patterns.ErrNotFound, id))
		}
	}
	return errors.Join(problems...)
}

// settleTime is added to the TTL: for clocks that differ, and a write that took the old key at the TTL's last moment and is on
// its way.
const settleTime = 15 * time.Minute

// RemoveUnusedDataKey deletes a data key that no property in the given tables was encrypted under any more: the tables of
// the entities, and those of their copies elsewhere. Whatever was, in another table, a blob (UsesInBlobs) or a backup, is
// lost for good. It is patterns.ErrConflict for the current key and a Trusted one, while other programs may still write with it (the TTL
// and 15 minutes from when its successor was made), and when there are uses, which Reencrypt removes. Programs that have the
// key among RegistryOptions.Trusted are ended or changed before. Requests: those of Uses, 3 more.
func (r *Registry) RemoveUnusedDataKey(ctx context.Context, id DataKeyID, tables ...*patterns.Table) error {
	const op = "RemoveUnusedDataKey"
	s := r.state
	refuse := func(kind error, format string, args ...any) error {
		return &patterns.Error{Op: op, Table: s.table.Name(), Index: -1, Kind: kind, Err: fmt.Errorf(format, args...)}
	}
	if len(tables) == 0 {
		return refuse(patterns.ErrInvalid, "it names no table to look at")
	}
	row, current, err := s.readCurrent(ctx)
	switch {
	case err != nil:
		return err
	case current == id || slices.Contains(s.trusted, id):
		return refuse(patterns.ErrConflict, "data key %s is the current one, or trusted", id)
	case s.now().Before(row.Since.Add(s.ttl + settleTime)):
		return refuse(patterns.ErrConflict, "data key %s may be in use until %v after its successor was made", id, s.ttl+settleTime)
	}
	uses, err := Uses(ctx, tables...)
	if err != nil {
		return err
	}
	if uses[id] != 0 {
		return refuse(patterns.ErrConflict, "data key %s has %d uses", id, uses[id])
	}
	typed, err := patterns.Typed[keyRow](s.table)
	if err != nil {
		return err
	}
	key, err := typed.Get(ctx, patterns.Key{Partition: s.name, Row: keyRowKey(id)})
	if err == nil {
		err = typed.Delete(ctx, key)
	}
	s.keys.forget(id)
	return err
}
