package encryption_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	azfake "github.com/Azure/azure-sdk-for-go/sdk/azcore/fake"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azkeys"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azkeys/fake"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestAttaching: one encryption serves one repository, and has a registry.
func TestAttaching(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	e := encryption.New[employee]("encryption", w.registry, nil)
	repository := func(e *encryption.Encryption[employee]) error {
		return assert.Err(patterns.NewRepository(w.account.Table("Employees"), patterns.Schema[employee]{Key: func(*employee) tables.Key { return aKey }}, e))
	}
	assert.Check(t, repository(e))
	if err := repository(e); !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), "belongs to") {
		t.Errorf("a second repository: %v", err)
	}
	for what, registry := range map[string]*encryption.Registry{"none": nil, "one that was not made": {}} {
		assert.ErrorIs(t, repository(encryption.New[employee]("encryption", registry, nil)), tables.ErrWiring, "registry: %s", what)
	}
	transform := loader(t, nil).Transform
	if _, err := transform.Store(t.Context(), &driver.Change{Kind: driver.ChangeMerge, Key: aKey}, nil); err == nil || err.Error() != transform.RefusesMerge.Error() {
		t.Errorf("a merge that comes all the same: %v", err)
	}
	type stamp struct {
		tables.Meta
		Secret string `encrypt:"true"`
		Seal   []byte `table:"_encryptionSeal"`
	}
	_, err := patterns.NewRepository(w.account.Table("Stamps"), patterns.Schema[stamp]{Key: func(*stamp) tables.Key { return aKey }}, encryption.New[stamp]("encryption", w.registry, nil))
	assert.ErrorIs(t, err, tables.ErrWiring, "a field by the seal's name")
}

// TestValuesThatNoWriterMade: what was authenticated, and has no form of this package's, is no value.
func TestValuesThatNoWriterMade(t *testing.T) {
	for _, padded := range [][]byte{nil, {0}, {0, 0, 0}, {1, 'x'}, {0x80}, {1, 0x80, 1}, {2, 'x', 0x80}, {1, 0xff, 0x80}} {
		if v, ok := encryption.ParseValue(padded, 1); ok {
			t.Errorf("%x is %#v", padded, v)
		}
	}
	for code := range byte(12) {
		for n := range 20 {
			if n == map[byte]int{3: 1, 4: 4, 5: 8, 6: 8, 7: 8, 8: 16}[code] && code >= 3 && code <= 8 {
				continue
			}
			padded := append(append([]byte{code}, make([]byte, n)...), 0x80)
			if v, ok := encryption.ParseValue(padded, code); ok != (code == 1 || code == 2) {
				t.Errorf("type %d of %d bytes is %#v", code, n, v)
			}
		}
	}
	for what, padded := range map[string][]byte{"true is 2": {3, 2, 0x80}, "a time in year 20,000": {7, 0x7f, 0, 0, 0, 0, 0, 0, 0, 0x80}} {
		if v, ok := encryption.ParseValue(padded, padded[0]); ok {
			t.Errorf("%s: %#v", what, v)
		}
	}
}

// TestVaultThatWrapsOtherwise: what the vault says it has wrapped by, and cannot be asked for again, is refused at once.
func TestVaultThatWrapsOtherwise(t *testing.T) {
	for what, result := range map[string]azkeys.KeyOperationResult{"no id": {Result: []byte{1}}, "no result": {KID: keyID(vaultKeyID + "/" + firstVersion)}, "another vault": {KID: keyID("https://evil.vault.azure.net/keys/tables/" + firstVersion), Result: []byte{1}},
		"another key": {KID: keyID("https://contoso.vault.azure.net/keys/others/" + firstVersion), Result: []byte{1}}, "no version": {KID: keyID(vaultKeyID), Result: []byte{1}}} {
		server := fake.Server{WrapKey: func(context.Context, string, string, azkeys.KeyOperationParameters, *azkeys.WrapKeyOptions) (r azfake.Responder[azkeys.WrapKeyResponse], e azfake.ErrorResponder) {
			r.SetResponse(http.StatusOK, azkeys.WrapKeyResponse{KeyOperationResult: result}, nil)
			return r, e
		}}
		client := assert.Must[*azkeys.Client](t)(azkeys.NewClient("https://contoso.vault.azure.net", credential{}, &azkeys.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: fake.NewServerTransport(&server)}}))
		w := assert.Must[encryption.VaultKey](t)(encryption.NewVaultKey(client, vaultKeyID, nil))
		assert.ErrorIs(t, assert.Err(w.Wrap(t.Context(), make([]byte, 32))), tables.ErrGarbled, what)
		if w.Holds(vaultKeyID+"/"+firstVersion, "RSA1_5") {
			t.Error("it holds keys of an algorithm that nobody asked for")
		}
	}
}

