package simulator

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"time"
)

// fingerprint collects what makes a state. Everything is preceded by its length, or has a fixed one.
type fingerprint struct{ buf []byte }

func (k *fingerprint) Number(n uint64) { k.buf = binary.LittleEndian.AppendUint64(k.buf, n) }

func (k *fingerprint) Flag(b bool) {
	if b {
		k.Number(1)
	} else {
		k.Number(0)
	}
}

func (k *fingerprint) Bytes(b []byte) {
	k.Number(uint64(len(b)))
	k.buf = append(k.buf, b...)
}

func (k *fingerprint) Text(s string) {
	k.Number(uint64(len(s)))
	k.buf = append(k.buf, s...)
}

func (k *fingerprint) Time(t time.Time) {
	k.Number(uint64(t.Unix()))
	k.Number(uint64(t.Nanosecond()))
}

func (k *fingerprint) Times(m map[string]time.Time) {
	EachSorted(k, m, func(name string, at time.Time) { k.Time(at) })
}

func (k *fingerprint) Texts(m map[string]string) {
	EachSorted(k, m, func(name, value string) { k.Text(value) })
}

// EachSorted writes the names of a map in their order, each with what write adds.
func EachSorted[T any](k *fingerprint, m map[string]T, write func(name string, value T)) {
	k.Number(uint64(len(m)))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		k.Text(name)
		write(name, m[name])
	}
}

// Sum is equal for equal states.
func (k *fingerprint) Sum() [sha256.Size]byte { return sha256.Sum256(k.buf) }

// Cloned copies a map and what it points to.
func Cloned[T any](from map[string]*T, clone func(*T) *T) map[string]*T {
	to := make(map[string]*T, len(from))
	for name, value := range from {
		to[name] = clone(value)
	}
	return to
}
