package encryption_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/tables"
)

func unbase64(t testing.TB, text string) []byte {
	t.Helper()
	return assert.Must[[]byte](t)(base64.StdEncoding.DecodeString(text))
}

const legacyVector = `{"WrappedContentKey":{"KeyId":"key1","EncryptedKey":"pwSKxpJkwCS2zCaykh0m8e4OApeLuQ4FiahZ9zdwxaLL1HsWqQ4DSw==","Algorithm":"A256KW"},"EncryptionAgent":{"Protocol":"1.0","EncryptionAlgorithm":"AES_CBC_256"},"ContentEncryptionIV":"obTAQcYeFQ3IU7Jfcema7Q==","KeyWrappingMetadata":{}}`

// legacyRow is an entity as the .NET library has written it; every value is sampleValue.
func legacyRow(t testing.TB) (encryption.LocalKey, tables.Key, tables.Properties) {
	t.Helper()
	key := assert.Must[encryption.LocalKey](t)(encryption.NewLocalKey("key1", unbase64(t, "rFz7+tv4hRiWdWUJMFlxl1xxtU/qFUeTriGaxwEcxjU=")))
	binary := func(text string) tables.Value { return tables.Binary(unbase64(t, text)) }
	return key, tables.Key{Partition: "pk", Row: "netUp"}, tables.Properties{
		{Name: "sampleProp", Value: binary("27cLSlSFqy9C0xUCr57XAA==")},
		{Name: "sampleProp2", Value: binary("pZR6Ln/DwbwyyOCEezL/hg==")},
		{Name: "sampleProp3", Value: binary("JOix4N8eX/WuCtIvlD2QxQ==")},
		{Name: "_ClientEncryptionMetadata1", Value: tables.String(legacyVector)},
		{Name: "_ClientEncryptionMetadata2", Value: binary("MWA7LlvXSJnKhf8f7MVhfjWECkxrCyCXGIlYY6ucpr34IVDU7fN6IHvKxV15WiXp")},
		{Name: "plain", Value: tables.Int32(5)},
	}
}

// TestLegacyVector: what .NET has written is read; what was changed so that it cannot be is refused by the one error.
func TestLegacyVector(t *testing.T) {
	kek, key, p := legacyRow(t)
	a := loader(t, &encryption.Options{Legacy: kek, Resolver: func(_, _, property string) bool { return strings.HasPrefix(property, "sample") }})
	read := assert.Must[tables.Properties](t)(a.Load(t.Context(), allOf(key), p))
	if len(read) != 4 || read.Get("plain") != tables.Int32(5) {
		t.Fatalf("%d properties are read", len(read))
	}
	for _, name := range []string{"sampleProp", "sampleProp2", "sampleProp3"} {
		assert.Equal(t, read.Get(name), tables.String("sampleValue"), name)
	}
	garbled := map[string]tables.Properties{
		"no list":         without(p, "_ClientEncryptionMetadata2"),
		"no value":        without(p, "sampleProp2"),
		"no metadata":     without(p, "_ClientEncryptionMetadata1"),
		"a plain value":   with(p, "sampleProp", tables.String("sampleValue")),
		"a cut value":     with(p, "sampleProp", tables.Binary(unbase64(t, "27cLSlSFqy9C0xUCr57XAA==")[:15])),
		"an empty value":  with(p, "sampleProp", tables.Binary(nil)),
		"a declared one":  with(p, "sample4", tables.String("x")),
		"another's value": with(p, "sampleProp", p.Get("_ClientEncryptionMetadata2")),
	}
	last, _ := p.Get("sampleProp").Bytes()
	last[len(last)-1] ^= 1
	garbled["a padding"] = with(p, "sampleProp", tables.Binary(last))
	for _, change := range [][2]string{{"key1", "key2"}, {"pwSK", "pwSL"}, {"A256KW", "A128KW"}, {"A256KW", "none"}, {`"1.0"`, `"2.0"`}, {"AES_CBC_256", "AES_GCM_256"}, {"obTA", "obTB"},
		{`"obTAQcYeFQ3IU7Jfcema7Q=="`, `""`}, {`{"Wrapped`, `["Wrapped`}, {`,"KeyWrappingMetadata":{}`, ``}} {
		garbled[change[0]] = with(p, "_ClientEncryptionMetadata1", tables.String(strings.Replace(legacyVector, change[0], change[1], 1)))
	}
	texts := map[string]bool{}
	for what, changed := range garbled {
		_, err := a.Load(t.Context(), allOf(key), changed)
		texts[refusedBy(t, err, what)] = true
	}
	_, err := a.Load(t.Context(), allOf(tables.Key{Partition: "pk", Row: "netDown"}), p)
	texts[refusedBy(t, err, "another row")] = true
	strict := loaderIn(t, a.world, "Employees", nil)
	_, err = strict.Load(t.Context(), allOf(key), p)
	texts[refusedBy(t, err, "a row of the old libraries, which was not asked for")] = true
	if len(texts) != 1 {
		t.Errorf("%d texts of errors: %v", len(texts), texts)
	}
}

