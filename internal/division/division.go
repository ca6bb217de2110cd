// Package division writes items together. If the service refuses them, it writes smaller sets, so that a refused item delays only itself.
package division

// Divided holds the functions that write items together.
type Divided[I any] struct {
	// Write writes items, all or none.
	Write func(items []I) error
	// Refused returns the index of the item for which Write was refused, -1 if it is unknown. If Refused is nil, the
	// item is always unknown.
	Refused func(err error, items []I) int
	// Ends reports whether every smaller set would fail with the same error, for example because the context
	// has ended.
	Ends func(err error) bool
}

// Run writes items together. If the service refuses them, it leaves out the refused item or, if it does not know which
// one that is, writes each half by itself. It returns the items that were not written, for the caller to write one by
// one. If Ends returns true for an error, Run returns that error, and may have written only some of the other items. If
// items has only one item, Run returns it and writes nothing.
func (d Divided[I]) Run(items []I) (alone []I, err error) {
	for len(items) > 1 {
		err := d.Write(items)
		if err == nil {
			return alone, nil
		}
		if d.Ends(err) {
			return alone, err
		}
		at := -1
		if d.Refused != nil {
			at = d.Refused(err, items)
		}
		if at >= 0 && at < len(items) {
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

// Alternately writes items together if each item has two forms, such as an insert and a replacement. If the service
// refuses an item, Alternately swaps the forms of that item and of all later items, which probably need the other form,
// too, and writes again. It returns the error if refused does not name an item, if the item cannot be swapped, or if it
// is not later than the item that was refused before.
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
