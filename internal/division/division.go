// Package division writes items together and, if the service refuses them, in smaller sets, so that an item that is refused delays only
// itself.
package division

// Divided is how to write items together.
type Divided[I any] struct {
	// Write writes items, all or none.
	Write func(items []I) error
	// Refused returns the index of the item for which Write was refused, -1 if it is unknown.
	Refused func(err error, items []I) int
	// Ends reports whether an error would be that of each smaller set too, such as that of a context that has ended.
	Ends func(err error) bool
}

// Run writes items together. If they are refused, it leaves out the refused item, or writes each half by itself if that item is unknown. It
// returns the items that were not written, in order: write each of them alone. A single item is returned without a write.
func (d Divided[I]) Run(items []I) (alone []I, err error) {
	for len(items) > 1 {
		err := d.Write(items)
		if err == nil {
			return alone, nil
		}
		if d.Ends(err) {
			return alone, err
		}
		if at := d.refused(err, items); at >= 0 {
			alone = append(alone, items[at])
			items = append(items[:at:at], items[at+1:]...)
			continue
		}
		more, err := d.Run(items[:len(items)/2])
		if alone = append(alone, more...); err != nil {
			return alone, err
		}
		items = items[len(items)/2:]
	}
	return append(alone, items...), nil
}

func (d Divided[I]) refused(err error, items []I) int {
	if d.Refused == nil {
		return -1
	}
	if at := d.Refused(err, items); at < len(items) {
		return at
	}
	return -1
}

// Alternately writes items together of which each may have another form, such as an insert in place of a replacement. If an item is
// refused, it swaps the form of that item and of all after it, which are probably like it, and writes again. It ends with the error if an
// item is refused that it cannot swap, or no later item than before.
func Alternately[I any](items []I, write func([]I) error, refused func(error, []I) int, swap func(*I) bool) error {
	for last := -1; ; {
		err := write(items)
		if err == nil {
			return nil
		}
		at := refused(err, items)
		if at <= last || !swap(&items[at]) {
			return err
		}
		for i := range items[at+1:] {
			swap(&items[at+1+i])
		}
		last = at
	}
}
