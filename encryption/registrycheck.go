package encryption

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Check, in a registry's row of a key, is HMAC-SHA256, with the key itself, over
//
//	"tablepatterns/encryption/2/registry", name of the registry, table in lower case, row key, id of the key, State, Created
//
// each text preceded by 4 bytes of length, Created as milliseconds since 1970 in 8 bytes, big endian. In the row "current" it is the
// same with the key that the row names, over
//
//	"tablepatterns/encryption/2/current", name of the registry, table in lower case, id of the key, Since
//
// So a wrapped key is good in its own row of its own registry only, with its own state; and nobody without a key can name it as
// current. A key is active from when it is made until CreateDataKey makes the next one, which retires it in the same transaction:
// from then on it decrypts, and no write uses it, whatever "current" names. A row without a State is from before: its Check is over
// "tablepatterns/encryption/1/registry", without the length, and the row key.
//
// What was valid once can be put back as it was: a row that was deleted, from a backup, decrypts again, as a backup of the data
// needs; both "current" and its key's row from before a rotation name the older key again. A program that has used a later
// "current" refuses that; one that has just started does not, without RegistryOptions.Trusted.
const (
	stateActive  = "active"
	stateRetired = "retired"

	domainRegistry = "tablepatterns/encryption/2/registry"
	domainCurrent  = "tablepatterns/encryption/2/current"
)

// heldKey is a key as it is in memory, with the state that its row says.
type heldKey struct {
	secret
	state string
}

// acceptance says which rows are accepted without RegistryOptions.Trusted.
type acceptance struct {
	anyWrapping bool // TrustTable
	unbound     bool // AcceptUnbound
}

// checkOf binds a key to its row, as far as the row says it is bound.
func (r *registry) checkOf(key []byte, row *keyRow) []byte {
	mac := hmac.New(sha256.New, key)
	if row.State == "" {
		mac.Write(appendField([]byte("tablepatterns/encryption/1/registry"), row.RowKey))
		return mac.Sum(nil)
	}
	writeFields(mac.Write, domainRegistry, r.name, r.tableName(), row.RowKey, idOf(key).String(), row.State)
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(row.Created.UnixMilli())))
	return mac.Sum(nil)
}

// currentCheck binds the row "current" to the key that it names.
func (r *registry) currentCheck(key []byte, since time.Time) []byte {
	mac := hmac.New(sha256.New, key)
	writeFields(mac.Write, domainCurrent, r.name, r.tableName(), idOf(key).String())
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(since.UnixMilli())))
	return mac.Sum(nil)
}

func writeFields(write func([]byte) (int, error), fields ...string) {
	for _, field := range fields {
		_, _ = write(appendField(nil, field)) // a hash never fails
	}
}

// tableName is the table's name as it is authenticated: names of tables do not differ by case.
func (r *registry) tableName() string { return strings.ToLower(r.table.Name()) }

// admits refuses rows of which nothing shows that they were made for this registry by somebody who has the wrapping key. With
// Trusted, the id shows it.
func (r *registry) admits(row *keyRow) error {
	switch {
	case row.State != "" && row.State != stateActive && row.State != stateRetired:
		return fmt.Errorf("%w: State of the row is neither %q nor %q", tables.ErrGarbled, stateActive, stateRetired)
	case len(r.trusted) > 0:
	case !isSymmetric(row.Algorithm) && !r.accepts.anyWrapping:
		return fmt.Errorf("%w: the key is wrapped by %q, and whoever has the public half of such a wrapping key can wrap one; name its id in RegistryOptions.Trusted, or set TrustTable", tables.ErrInvalid, row.Algorithm)
	case row.State == "" && !r.accepts.unbound:
		return errUnbound
	}
	return nil
}

var errUnbound = fmt.Errorf("%w: the row was made before its Check covered registry, table and state; set RegistryOptions.AcceptUnbound until Rewrap has bound all rows", tables.ErrInvalid)

// isSymmetric reports whether only a holder of the wrapping key can wrap by an algorithm.
func isSymmetric(algorithm string) bool {
	return algorithm == AlgorithmA128KW || algorithm == AlgorithmA192KW || algorithm == AlgorithmA256KW
}

// errNoDataKey says that the registry's row "current" is not there.
var errNoDataKey = errors.New("the registry has no data key")

// writable returns the data key for new writes, once all that names it was checked.
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
	bound := len(row.Check) > 0
	switch {
	case !bound && !r.accepts.unbound && len(r.trusted) == 0:
		return errUnbound
	case bound && !hmac.Equal(r.currentCheck(key.bytes(), row.Since), row.Check):
		return fmt.Errorf("%w: Check of the registry's row %q does not fit", tables.ErrGarbled, rowCurrent)
	case key.state == stateRetired:
		return fmt.Errorf("%w: the registry's row %q names data key %s, which is retired", tables.ErrGarbled, rowCurrent, row.DataKey)
	case bound && !r.newest.advance(row.Since):
		return fmt.Errorf("%w: the registry's row %q is older than one that this program has used", tables.ErrGarbled, rowCurrent)
	}
	return nil
}

// newestSeen is the time of the newest row "current" that was used.
type newestSeen struct {
	mu sync.Mutex
	at time.Time
}

// advance reports whether a row is as new as all that were used before.
func (n *newestSeen) advance(since time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if since.Before(n.at) {
		return false
	}
	n.at = since
	return true
}
