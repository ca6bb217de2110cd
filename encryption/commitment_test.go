package encryption_test

import (
	"bytes"
	"testing"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestCommitment: what is right under AES-GCM and HMAC, and says that it is of another key, is refused: by a value alone, with its
// seal, and in a stream.
func TestCommitment(t *testing.T) {
	a := loader(t, nil)
	var id encryption.DataKeyID
	for info, err := range a.registry.DataKeys(t.Context()) {
		assert.Check(t, err)
		id = info.ID
	}
	wrapped, _ := bag(t, a.keys, tables.Key{Partition: "datakeys", Row: "key_" + id.String()}).Get("Wrapped").Bytes()
	key := assert.Must[[]byte](t)(a.wrapper.Unwrap(t.Context(), encryption.WrappedKey{KeyID: "local", Algorithm: encryption.AlgorithmA256KW, Bytes: wrapped}))
	value, seal, stream, err := encryption.Uncommitted(key, id, a.table, aKey, "A", tables.String("x"))
	assert.Check(t, err)
	p := tables.Properties{{Name: "A", Value: tables.Binary(value)}}
	_, err = a.Load(t.Context(), partOf(aKey), p)
	refusedBy(t, err, "a value")
	_, err = a.Load(t.Context(), allOf(aKey), append(p, tables.Property{Name: encryption.SealProperty, Value: tables.Binary(seal)}))
	refusedBy(t, err, "a row")
	_, err = a.Load(t.Context(), partOf(aKey), tables.Properties{{Name: encryption.SealProperty, Value: tables.Binary(seal)}})
	refusedBy(t, err, "a seal")
	_, err = opened(streamOf(t, a.registry, ""), nil, stream)
	refusedBy(t, err, "a stream")
}

// TestLegacyPadding: every length of padding, and every wrong one.
func TestLegacyPadding(t *testing.T) {
	for n := range 256 {
		block := append(make([]byte, 32-min(n, 32)), bytes.Repeat([]byte{byte(n)}, min(n, 32))...)
		if n == 0 {
			block[31] = 0
		}
		length, ok := encryption.PKCS7(block)
		if want := n >= 1 && n <= 16; (ok == 1) != want || want && length != 32-n {
			t.Errorf("padding %d: %d, %d", n, length, ok)
		}
		for i := 1; i < min(n, 16) && n <= 16; i++ {
			wrong := bytes.Clone(block)
			wrong[31-i] ^= 1
			if _, ok := encryption.PKCS7(wrong); ok != 0 {
				t.Errorf("padding %d with byte %d wrong is taken", n, i)
			}
		}
	}
}
