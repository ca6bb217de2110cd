package denormalization

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/patterns"
)

// settle brings a holder, in memory, into agreement with a source, nil for one that is gone, and reports whether that
// changed it. names says that the source names the holder; with Find, the holder says so itself.
func (b *base[S, T]) settle(holder *T, key patterns.Key, source *S, names bool) (changed bool, err error) {
	held, is := b.link.Held(holder)
	holds := is && held == key
	if b.link.Find != nil {
		if !holds {
			return false, nil
		}
		if changed, err = b.write(holder, source); err != nil {
			return false, err
		}
		if held, is = b.link.Held(holder); !is || held != key {
			return false, errors.New("with Find, Copy must leave alone what Held looks at")
		}
		return changed, nil
	}
	switch {
	case names && source != nil:
		if changed, err = b.write(holder, source); err != nil {
			return false, err
		}
		if held, is = b.link.Held(holder); !is || held != key {
			return false, errors.New("a holder that has a copy must return its source from Held, and does not")
		}
	case holds:
		if changed, err = b.write(holder, nil); err != nil {
			return false, err
		}
		if held, is = b.link.Held(holder); is && held == key {
			return false, errors.New("a holder whose copy was cleared must not return its source from Held any more, and does")
		}
	}
	return changed, nil
}

// write copies a source into a holder, and reports whether that changed it. A property that the link does not name is
// refused: nobody would notice when it is not in step.
func (b *base[S, T]) write(holder *T, source *S) (changed bool, err error) {
	before, err := b.codec.Encode(holder)
	if err != nil {
		return false, err
	}
	b.link.Copy(source, holder)
	after, err := b.codec.Encode(holder)
	if err != nil {
		return false, err
	}
	for _, both := range []patterns.Properties{before, after} {
		for _, p := range both {
			if before.Get(p.Name) == after.Get(p.Name) {
				continue
			}
			if !slices.Contains(b.link.Properties, p.Name) {
				return false, fmt.Errorf("property %s is written by Copy, and Properties does not name it", p.Name)
			}
			changed = true
		}
	}
	return changed, nil
}

// copyOf is the digest of a source's copy. It refuses what no holder could store.
func (b *base[S, T]) copyOf(source *S) (digest [16]byte, err error) {
	holder := new(T)
	if _, err := b.write(holder, source); err != nil {
		return digest, err
	}
	return b.digest(holder)
}

// digest is that of the copy which a holder has: of names, types and values.
func (b *base[S, T]) digest(holder *T) (digest [16]byte, err error) {
	all, err := b.codec.Encode(holder)
	if err != nil {
		return digest, err
	}
	h := sha256.New()
	var length [8]byte
	add := func(text string) {
		binary.BigEndian.PutUint64(length[:], uint64(len(text)))
		h.Write(length[:])
		h.Write([]byte(text))
	}
	for _, name := range slices.Sorted(slices.Values(b.link.Properties)) {
		if value := all.Get(name); !value.IsNull() {
			add(name)
			add(value.GoString())
		}
	}
	copy(digest[:], h.Sum(nil))
	return digest, nil
}
