package encryption_test

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/tables"
)

// wycheproofModule ships the vectors of project Wycheproof. The go.mod in wycheproofRequirement names its version; no test compiles it
// in, since it embeds all of its vectors.
const (
	wycheproofModule      = "github.com/c2sp/wycheproof"
	wycheproofRequirement = "testdata/wycheproof"
)

// hexadecimal are octets as the vectors have them.
type hexadecimal []byte

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *hexadecimal) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

// wycheproof is a file of vectors, with the members of all kinds of tests that are used here.
type wycheproof struct {
	NumberOfTests int
	TestGroups    []struct {
		KeySize, IvSize, TagSize int
		PrivateKeyPkcs8          hexadecimal
		Tests                    []wycheproofCase
	}
}

type wycheproofCase struct {
	ID                                                      int `json:"tcId"`
	Key, Iv, Aad, Msg, Ct, Tag, Ikm, Salt, Info, Okm, Label hexadecimal
	Size                                                    int
	Result                                                  string // valid, invalid, or acceptable
}

// wycheproofDir is where the module lies; go downloads it if it has to.
func wycheproofDir(t *testing.T) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", wycheproofModule)
	command.Dir = wycheproofRequirement
	command.Env = append(command.Environ(), "GOWORK=off")
	out, err := command.Output()
	var module struct{ Dir, Error string }
	if err = errors.Join(err, json.Unmarshal(out, &module)); err != nil || module.Dir == "" {
		t.Fatalf("go mod download %s: %v %s", wycheproofModule, err, module.Error)
	}
	return filepath.Join(module.Dir, "testvectors_v1")
}

// run passes each vector of a file to one function, which reports whether it is accepted with the right result, and counts them. A
// vector that the function leaves out is of a size that the package does not have.
func (w *wycheproof) run(t *testing.T, file string, want int, accepts func(group int, c *wycheproofCase) (accepted, used bool)) {
	t.Helper()
	assert.Check(t, json.Unmarshal(assert.Must[[]byte](t)(os.ReadFile(file)), w))
	used := 0
	for i := range w.TestGroups {
		for j := range w.TestGroups[i].Tests {
			c := &w.TestGroups[i].Tests[j]
			accepted, ours := accepts(i, c)
			if !ours {
				continue
			}
			used++
			if accepted && c.Result == "invalid" || !accepted && c.Result == "valid" {
				t.Errorf("%s, vector %d, which is %s: accepted %v", filepath.Base(file), c.ID, c.Result, accepted)
			}
		}
	}
	t.Logf("%s: %d of %d vectors", filepath.Base(file), used, w.NumberOfTests)
	if used < want {
		t.Errorf("%s: only %d of %d vectors were used, at least %d fit", filepath.Base(file), used, w.NumberOfTests, want)
	}
}

// TestWycheproof: AES-GCM, HKDF, AES key wrap and RSA-OAEP, through the functions by which the package encrypts, derives and unwraps,
// accept and refuse what project Wycheproof says.
func TestWycheproof(t *testing.T) {
	dir := wycheproofDir(t)
	file := func(name string) string { return filepath.Join(dir, name+"_test.json") }
	t.Run("AES-GCM", func(t *testing.T) {
		w := &wycheproof{}
		w.run(t, file("aes_gcm"), 60, func(group int, c *wycheproofCase) (accepted, used bool) {
			g := w.TestGroups[group]
			if g.KeySize != 256 || g.IvSize != 96 || g.TagSize != 128 {
				return false, false
			}
			aead, err := encryption.NewAEAD(c.Key)
			assert.Check(t, err)
			plain, err := aead.Open(nil, nil, slices.Concat(c.Iv, c.Ct, c.Tag), c.Aad) // Seal draws its nonce, so only Open can be held against a vector
			return err == nil && bytes.Equal(plain, c.Msg), true
		})
	})
	t.Run("HKDF-SHA256", func(t *testing.T) {
		w := &wycheproof{}
		w.run(t, file("hkdf_sha256"), 80, func(_ int, c *wycheproofCase) (accepted, used bool) {
			okm, err := encryption.Expand(c.Ikm, c.Salt, string(c.Info), c.Size)
			return err == nil && bytes.Equal(okm, c.Okm), true
		})
	})
	t.Run("AES-KW", func(t *testing.T) {
		w := &wycheproof{}
		w.run(t, file("aes_wrap"), 160, func(_ int, c *wycheproofCase) (accepted, used bool) {
			key, err := encryption.KeyUnwrap(c.Key, c.Ct)
			if err != nil && !errors.Is(err, tables.ErrGarbled) {
				t.Errorf("vector %d: %v", c.ID, err)
			}
			return err == nil && bytes.Equal(key, c.Msg), true
		})
	})
	for algorithm, name := range map[string]string{encryption.AlgorithmRSAOAEP: "rsa_oaep_2048_sha1_mgf1sha1", encryption.AlgorithmRSAOAEP256: "rsa_oaep_2048_sha256_mgf1sha256"} {
		t.Run(algorithm, func(t *testing.T) {
			w := &wycheproof{}
			w.run(t, file(name), 29, func(group int, c *wycheproofCase) (accepted, used bool) {
				private := assert.Must[any](t)(x509.ParsePKCS8PrivateKey(w.TestGroups[group].PrivateKeyPkcs8))
				wrapper := assert.Must[encryption.LocalRSAKey](t)(encryption.NewLocalRSAKey("rsa", private.(*rsa.PrivateKey)))
				key, err := wrapper.Unwrap(t.Context(), encryption.WrappedKey{KeyID: "rsa", Algorithm: algorithm, Bytes: c.Ct})
				if err != nil && !errors.Is(err, tables.ErrGarbled) {
					t.Errorf("vector %d: %v", c.ID, err)
				}
				accepted = err == nil && bytes.Equal(key, c.Msg)
				if len(c.Label) > 0 { // no key is wrapped with a label: each of these is refused
					assert.Error(t, err, "vector %d has a label and is accepted", c.ID)
					return false, false
				}
				return accepted, true
			})
		})
	}
}
