package encryption

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azkeys"

	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

// VaultKey is a KeyWrapper whose key never leaves Azure Key Vault or a managed HSM. Requests: 1 to wrap, 1 to unwrap.
type VaultKey struct {
	hidden
	client    *azkeys.Client
	id, name  string // URL of the key, without a version
	algorithm string
}

// VaultOptions are the options of a VaultKey; nil is the same as the zero value.
type VaultOptions struct {
	// Algorithm is the wrapping algorithm: AlgorithmRSAOAEP256 (the default), or AlgorithmA256KW with an AES key of a
	// managed HSM.
	Algorithm string
}

// NewVaultKey makes a wrapper from a key of the client's vault, such as "https://contoso.vault.azure.net/keys/tables".
// It wraps with the key's newest version, and unwraps with every version that the vault still has. It makes no request.
func NewVaultKey(client *azkeys.Client, keyID string, options *VaultOptions) (VaultKey, error) {
	if options == nil {
		options = &VaultOptions{}
	}
	keyID = strings.TrimSuffix(keyID, "/")
	_, name, found := strings.Cut(keyID, "/keys/")
	k := VaultKey{client: client, id: keyID, name: name, algorithm: options.Algorithm}
	k.algorithm = cmp.Or(k.algorithm, AlgorithmRSAOAEP256)
	switch {
	case client == nil:
		return VaultKey{}, tables.Wiringf("NewVaultKey", "", "the client is nil; give an azkeys.Client")
	case !found || name == "" || strings.Contains(name, "/"):
		return VaultKey{}, tables.Wiringf("NewVaultKey", "", "%q is not the id of a key without a version; it must look like https://contoso.vault.azure.net/keys/tables", keyID)
	case k.algorithm != AlgorithmRSAOAEP256 && k.algorithm != AlgorithmA256KW:
		return VaultKey{}, tables.Wiringf("NewVaultKey", "", "VaultOptions.Algorithm is %q; it must be %s or %s", k.algorithm, AlgorithmRSAOAEP256, AlgorithmA256KW)
	}
	return k, nil
}

// Wrap implements KeyWrapper.
func (k VaultKey) Wrap(ctx context.Context, key []byte) (WrappedKey, error) {
	if k.client == nil {
		return WrappedKey{}, tables.Wiringf("Wrap", "", "the VaultKey is the zero value; make it with NewVaultKey")
	}
	algorithm := azkeys.EncryptionAlgorithm(k.algorithm)
	answer, err := k.client.WrapKey(ctx, k.name, "", azkeys.KeyOperationParameters{Algorithm: &algorithm, Value: key}, nil)
	if err != nil {
		return WrappedKey{}, wire.Redact(err)
	}
	if answer.KID == nil || k.version(string(*answer.KID)) == "" || len(answer.Result) == 0 {
		return WrappedKey{}, errNotWrapped()
	}
	return WrappedKey{KeyID: string(*answer.KID), Algorithm: k.algorithm, Bytes: answer.Result}, nil
}

// version returns the version in a key id, or "" if the id is not an id of this key. It ignores the case of
// the vault's name, since that is a DNS name.
func (k VaultKey) version(keyID string) string {
	if len(keyID) <= len(k.id) || !strings.EqualFold(keyID[:len(k.id)], k.id) || keyID[len(k.id)] != '/' {
		return ""
	}
	if version := keyID[len(k.id)+1:]; !strings.Contains(version, "/") {
		return version
	}
	return ""
}

// Holds implements KeyWrapper.
func (k VaultKey) Holds(keyID, algorithm string) bool {
	switch algorithm {
	case AlgorithmRSAOAEP, AlgorithmRSAOAEP256, AlgorithmA128KW, AlgorithmA192KW, AlgorithmA256KW:
		return k.client != nil && k.version(keyID) != ""
	}
	return false
}

// Unwrap implements KeyWrapper. The vault answers 400 if it cannot decrypt the key.
func (k VaultKey) Unwrap(ctx context.Context, wrapped WrappedKey) ([]byte, error) {
	if !k.Holds(wrapped.KeyID, wrapped.Algorithm) {
		return nil, errNoWrapper(wrapped)
	}
	algorithm := azkeys.EncryptionAlgorithm(wrapped.Algorithm)
	answer, err := k.client.UnwrapKey(ctx, k.name, k.version(wrapped.KeyID), azkeys.KeyOperationParameters{Algorithm: &algorithm, Value: wrapped.Bytes}, nil)
	var response *azcore.ResponseError
	switch {
	case errors.As(err, &response) && (response.StatusCode == http.StatusBadRequest || response.StatusCode == http.StatusNotFound):
		return nil, errNotWrapped() // 404: the version no longer exists, or the row names another key
	case err != nil:
		return nil, wire.Redact(err)
	}
	return answer.Result, nil
}
