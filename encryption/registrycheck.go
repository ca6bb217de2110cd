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

// docs/reference/encryption.md has the texts under the Check of a key's row and of the row "current". A wrapped key is valid only in its own row of
// its own registry, with its own state, and only somebody who has a key can name it as current. CreateDataKey creates an active key and retires the
// previous one in the same transaction. A retired key still decrypts, but a program that reads its row does not write under it, even if "current"
// names it; with RegistryOptions.Trusted, only that list decides.
//
// An attacker who can write the table can restore a row that was valid once. A deleted key that is restored from a backup decrypts again, as
// intended: restored data needs it. If "current" and the row of its key are restored from before a rotation, the older key becomes current again:
// for a program that has just started without RegistryOptions.Trusted, not for one that has already used the newer row.
const (
	stateActive  = "active"
	stateRetired = "retired"

	domainRegistry = "tablepatterns/encryption/1/registry"
	domainCurrent  = "tablepatterns/encryption/1/current"
)

type heldKey struct {
	secret
	state string
}

func (r *registry) checkOf(key []byte, row *keyRow) []byte {
	at := locationOf(r.table, tables.Key{Row: row.RowKey})
	fields := appendFields(nil, domainRegistry, r.name, at.account, at.table, at.row, idOf(key).String(), row.State)
	return hmacOf(key, binary.BigEndian.AppendUint64(fields, uint64(row.Created.UnixMilli())))
}

func (r *registry) currentCheck(key []byte, since time.Time) []byte {
	at := locationOf(r.table, tables.Key{})
	fields := appendFields(nil, domainCurrent, r.name, at.account, at.table, idOf(key).String())
	return hmacOf(key, binary.BigEndian.AppendUint64(fields, uint64(since.UnixMilli())))
}

// admits refuses a row that may come from somebody without the wrapping key, or from another registry. With RegistryOptions.Trusted it accepts any,
// since the caller then looks for the key's id in the list.
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

// isSymmetric reports whether wrapping needs the secret key. With RSA, the public half is enough.
func isSymmetric(algorithm string) bool {
	return algorithm == AlgorithmA128KW || algorithm == AlgorithmA192KW || algorithm == AlgorithmA256KW
}

var errNoDataKey = errors.New("the registry has no data key; create the first one with Store.Create or Registry.EnsureDataKey")

// writable returns the id of the data key for new writes, after it has checked both rows.
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

// newestSeen is the Since of the newest row "current" that this program has used.
type newestSeen struct {
	mu sync.Mutex
	at time.Time
}

func (n *newestSeen) advance(since time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if since.Before(n.at) {
		return false
	}
	n.at = since
	return true
}