// TestVaultKeyOfAES: a managed HSM's AES key wraps by A256KW, and unwraps what was.
func TestVaultKeyOfAES(t *testing.T) {
	wrapping := make([]byte, 32)
	server := fake.Server{
		WrapKey: func(_ context.Context, _, _ string, p azkeys.KeyOperationParameters, _ *azkeys.WrapKeyOptions) (r azfake.Responder[azkeys.WrapKeyResponse], e azfake.ErrorResponder) {
			b, err := encryption.KeyWrap(wrapping, p.Value)
			if err != nil || *p.Algorithm != azkeys.EncryptionAlgorithmA256KW {
				e.SetResponseError(http.StatusBadRequest, "BadParameter")
				return r, e
			}
			r.SetResponse(http.StatusOK, azkeys.WrapKeyResponse{KeyOperationResult: azkeys.KeyOperationResult{KID: keyID(vaultKeyID + "/" + firstVersion), Result: b}}, nil)
			return r, e
		},
		UnwrapKey: func(_ context.Context, _, _ string, p azkeys.KeyOperationParameters, _ *azkeys.UnwrapKeyOptions) (r azfake.Responder[azkeys.UnwrapKeyResponse], e azfake.ErrorResponder) {
			b, err := encryption.KeyUnwrap(wrapping, p.Value)
			if err != nil || *p.Algorithm != azkeys.EncryptionAlgorithmA256KW {
				e.SetResponseError(http.StatusBadRequest, "BadParameter")
				return r, e
			}
			r.SetResponse(http.StatusOK, azkeys.UnwrapKeyResponse{KeyOperationResult: azkeys.KeyOperationResult{Result: b}}, nil)
			return r, e
		},
	}
	client := assert.Must[*azkeys.Client](t)(azkeys.NewClient("https://contoso.vault.azure.net", credential{}, &azkeys.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: fake.NewServerTransport(&server)}}))
	w := assert.Must[encryption.VaultKey](t)(encryption.NewVaultKey(client, vaultKeyID, &encryption.VaultOptions{Algorithm: encryption.AlgorithmA256KW}))
	key := []byte("0123456789abcdef0123456789abcdef")
	wrapped := assert.Must[encryption.WrappedKey](t)(w.Wrap(t.Context(), key))
	if got, err := w.Unwrap(t.Context(), wrapped); err != nil || string(got) != string(key) || wrapped.Algorithm != encryption.AlgorithmA256KW {
		t.Errorf("%q by %s, %v", got, wrapped.Algorithm, err)
	}
	wrapped.Bytes = flipped(wrapped.Bytes)
	assert.ErrorIs(t, assert.Err(w.Unwrap(t.Context(), wrapped)), tables.ErrGarbled, "what was changed")
	rsaKey := assert.Must[encryption.VaultKey](t)(encryption.NewVaultKey(client, vaultKeyID, nil))
	for algorithm, holds := range map[string][2]bool{encryption.AlgorithmA256KW: {true, false}, encryption.AlgorithmA192KW: {}, encryption.AlgorithmA128KW: {},
		encryption.AlgorithmRSAOAEP: {false, true}, encryption.AlgorithmRSAOAEP256: {false, true}, "": {}} {
		for i, key := range []encryption.VaultKey{w, rsaKey} {
			if key.Holds(wrapped.KeyID, algorithm) != holds[i] {
				t.Errorf("a key of kind %d and algorithm %q: %v", i, algorithm, !holds[i])
			}
		}
	}
}

func keyID(text string) *azkeys.ID { id := azkeys.ID(text); return &id }

// TestConcurrentNextKeys: of several who replace the data key at once, one does at a time, and others are told.
func TestConcurrentNextKeys(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	registries := make([]*encryption.Registry, 8)
	var wait sync.WaitGroup
	errs := make([]error, len(registries))
	for i := range registries {
		registries[i] = w.open(t, w.wrapper, nil)
		wait.Go(func() { errs[i] = assert.Err(registries[i].CreateDataKey(context.Background())) })
	}
	wait.Wait()
	made := 1 // by newWorld
	for _, err := range errs {
		if err == nil {
			made++
		} else if !errors.Is(err, tables.ErrConflict) {
			t.Error(err)
		}
	}
	for info, err := range w.registry.DataKeys(t.Context()) {
		assert.Check(t, err)
		made--
		if info.ID.IsZero() {
			t.Error("a key without id")
		}
	}
	assert.Equal(t, made, 0, "superfluous keys")
	assert.Check(t, w.registry.Check(t.Context()))
	put(t, w.keys, &tables.Entity{Key: tables.Key{Partition: "datakeys", Row: "key_zz"}, Properties: tables.Properties{text("Algorithm", "none")}})
	for info, err := range w.registry.DataKeys(t.Context()) {
		assert.Check(t, err)
		if info.WrappedBy == "local" {
			break // and a row of somebody else's is passed over
		}
		t.Errorf("%+v", info)
	}
	assert.ErrorContains(t, w.registry.Check(t.Context()), "key_zz", "Check")
}

// TestReencryptMeetsTheEnd: entities that go meanwhile are no failures, and a run that is ended says so.
func TestReencryptMeetsTheEnd(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	r := w.employees(t, "Employees", nil)
	for id := range 6 {
		assert.Check(t, r.Insert(t.Context(), june([]string{"Sales", "Works"}[id/3], id)))
	}
	assert.Must[encryption.DataKeyID](t)(w.registry.CreateDataKey(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	rewritten := 0
	faulty, _ := w.s.Faulty(storagetest.InjectorFunc(func(call storagetest.Call) storagetest.Fault {
		if call.Kind == storagetest.Batch && call.Resource == "Employees" {
			rewritten++
			switch rewritten {
			case 1: // is refused, and the others of its set are written without it
				assert.Check(t, r.DeleteUnconditional(context.Background(), employeeKey("Sales", 1)))
			case 3:
				cancel()
			}
		}
		return nil
	}))
	struck := assert.Must[*patterns.Repository[employee]](t)(employeesOf(open(t, faulty).Table("Employees"), w.registry, nil))
	p, err := encryption.Reencrypt(ctx, struck, &patterns.JobOptions{Concurrency: 1})
	if !errors.Is(err, context.Canceled) || p.Failed != 0 || p.Written != 2 {
		t.Errorf("%+v, %v", p, err)
	}
	if p := assert.Must[patterns.RewriteReport](t)(encryption.Reencrypt(t.Context(), r, nil)); p.Written != 3 || p.Read != 5 {
		t.Errorf("the next run: %+v", p)
	}
}
