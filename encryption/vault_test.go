package encryption_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	azfake "github.com/Azure/azure-sdk-for-go/sdk/azcore/fake"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azkeys"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azkeys/fake"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	vaultKeyID    = "https://contoso.vault.azure.net/keys/tables"
	firstVersion  = "00000000000000000000000000000001"
	secondVersion = "00000000000000000000000000000002"
)

// vault is Key Vault with versions of one RSA key.
type vault struct {
	versions  map[string]*rsa.PrivateKey
	newest    string
	status    int // of every answer, if it is not 0
	unwrapped int
}

func newVault(t testing.TB) *vault {
	t.Helper()
	v := &vault{versions: map[string]*rsa.PrivateKey{}}
	v.rotate(t, firstVersion)
	return v
}

func (v *vault) rotate(t testing.TB, version string) {
	t.Helper()
	v.newest, v.versions[version] = version, assert.Must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048))
}

func (v *vault) wrapper(t testing.TB, o *encryption.VaultOptions) encryption.VaultKey {
	t.Helper()
	server := fake.Server{
		WrapKey: func(_ context.Context, name, version string, p azkeys.KeyOperationParameters, _ *azkeys.WrapKeyOptions) (r azfake.Responder[azkeys.WrapKeyResponse], e azfake.ErrorResponder) {
			if v.status != 0 {
				e.SetResponseError(v.status, "Refused")
				return r, e
			}
			if name != "tables" || version != "" || *p.Algorithm != azkeys.EncryptionAlgorithmRSAOAEP256 {
				e.SetResponseError(http.StatusBadRequest, "BadParameter")
				return r, e
			}
			b, err := rsa.EncryptOAEP(sha256.New(), rand.Reader, &v.versions[v.newest].PublicKey, p.Value, nil)
			e.SetError(err)
			id := azkeys.ID(vaultKeyID + "/" + v.newest)
			r.SetResponse(http.StatusOK, azkeys.WrapKeyResponse{KeyOperationResult: azkeys.KeyOperationResult{KID: &id, Result: b}}, nil)
			return r, azfake.ErrorResponder{}
		},
		UnwrapKey: func(_ context.Context, name, version string, p azkeys.KeyOperationParameters, _ *azkeys.UnwrapKeyOptions) (r azfake.Responder[azkeys.UnwrapKeyResponse], e azfake.ErrorResponder) {
			v.unwrapped++
			if before, after, found := strings.Cut(name, "/"); found { // the fake server takes both for the name
				name, version = before, after
			}
			key := v.versions[version]
			switch {
			case v.status != 0:
				e.SetResponseError(v.status, "Refused")
				return r, e
			case key == nil || name != "tables":
				e.SetResponseError(http.StatusNotFound, "KeyNotFound")
				return r, e
			}
			b, err := rsa.DecryptOAEP(sha256.New(), nil, key, p.Value, nil)
			if err != nil {
				e.SetResponseError(http.StatusBadRequest, "BadParameter")
				return r, e
			}
			r.SetResponse(http.StatusOK, azkeys.UnwrapKeyResponse{KeyOperationResult: azkeys.KeyOperationResult{Result: b}}, nil)
			return r, azfake.ErrorResponder{}
		},
	}
	client := assert.Must[*azkeys.Client](t)(azkeys.NewClient("https://contoso.vault.azure.net", credential{}, &azkeys.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: fake.NewServerTransport(&server), Retry: policy.RetryOptions{MaxRetries: -1}}}))
	return assert.Must[encryption.VaultKey](t)(encryption.NewVaultKey(client, vaultKeyID, o))
}

type credential struct{}

