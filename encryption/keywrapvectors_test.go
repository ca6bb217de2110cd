package encryption_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/tables"
)

// shiftWrap is RFC 3394 again, by the shifting form of section 2.2.1, with any initial value and any number of blocks, so that what
// a wrong wrapper makes can be made.
func shiftWrap(t testing.TB, wrapping []byte, iv uint64, key []byte) []byte {
	t.Helper()
	block := assert.Must[cipher.Block](t)(aes.NewCipher(wrapping))
	a, r := binary.BigEndian.AppendUint64(nil, iv), slices.Clone(key)
	for step := range 6 * len(key) / 8 {
		b := slices.Concat(a, r[:8])
		block.Encrypt(b, b)
		a = binary.BigEndian.AppendUint64(nil, binary.BigEndian.Uint64(b)^uint64(step+1))
		r = append(r[8:], b[8:]...)
	}
	return append(a, r...)
}

// TestKeyWrapOfWrongWrappers: of what other algorithms and mistakes make under the right key, nothing is unwrapped: the cases
// that the public test suites have of RFC 3394.
func TestKeyWrapOfWrongWrappers(t *testing.T) {
	const standard = 0xA6A6A6A6A6A6A6A6
	r := rand.New(rand.NewPCG(3, 394))
	octets := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	refused := func(wrapping, wrapped []byte, what string) {
		t.Helper()
		if got, err := encryption.KeyUnwrap(wrapping, wrapped); !errors.Is(err, tables.ErrGarbled) || got != nil || err.Error() != "unreadable response or stored data: the bytes are not a key that this wrapping key has wrapped; restore the data key's row from a backup" {
			t.Errorf("%s: %x, %v", what, got, err)
		}
	}
	tried := 0
	for _, size := range []int{16, 24, 32} {
		for _, n := range []int{16, 24, 32, 40, 64, 128} {
			wrapping, key := octets(size), octets(n)
			good := shiftWrap(t, wrapping, standard, key)
			if got := assert.Must[[]byte](t)(encryption.KeyWrap(wrapping, key)); !bytes.Equal(got, good) {
				t.Errorf("%d bytes under %d: wrapped to %x, want %x", n, size, got, good)
			}
			if got := assert.Must[[]byte](t)(encryption.KeyUnwrap(wrapping, good)); !bytes.Equal(got, key) {
				t.Errorf("%d bytes under %d: unwrapped to %x", n, size, got)
			}
			what := fmt.Sprintf("%d bytes under %d", n, size)
			for _, iv := range []uint64{0, ^uint64(0), standard ^ 1, standard ^ 1<<63, standard >> 8, 0xA65959A6_00000000 | uint64(n), 0xA65959A6_00000000, 0x5959595959595959} {
				refused(wrapping, shiftWrap(t, wrapping, iv, key), fmt.Sprintf("%s with the initial value %x", what, iv))
				tried++
			}
			for name, wrapped := range map[string][]byte{
				"a block more": append(slices.Clone(good), octets(8)...), "a zero block more": append(slices.Clone(good), make([]byte, 8)...), "a block less": good[:n], "a block in front": append(octets(8), good...),
				"the first left out": good[8:], "a byte more": append(slices.Clone(good), 0), "the plaintext": append(binary.BigEndian.AppendUint64(nil, standard), key...), "two blocks exchanged": slices.Concat(good[:8], good[16:24], good[8:16], good[24:]),
				"nothing": nil, "zeros": make([]byte, n+8), "one block": good[:8], "wrapped twice": shiftWrap(t, wrapping, standard, good),
			} {
				if name == "wrapped twice" { // gives back what was wrapped, which is no data key but a wrapped one
					if got := assert.Must[[]byte](t)(encryption.KeyUnwrap(wrapping, wrapped)); !bytes.Equal(got, good) {
						t.Errorf("%s, wrapped twice: %x", what, got)
					}
					continue
				}
				refused(wrapping, wrapped, what+": "+name)
				tried++
			}
			refused(octets(size), good, what+" by another key")
			refused(wrapping, shiftWrap(t, wrapping, standard, octets(8)), "8 bytes, which the standard does not wrap")
			tried += 2
		}
	}
	t.Logf("%d wrong ones, all refused by one error", tried)
}
