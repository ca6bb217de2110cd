package encryption

import (
	"context"
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/tables"
)

// WrappedKey is a key encrypted under another one. It need not be kept secret.
type WrappedKey struct {
	KeyID     string // id of the wrapping key, with its version if it has one
	Algorithm string // such as "A256KW" or "RSA-OAEP-256"
	Bytes     []byte
}

// KeyWrapper holds a wrapping key. Implementations in this package are VaultKey, LocalKey, LocalRSAKey and Chain. It
// must be safe for concurrent use.
type KeyWrapper interface {
	// Wrap encrypts a key.
	Wrap(ctx context.Context, key []byte) (WrappedKey, error)
	// Holds reports whether Unwrap accepts keys that were wrapped under this key id and algorithm. It makes no request.
	Holds(keyID, algorithm string) bool
	// Unwrap decrypts a key. It returns tables.ErrGarbled if this wrapper's key did not wrap it; any other
	// error means that the wrapping key is temporarily unavailable.
	Unwrap(ctx context.Context, wrapped WrappedKey) ([]byte, error)
}

// Chain is a KeyWrapper for the rotation of wrapping keys: it wraps with its first wrapper, and unwraps with
// the wrapper that holds the wrapping key.
type Chain struct {
	hidden
	wrappers []KeyWrapper
}

// NewChain makes a chain; pass the new wrapping key first and older ones after it. If one of them is nil, Wrap fails.
func NewChain(first KeyWrapper, older ...KeyWrapper) Chain {
	return Chain{wrappers: append([]KeyWrapper{first}, older...)}
}

// Wrap implements KeyWrapper.
func (c Chain) Wrap(ctx context.Context, key []byte) (WrappedKey, error) {
	if len(c.wrappers) == 0 || slices.Contains(c.wrappers, nil) {
		return WrappedKey{}, tables.Wiringf("Wrap", "", "the Chain has no wrappers, or a nil one; give NewChain at least one")
	}
	return c.wrappers[0].Wrap(ctx, key)
}

// Holds implements KeyWrapper.
func (c Chain) Holds(keyID, algorithm string) bool {
	for _, w := range c.wrappers {
		if w != nil && w.Holds(keyID, algorithm) {
			return true
		}
	}
	return false
}

// Unwrap implements KeyWrapper.
func (c Chain) Unwrap(ctx context.Context, wrapped WrappedKey) ([]byte, error) {
	for _, w := range c.wrappers {
		if w != nil && w.Holds(wrapped.KeyID, wrapped.Algorithm) {
			return w.Unwrap(ctx, wrapped)
		}
	}
	return nil, errNoWrapper(wrapped)
}

// errNoWrapper names the key, so that an operator can provide it.
func errNoWrapper(wrapped WrappedKey) error {
	return fmt.Errorf("%w: no KeyWrapper holds wrapping key %q with algorithm %q; add one to the registry's Chain", tables.ErrWiring, wrapped.KeyID, wrapped.Algorithm)
}

// errNotWrapped means that the bytes are not a key wrapped under this wrapper's key.
func errNotWrapped() error {
	return fmt.Errorf("%w: the bytes are not a key that this wrapping key has wrapped; restore the data key's row from a backup", tables.ErrGarbled)
}

var (
	_ KeyWrapper = LocalKey{}
	_ KeyWrapper = LocalRSAKey{}
	_ KeyWrapper = VaultKey{}
	_ KeyWrapper = Chain{}
)