func (credential) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "token", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// TestVaultKey: keys are wrapped by the newest version and unwrapped by that which the id names; what the vault cannot decrypt
// is told from a vault that does not answer.
func TestVaultKey(t *testing.T) {
	v, ctx := newVault(t), t.Context()
	w := v.wrapper(t, nil)
	key := bytes.Repeat([]byte{7}, 32)
	first := assert.Must[encryption.WrappedKey](t)(w.Wrap(ctx, key))
	v.rotate(t, secondVersion)
	then := assert.Must[encryption.WrappedKey](t)(w.Wrap(ctx, key))
	if first.KeyID != vaultKeyID+"/"+firstVersion || then.KeyID != vaultKeyID+"/"+secondVersion || first.Algorithm != encryption.AlgorithmRSAOAEP256 {
		t.Errorf("wrapped by %s, then %s, with %s", first.KeyID, then.KeyID, first.Algorithm)
	}
	for _, wrapped := range []encryption.WrappedKey{first, then} {
		if got, err := w.Unwrap(ctx, wrapped); err != nil || !bytes.Equal(got, key) {
			t.Errorf("%s: %v", wrapped.KeyID, err)
		}
	}
	swapped := first
	swapped.KeyID = then.KeyID
	gone := first
	gone.KeyID = vaultKeyID + "/00000000000000000000000000000000"
	for what, wrapped := range map[string]encryption.WrappedKey{"another version's": swapped, "a version that is gone": gone} {
		assert.ErrorIs(t, assert.Err(w.Unwrap(ctx, wrapped)), tables.ErrGarbled, what)
	}
	for _, id := range []string{"https://evil.vault.azure.net/keys/tables/" + firstVersion, vaultKeyID, vaultKeyID + "/" + firstVersion + "/x", vaultKeyID + "2/" + firstVersion, "",
		vaultKeyID + "/", vaultKeyID + "/.", vaultKeyID + "/..", vaultKeyID + "/%2e%2e", vaultKeyID + "/v1", vaultKeyID + "/" + firstVersion + "0", vaultKeyID + "/" + firstVersion[1:] + "?"} {
		n := v.unwrapped
		if _, err := w.Unwrap(ctx, encryption.WrappedKey{KeyID: id, Algorithm: first.Algorithm, Bytes: first.Bytes}); !errors.Is(err, tables.ErrWiring) || v.unwrapped != n {
			t.Errorf("key id %q: %v", id, err)
		}
	}
	for _, status := range []int{401, 403, 429, 503} {
		v.status = status
		for _, err := range []error{assert.Err(w.Wrap(ctx, key)), assert.Err(w.Unwrap(ctx, first))} {
			var response *azcore.ResponseError
			if !errors.As(err, &response) || response.StatusCode != status || errors.Is(err, tables.ErrGarbled) {
				t.Errorf("%d: %v", status, err)
			}
		}
	}
	for what, err := range map[string]error{
		"no client":      assert.Err(encryption.NewVaultKey(nil, vaultKeyID, nil)),
		"with a version": assert.Err(encryption.NewVaultKey(&azkeys.Client{}, vaultKeyID+"/v1", nil)),
		"no key":         assert.Err(encryption.NewVaultKey(&azkeys.Client{}, "https://contoso.vault.azure.net", nil)),
		"RSA-OAEP":       assert.Err(encryption.NewVaultKey(&azkeys.Client{}, vaultKeyID, &encryption.VaultOptions{Algorithm: encryption.AlgorithmRSAOAEP})),
	} {
		assert.ErrorIs(t, err, tables.ErrWiring, what)
	}
}

// TestVaultOutage: while the vault does not answer, a read says so, and is not taken for tampering.
func TestVaultOutage(t *testing.T) {
	w, v := newWorld(t), newVault(t)
	w.registry = assert.Must[*encryption.Registry](t)(encryption.NewRegistry(w.keys, v.wrapper(t, nil), &encryption.RegistryOptions{Name: "vault", TrustTable: true}))
	assert.Must[encryption.DataKeyID](t)(w.registry.CreateDataKey(t.Context()))
	r := w.employees(t, w.s.TableName(t), nil)
	assert.Check(t, r.Insert(t.Context(), june("Sales", 1)))
	again := assert.Must[*encryption.Registry](t)(encryption.NewRegistry(w.keys, v.wrapper(t, nil), &encryption.RegistryOptions{Name: "vault", TrustTable: true}))
	r = assert.Must[*patterns.Repository[employee]](t)(employeesOf(r.Table(), again, nil))
	v.status = 503
	_, err := r.Get(t.Context(), employeeKey("Sales", 1))
	if errors.Is(err, tables.ErrGarbled) || errors.Is(err, tables.ErrNotFound) || err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("while the vault is down: %v", err)
	}
	v.status = 0
	assert.Must[*employee](t)(r.Get(t.Context(), employeeKey("Sales", 1)))
}
