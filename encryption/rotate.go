package encryption

import (
	"context"
	"crypto/hmac"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/tables"
)

// CreateDataKey makes a data key that new writes use from now on, in other programs within their TTL. The first one has to
// be made before anything is written. It is tables.ErrConflict when somebody else made one at the same time; theirs is as good.
// The one that it replaces is retired in the same transaction: it decrypts, and is never again one to write with. Requests: 1 to
// wrap, 1 to read, 1 transaction; where there was one, 1 more to read and 1 to unwrap.
func (r *Registry) CreateDataKey(ctx context.Context) (DataKeyID, error) {
	const op = "CreateDataKey"
	s, key := r.state, randomKey()
	id := idOf(key)
	row, err := s.wrap(ctx, key, keyRowKey(id))
	if err != nil {
		return DataKeyID{}, err
	}
	current, _, err := s.readCurrent(ctx)
	first := errors.Is(err, tables.ErrNotFound)
	if current == nil && !first { // one that names no key is replaced
		return DataKeyID{}, err
	}
	if first {
		current = &currentRow{PartitionKey: s.name, RowKey: rowCurrent}
	}
	retired, since, err := s.retired(ctx, current)
	if err != nil {
		return DataKeyID{}, err
	}
	current.DataKey, current.Since = id.String(), s.stamp()
	if !since.Before(current.Since) {
		current.Since = since.Add(time.Millisecond) // this clock is behind: no program may take the new row for an older one
	}
	current.Check = s.currentCheck(key, current.Since)
	err = s.commitKey(ctx, row, current, first, retired)
	if errors.Is(err, tables.ErrExists) && !errors.Is(err, tables.ErrUnknownOutcome) {
		return DataKeyID{}, &tables.Error{Op: op, Table: s.table.Name(), Kind: tables.ErrConflict, Err: errors.New("somebody else made the first data key")}
	}
	if err != nil {
		return DataKeyID{}, err
	}
	s.current.forget(struct{}{})
	return id, nil
}

// retired returns the row of the data key that "current" names, with its state changed, and since when it was current. It is nil
// where there is none, and where nothing shows that the two belong together: such rows name no key to write with.
func (r *registry) retired(ctx context.Context, current *currentRow) (*keyRow, time.Time, error) {
	id, ok := parseDataKeyID(current.DataKey)
	if !ok {
		return nil, time.Time{}, nil
	}
	rows, err := tables.RowsOf[keyRow](r.table)
	if err != nil {
		return nil, time.Time{}, err
	}
	row, err := rows.Get(ctx, tables.Key{Partition: r.name, Row: keyRowKey(id)})
	var key []byte
	if err == nil {
		key, err = r.unwrap(ctx, row)
	}
	switch {
	case err != nil && unreadable(err):
		return nil, time.Time{}, nil
	case err != nil:
		return nil, time.Time{}, err
	case len(current.Check) > 0 && !hmac.Equal(r.currentCheck(key, current.Since), current.Check):
		return nil, time.Time{}, nil
	}
	row.State = stateRetired
	row.Check = r.checkOf(key, row)
	return row, current.Since, nil
}

// commitKey writes a new data key, with the row that names it and the one that it replaces, if there is one.
func (r *registry) commitKey(ctx context.Context, row *keyRow, current *currentRow, first bool, retired *keyRow) error {
	x := r.table.NewTransaction()
	keyEntity, err := entityOf(r.table, row)
	if err != nil {
		return err
	}
	currentEntity, err := entityOf(r.table, current)
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
		retiredEntity, err := entityOf(r.table, retired)
		if err != nil {
			return err
		}
		x.Replace(retiredEntity)
	}
	_, err = x.Commit(ctx)
	return err
}

func entityOf[T any](table *tables.Table, row *T) (*tables.Entity, error) {
	typed, err := tables.RowsOf[T](table)
	if err != nil {
		return nil, err
	}
	return typed.Entity(row)
}

// Rewrap wraps every key of the registry again, by the wrapper as it is now: with a Chain whose first is the new wrapping
// key, the old one is not needed any more afterwards. Encrypted entities are not touched. It returns the number of keys that
// it wrote; those that are under the newest version already stay as they are, so it can be repeated after a crash. A wrapped
// key is replaced only once the new one was unwrapped. Rows that RegistryOptions.AcceptUnbound or Trusted accepts are bound to the
// registry. Requests: 3, 1 more for each 1,000 keys; for each key 1 to unwrap and 1 to wrap; 1 more to unwrap and 1 to write where it
// changes; for an unbound "current" 1 to write.
func (r *Registry) Rewrap(ctx context.Context) (int, error) {
	typed, err := tables.RowsOf[keyRow](r.state.table)
	if err != nil {
		return 0, err
	}
	current, id, err := r.state.readCurrent(ctx)
	if err != nil && !unreadable(err) {
		return 0, err
	}
	written := 0
	for _, prefix := range []string{prefixKey, prefixBeacon} {
		for row, err := range r.state.rows(ctx, prefix) {
			if err != nil {
				return written, err
			}
			changed, err := r.state.rewrap(ctx, row, id)
			if err != nil {
				return written, keyError("Rewrap", row, err)
			}
			if !changed {
				continue
			}
			err = typed.Replace(ctx, row)
			if errors.Is(err, tables.ErrConflict) || errors.Is(err, tables.ErrNotFound) {
				continue // another Rewrap has it, or it was removed
			}
			if err != nil {
				return written, err
			}
			written++
		}
	}
	if current != nil && len(current.Check) == 0 && !id.IsZero() {
		return written, r.state.bindCurrent(ctx, current, id)
	}
	return written, nil
}

