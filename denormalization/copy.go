package denormalization

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/tables"
)

// bring writes the copy of a source into a holder in memory, or clears the copy if source is nil, and reports
// whether it has changed the holder. key is the source's key. names says whether the source names the holder; to a holder
// that it does not name, it counts as a source that does not exist.
func (r *relation) bring(holder any, key tables.Key, source any, names bool) (changed bool, err error) {
	holds := r.holds(holder, key)
	switch {
	case r.link.Find != nil && !holds, !names && !holds:
		return false, nil
	case !names:
		source = nil
	}
	if changed, err = r.write(holder, source); err != nil {
		return false, err
	}
	switch holds := r.holds(holder, key); {
	case r.link.Find != nil && !holds:
		return false, errors.New("Link.Copy has changed what Link.SourceOf returns; with Link.Find, Copy must not write the holder's reference to its source")
	case r.link.Find == nil && source != nil && !holds:
		return false, errors.New("Link.SourceOf does not return the source that Link.Copy has just copied; with Link.Holders, Copy must write what SourceOf reads")
	case r.link.Find == nil && source == nil && holds:
		return false, errors.New("Link.SourceOf still returns the source after Link.Copy has cleared the copy; with Link.Holders, Copy must clear what SourceOf reads if the source is nil")
	}
	return changed, nil
}

// holds reports whether a holder has the copy of a source or, with Find, refers to it.
func (r *relation) holds(holder any, source tables.Key) bool {
	held, is := r.link.SourceOf(holder)
	return is && held == source
}

// isAsAsked reports whether bring would leave a holder unchanged. It does not change the holder.
func (r *relation) isAsAsked(holder any, key tables.Key, source any, names bool) (bool, error) {
	if !names {
		source = nil
	}
	switch holds := r.holds(holder, key); {
	case !holds && (r.link.Find != nil || source == nil):
		return true, nil
	case r.link.Find == nil && holds != (source != nil):
		return false, nil
	}
	want, err := r.copyOf(source)
	if err != nil {
		return false, err
	}
	has, err := r.digest(holder)
	return has == want, err
}

// write calls Link.Copy, and reports whether Copy has changed the holder's copy. If Copy has changed a property
// that Link.Properties does not name, write returns an error, since Verify could not check that property.
func (r *relation) write(holder any, source any) (changed bool, err error) {
	others := r.others(holder)
	before, beforeErr := r.digest(holder) // fails if the user has set a property of the copy to a value that cannot be stored
	r.link.Copy(source, holder)
	after, err := r.digest(holder)
	if err != nil {
		return false, err
	}
	for i, now := range r.others(holder) {
		if now != others[i] {
			return false, fmt.Errorf("Link.Copy has written property %s, which Link.Properties does not name; add it there", now.name)
		}
	}
	return beforeErr != nil || before != after, nil
}

// other is a property outside of the copy, with its value as a text.
type other struct{ name, value string }

// others returns the properties of a holder that Copy must not change. If a property cannot be stored, its value is the text of
// the error.
func (r *relation) others(holder any) []other {
	var all []other
	for _, name := range r.codec.Names() {
		if slices.Contains(r.link.Properties, name) {
			continue
		}
		p, err := r.codec.EncodeOnly(holder, []string{name})
		text := ""
		switch {
		case err != nil:
			text = err.Error()
		case len(p) > 0:
			text = p[0].Value.GoString()
		}
		all = append(all, other{name, text})
	}
	return all
}

// copyOf returns the digest of a source's copy; if source is nil, the digest of a cleared copy. It returns an
// error if the copy cannot be stored.
func (r *relation) copyOf(source any) (digest [16]byte, err error) {
	holder := r.codec.New()
	if _, err := r.write(holder, source); err != nil {
		return digest, err
	}
	return r.digest(holder)
}

// digest returns the digest of the copy in a holder, over the names, types and values of its properties.
func (r *relation) digest(holder any) (digest [16]byte, err error) {
	copied, err := r.codec.EncodeOnly(holder, r.link.Properties)
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
	for _, name := range slices.Sorted(slices.Values(r.link.Properties)) {
		if value := copied.Get(name); !value.IsNull() {
			add(name)
			add(value.GoString())
		}
	}
	copy(digest[:], h.Sum(nil))
	return digest, nil
}