// legacyWrapped wraps a content key by AES key wrap with a key of so many bytes, or by RSA-OAEP.
func legacyWrapped(t testing.TB, size int, content []byte) (encryption.KeyWrapper, encryption.WrappedKey) {
	t.Helper()
	if size > 0 {
		wrapper := assert.Must[encryption.LocalKey](t)(encryption.NewLocalKey("k", make([]byte, size)))
		return wrapper, assert.Must[encryption.WrappedKey](t)(wrapper.Wrap(t.Context(), content))
	}
	key := assert.Must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048))
	b := assert.Must[[]byte](t)(rsa.EncryptOAEP(sha1.New(), rand.Reader, &key.PublicKey, content, nil))
	return assert.Must[encryption.LocalRSAKey](t)(encryption.NewLocalRSAKey("k", key)), encryption.WrappedKey{KeyID: "k", Algorithm: encryption.AlgorithmRSAOAEP, Bytes: b}
}

// TestLegacyLibraries: IVs and lists as each library made them, every key wrap, and a list that is not JSON.
func TestLegacyLibraries(t *testing.T) {
	content, iv := sha256.Sum256([]byte("content key")), make([]byte, 16)
	key := tables.Key{Partition: "Sales", Row: "empid_000001"}
	for name, c := range map[string]struct {
		kek               int
		metadata, list    string
		partitionGoesLast bool
	}{
		".NET":              {32, `{}`, `["A","B"]`, true},
		"Python":            {16, `{"EncryptionLibrary":"Python 0.37"}`, `["A", "B"]`, true},
		"Java":              {24, `{"EncryptionLibrary":"Java 8.6.6"}`, `[A, B]`, false},
		"Java, the old one": {32, ``, `[B, A]`, false},
		".NET, RSA-OAEP":    {0, `{}`, `["A","B"]`, true},
	} {
		wrapper, wrapped := legacyWrapped(t, c.kek, content[:])
		metadata := map[string]any{"WrappedContentKey": map[string]any{"KeyId": "k", "EncryptedKey": wrapped.Bytes, "Algorithm": wrapped.Algorithm},
			"EncryptionAgent": map[string]string{"Protocol": "1.0", "EncryptionAlgorithm": "AES_CBC_256"}, "ContentEncryptionIV": iv}
		if c.metadata != "" {
			metadata["KeyWrappingMetadata"] = json.RawMessage(c.metadata)
		}
		keys := key.Partition + key.Row
		if c.partitionGoesLast {
			keys = key.Row + key.Partition
		}
		encryptPadded := func(name, plain string, first byte) tables.Value {
			block := assert.Must[cipher.Block](t)(aes.NewCipher(content[:]))
			vector := sha256.Sum256(append(slices.Clone(iv), keys+name...))
			n := 16 - len(plain)%16
			b := append([]byte(plain), slices.Repeat([]byte{byte(n)}, n)...)
			b[len(plain)] += first
			cipher.NewCBCEncrypter(block, vector[:16]).CryptBlocks(b, b)
			return tables.Binary(b)
		}
		encrypt := func(name, plain string) tables.Value { return encryptPadded(name, plain, 0) }
		p := tables.Properties{{Name: "A", Value: encrypt("A", "naïve")}, {Name: "B", Value: encrypt("B", "")},
			{Name: "_ClientEncryptionMetadata1", Value: tables.String(string(assert.Must[[]byte](t)(json.Marshal(metadata))))},
			{Name: "_ClientEncryptionMetadata2", Value: encrypt("_ClientEncryptionMetadata2", c.list)}}
		a := loader(t, &encryption.Options{Legacy: wrapper})
		read, err := a.Load(t.Context(), allOf(key), p)
		if err != nil || read.Get("A") != tables.String("naïve") || read.Get("B") != tables.String("") || len(read) != 2 {
			t.Errorf("%s: %#v, %v", name, read, err)
		}
		_, err = a.Load(t.Context(), allOf(key), with(p, "A", encryptPadded("A", "naïve", 1)))
		refusedBy(t, err, name+", with a wrong padding")
	}
}

// TestLegacyRowsAreMigrated: Reencrypt writes them as this package does, and they are not needed to be asked for any more.
func TestLegacyRowsAreMigrated(t *testing.T) {
	w := newWorld(t)
	kek, key, p := legacyRow(t)
	table := w.account.Table(w.s.TableName(t))
	assert.Check(t, table.Create(t.Context()))
	put(t, table, &tables.Entity{Key: key, Properties: p})
	declared := func(_, _, property string) bool { return strings.HasPrefix(property, "sample") }
	strict := anythings(t, table, w.registry, &encryption.Options{Resolver: declared})
	assert.ErrorIs(assert.Fatal(t), assert.Err(strict.Get(t.Context(), key)), encryption.ErrNotAuthentic, "before")
	migrating := anythings(t, table, w.registry, &encryption.Options{Resolver: declared, Legacy: kek})
	progress, err := encryption.Reencrypt(t.Context(), migrating, nil)
	if err != nil || progress.Written != 1 || progress.Failed != 0 {
		t.Fatalf("%+v, %v", progress, err)
	}
	read := assert.Must[*anything](t)(strict.Get(t.Context(), key))
	if len(read.Rest) != 4 || read.Rest["sampleProp3"] != tables.String("sampleValue") {
		t.Errorf("%d properties", len(read.Rest))
	}
}
