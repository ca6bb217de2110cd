package snapshot

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"time"
)

// Writer collects what makes a state. Everything is preceded by its length, or has a fixed one.
type Writer struct{ buf []byte }

// Number writes a number.
func (k *Writer) Number(n uint64) { k.buf = binary.LittleEndian.AppendUint64(k.buf, n) }

// Flag writes a truth value.
func (k *Writer) Flag(b bool) {
	if b {
		k.Number(1)
	} else {
		k.Number(0)
	}
}

// Bytes writes bytes.
func (k *Writer) Bytes(b []byte) {
	k.Number(uint64(len(b)))
	k.buf = append(k.buf, b...)
}

// Text writes a text.
func (k *Writer) Text(s string) {
	k.Number(uint64(len(s)))
	k.buf = append(k.buf, s...)
}

// Time writes a time.
func (k *Writer) Time(t time.Time) {
	k.Number(uint64(t.Unix()))
	k.Number(uint64(t.Nanosecond()))
}

// Times writes times by name.
func (k *Writer) Times(m map[string]time.Time) {
	EachSorted(k, m, func(name string, at time.Time) { k.Time(at) })
}

// Texts writes texts by name.
func (k *Writer) Texts(m map[string]string) {
	EachSorted(k, m, func(name, value string) { k.Text(value) })
}

// EachSorted writes the names of a map in their order, each with what write adds.
func EachSorted[T any](k *Writer, m map[string]T, write func(name string, value T)) {
	k.Number(uint64(len(m)))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		k.Text(name)
		write(name, m[name])
	}
}

// Sum is equal for equal states.
func (k *Writer) Sum() [sha256.Size]byte { return sha256.Sum256(k.buf) }

// Cloned copies a map and what it points to.
func Cloned[T any](from map[string]*T, clone func(*T) *T) map[string]*T {
	to := make(map[string]*T, len(from))
	for name, value := range from {
		to[name] = clone(value)
	}
	return to
}
