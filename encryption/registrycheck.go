package encryption

import (
	"context"
	"crypto/hmac"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/tables"
)

// In the row of a key, the property Check is HMAC-SHA256, with the key itself, over
//
//	"tablepatterns/encryption/1/registry", name of the registry, account, table in lower case, row key, id of the key, State, Created
//
// each text preceded by 4 bytes of length, Created as milliseconds since 1970 in 8 bytes, big endian. In the
// row "current", Check is HMAC-SHA256, with the key that the row names, over
//
//	"tablepatterns/encryption/1/current", name of the registry, account, table in lower case, id of the key, Since
//
// So a wrapped key is valid only in its own row of its own registry, with its own state, and only somebody
// who has a key can name it as current. A key is active until CreateDataKey creates the next one, which
// retires it in the same transaction. A retired key still decrypts, but a program that reads its row does not
// write under it, even if the row "current" names it; with RegistryOptions.Trusted, only that list decides which key is
// used.
//
// An attacker who can write the table can restore a row that was valid once. A deleted key that is restored from a
// backup decrypts again. This is intended: restored data needs its key. If the row "current" and the row of its
// key are restored from before a rotation, the older key becomes current again. A program that has already
// used the newer "current" refuses it. A program that has just started accepts it, unless
// RegistryOptions.Trusted is set.
const (
	stateActive  = "active"
	stateRetired = "retired"

	domainRegistry = "tablepatterns/encryption/1/registry"
	domainCurrent  = "tablepatterns/encryption/1/current"
)

// heldKey is an unwrapped key in memory, with the state in its row.
type heldKey struct {
	secret
	state string
}

// checkOf computes the Check of a key's row.
func (r *registry) checkOf(key []byte, row *keyRow) []byte {
	at := locationOf(r.table, tables.Key{Row: row.RowKey})
	fields := appendFields(nil, domainRegistry, r.name, at.account, at.table, at.row, idOf(key).String(), row.State)
	return hmacOf(key, binary.BigEndian.AppendUint64(fields, uint64(row.Created.UnixMilli())))
}

// currentCheck computes the Check of the row "current".
func (r *registry) currentCheck(key []byte, since time.Time) []byte {
	at := locationOf(r.table, tables.Key{})
	fields := appendFields(nil, domainCurrent, r.name, at.account, at.table, idOf(key).String())
	return hmacOf(key, binary.BigEndian.AppendUint64(fields, uint64(since.UnixMilli())))
}

// admits refuses a row that may have been made by somebody without the wrapping key, or for another registry. With
// RegistryOptions.Trusted it accepts any such row, since the caller then compares the key's id with the list.
func (r *registry) admits(row *keyRow) error {
	switch {
	case row.State != stateActive && row.State != stateRetired:
		return fmt.Errorf("%w: the row's State must be %q or %q; restore the row from a backup", tables.ErrGarbled, stateActive, stateRetired)
	case len(r.trusted) > 0:
	case !isSymmetric(row.Algorithm) && !r.trustTable:
		return fmt.Errorf("%w: the key is wrapped with %q, which needs only a public key, so anybody may have made it; add its id to RegistryOptions.Trusted, or set TrustTable", tables.ErrWiring, row.Algorithm)
	}
	return nil
}

// isSymmetric reports whether only somebody who has the secret wrapping key can wrap with the algorithm. With RSA, the public half is
// enough.
func isSymmetric(algorithm string) bool {
	return algorithm == AlgorithmA128KW || algorithm == AlgorithmA192KW || algorithm == AlgorithmA256KW
}

// errNoDataKey means that the registry's row "current" does not exist.
var errNoDataKey = errors.New("the registry has no data key; create the first one with Store.Create or Registry.EnsureDataKey")

// writable returns the id of the data key for new writes, after it has checked the row "current" and the row of that key.
func (r *registry) writable(ctx context.Context) (DataKeyID, error) {
	if len(r.trusted) > 0 {
		return r.trusted[0], nil
	}
	row, id, err := r.readCurrent(ctx)
	if errors.Is(err, tables.ErrNotFound) {
		return id, errors.Join(errNoDataKey, err)
	}
	if err != nil {
		return id, err
	}
	key, err := r.held(ctx, id)
	if err != nil {
		return id, err
	}
	return id, r.checkCurrent(row, key)
}

// checkCurrent checks the row "current" against the key that it names.
func (r *registry) checkCurrent(row *currentRow, key heldKey) error {
	switch {
	case !hmac.Equal(r.currentCheck(key.bytes(), row.Since), row.Check):
		return fmt.Errorf("%w: the registry's row %q does not match its Check; call Registry.CreateDataKey to name a new key", tables.ErrGarbled, rowCurrent)
	case key.state == stateRetired:
		return fmt.Errorf("%w: the registry's row %q names data key %s, which is retired; call Registry.CreateDataKey", tables.ErrGarbled, rowCurrent, row.DataKey)
	case !r.newest.advance(row.Since):
		return fmt.Errorf("%w: the registry's row %q is older than one that this program has used: somebody has restored it; call Registry.CreateDataKey", tables.ErrGarbled, rowCurrent)
	}
	return nil
}

// newestSeen holds the Since of the newest row "current" that this program has used.
type newestSeen struct {
	mu sync.Mutex
	at time.Time
}

// advance reports whether a row is at least as new as every one used before.
func (n *newestSeen) advance(since time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if since.Before(n.at) {
		return false
	}
	n.at = since
	return true
}
