package snapshot

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"time"
)

// Writer collects the parts of a state. Each part has a fixed length or is preceded by its length.
type Writer struct{ buf []byte }

// Number writes a number.
func (w *Writer) Number(n uint64) { w.buf = binary.LittleEndian.AppendUint64(w.buf, n) }

// Flag writes a boolean.
func (w *Writer) Flag(b bool) {
	if b {
		w.Number(1)
	} else {
		w.Number(0)
	}
}

// Bytes writes bytes.
func (w *Writer) Bytes(b []byte) {
	w.Number(uint64(len(b)))
	w.buf = append(w.buf, b...)
}

// Text writes a text.
func (w *Writer) Text(s string) {
	w.Number(uint64(len(s)))
	w.buf = append(w.buf, s...)
}

// Time writes a time.
func (w *Writer) Time(t time.Time) {
	w.Number(uint64(t.Unix()))
	w.Number(uint64(t.Nanosecond()))
}

// Times writes a map of times in the order of its keys.
func (w *Writer) Times(m map[string]time.Time) {
	EachSorted(w, m, func(_ string, at time.Time) { w.Time(at) })
}

// Texts writes a map of texts in the order of its keys.
func (w *Writer) Texts(m map[string]string) {
	EachSorted(w, m, func(_, value string) { w.Text(value) })
}

// EachSorted writes the keys of a map in their order, and calls write after each key to write the value.
func EachSorted[T any](w *Writer, m map[string]T, write func(name string, value T)) {
	w.Number(uint64(len(m)))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		w.Text(name)
		write(name, m[name])
	}
}

// Sum returns a hash that is equal for equal states.
func (w *Writer) Sum() [sha256.Size]byte { return sha256.Sum256(w.buf) }

// Cloned copies a map and the values to which it points.
func Cloned[T any](from map[string]*T, clone func(*T) *T) map[string]*T {
	to := make(map[string]*T, len(from))
	for name, value := range from {
		to[name] = clone(value)
	}
	return to
}