// bindCurrent adds the check to a row "current" from before there was one.
func (r *registry) bindCurrent(ctx context.Context, row *currentRow, id DataKeyID) error {
	typed, err := tables.RowsOf[currentRow](r.table)
	if err != nil {
		return err
	}
	r.keys.forget(id)
	key, err := r.dataKey(ctx, id)
	if err != nil {
		return err
	}
	row.Check = r.currentCheck(key, row.Since)
	if err := typed.Replace(ctx, row); err != nil && !errors.Is(err, tables.ErrConflict) {
		return err // whoever came first has bound it, or named another key
	}
	return nil
}

// rewrap puts a key into its row as it is wrapped now, and binds the row.
func (r *registry) rewrap(ctx context.Context, row *keyRow, current DataKeyID) (changed bool, err error) {
	key, err := r.unwrap(ctx, row)
	if err != nil {
		return false, err
	}
	if id := idOf(key); !r.trusts(id) {
		return false, errNotTrusted(id) // under a better wrapping key it would look like one of ours
	}
	wrapped, err := r.wrapper.Wrap(ctx, key)
	if err != nil || wrapped.KeyID == row.WrappedBy && wrapped.Algorithm == row.Algorithm && row.State != "" {
		return false, err
	}
	row.Wrapped, row.WrappedBy, row.Algorithm = wrapped.Bytes, wrapped.KeyID, wrapped.Algorithm
	if row.State == "" {
		row.State = stateActive
		if strings.HasPrefix(row.RowKey, prefixKey+"_") && row.RowKey != keyRowKey(current) {
			row.State = stateRetired
		}
	}
	row.Check = r.checkOf(key, row)
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
	named, current, err := r.state.readCurrent(ctx)
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
				if err == nil {
					problems = append(problems, r.state.checkNamed(named, key, row.State)...)
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
			problems = append(problems, fmt.Errorf("%w: the registry has no key %s", tables.ErrNotFound, id))
		}
	}
	return errors.Join(problems...)
}

// checkNamed says what is wrong with the row "current", given the key that it names. With Trusted the row does not matter.
func (r *registry) checkNamed(row *currentRow, key []byte, state string) []error {
	if len(r.trusted) > 0 {
		return nil
	}
	if err := r.checkCurrent(row, heldKey{newSecret(key), state}); err != nil {
		return []error{fmt.Errorf("the current data key: %w", err)}
	}
	return nil
}

// settleTime is added to the longest TTL: for clocks that differ, and a write that took the old key at the TTL's last moment and is on
// its way.
const settleTime = 15 * time.Minute

// RemoveUnusedDataKey deletes a data key that no property in the given tables was encrypted under any more: the tables of
// the entities, and those of their copies elsewhere. Whatever was, in another table, a blob (UsesInBlobs) or a backup, is
// lost for good. It is tables.ErrConflict for the current key and a Trusted one, while other programs may still write with it (24 hours, the
// longest TTL, and 15 minutes from when its successor was made), and when there are uses, which Reencrypt removes. Programs that have the
// key among RegistryOptions.Trusted are ended or changed before. Requests: those of Uses, 3 more.
func (r *Registry) RemoveUnusedDataKey(ctx context.Context, id DataKeyID, among ...*tables.Table) error {
	const op = "RemoveUnusedDataKey"
	s := r.state
	refuse := func(kind error, format string, args ...any) error {
		return &tables.Error{Op: op, Table: s.table.Name(), Kind: kind, Err: fmt.Errorf(format, args...)}
	}
	if len(among) == 0 {
		return refuse(tables.ErrInvalid, "it names no table to look at")
	}
	row, current, err := s.readCurrent(ctx)
	switch {
	case err != nil:
		return err
	case current == id || slices.Contains(s.trusted, id):
		return refuse(tables.ErrConflict, "data key %s is the current one, or trusted", id)
	case s.now().Before(row.Since.Add(maxTTL + settleTime)):
		return refuse(tables.ErrConflict, "data key %s may be in use until %v after its successor was made", id, maxTTL+settleTime)
	}
	uses, err := Uses(ctx, among...)
	if err != nil {
		return err
	}
	if uses[id] != 0 {
		return refuse(tables.ErrConflict, "data key %s has %d uses", id, uses[id])
	}
	typed, err := tables.RowsOf[keyRow](s.table)
	if err != nil {
		return err
	}
	key, err := typed.Get(ctx, tables.Key{Partition: s.name, Row: keyRowKey(id)})
	if err == nil {
		err = typed.Delete(ctx, key)
	}
	s.keys.forget(id)
	return err
}
