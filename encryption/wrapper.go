package encryption

import (
	"context"
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/tables"
)

// WrappedKey is a key encrypted under another one. It is no secret without that one.
type WrappedKey struct {
	KeyID     string // of the wrapping key, with its version where it has one
	Algorithm string // such as "A256KW" or "RSA-OAEP-256"
	Bytes     []byte
}

// KeyWrapper holds a wrapping key. VaultKey, LocalKey, LocalRSAKey and Chain are those of this package. It is safe for
// concurrent use.
type KeyWrapper interface {
	// Wrap encrypts a key.
	Wrap(ctx context.Context, key []byte) (WrappedKey, error)
	// Holds reports whether Unwrap can be asked for keys wrapped under this one and algorithm. It makes no request.
	Holds(keyID, algorithm string) bool
	// Unwrap decrypts a key. What was not wrapped by this key is tables.ErrGarbled; any other error says that the key
	// cannot be had now.
	Unwrap(ctx context.Context, wrapped WrappedKey) ([]byte, error)
}

// Chain is a KeyWrapper for the rotation of wrapping keys: it wraps by its first, and unwraps by whichever holds the key.
type Chain struct {
	hidden
	wrappers []KeyWrapper
}

// NewChain makes a chain: the new wrapping key first, older ones behind it. With one that is nil, it wraps nothing.
func NewChain(first KeyWrapper, older ...KeyWrapper) Chain {
	return Chain{wrappers: append([]KeyWrapper{first}, older...)}
}

// Wrap implements KeyWrapper.
func (c Chain) Wrap(ctx context.Context, key []byte) (WrappedKey, error) {
	if len(c.wrappers) == 0 || slices.Contains(c.wrappers, nil) {
		return WrappedKey{}, tables.Invalidf("Wrap", "a chain of no wrappers, or with one that is nil")
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

// errNoWrapper names the key, which an operator must provide.
func errNoWrapper(wrapped WrappedKey) error {
	return fmt.Errorf("%w: there is no wrapper for key %q and algorithm %q", tables.ErrInvalid, wrapped.KeyID, wrapped.Algorithm)
}

// errNotWrapped is the error of bytes that are no key wrapped under the wrapper's.
func errNotWrapped() error {
	return fmt.Errorf("%w: not a key that was wrapped under this one", tables.ErrGarbled)
}

var (
	_ KeyWrapper = LocalKey{}
	_ KeyWrapper = LocalRSAKey{}
	_ KeyWrapper = VaultKey{}
	_ KeyWrapper = Chain{}
)
