package dataseries

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	// MaxSlotsPerRow is how many slots one row holds; the rest of the 252 properties of an entity is for the library.
	MaxSlotsPerRow = 245
	// MaxSlots is the maximum number of slots of a series: in rows, as many as one transaction can set; the
	// same number in a blob, which every change rewrites completely.
	MaxSlots = MaxSlotsPerRow * tables.MaxTransactionOperations
)

// layout says where each slot of a series is stored. It must not change once values are stored.
type layout struct {
	prefix string
	slots  int
	digits int
	perRow int // slots per row; slots or more if one row or blob holds all
}

func newLayout(prefix string, slots int, o *Options) (layout, error) {
	l := layout{prefix: prefix, slots: slots, digits: len(strconv.Itoa(max(slots-1, 0))), perRow: slots}
	switch {
	case slots < 1 || slots > MaxSlots:
		return l, fmt.Errorf("slots is %d; a series must have 1 to %d", slots, MaxSlots)
	case o.Digits != 0 && (o.Digits < l.digits || o.Digits > 9):
		return l, fmt.Errorf("Options.Digits is %d for %d slots; it must be %d to 9, or 0 for as many as are needed", o.Digits, slots, l.digits)
	case o.SlotsPerRow < 0 || o.SlotsPerRow > MaxSlotsPerRow:
		return l, fmt.Errorf("Options.SlotsPerRow is %d; it must be 1 to %d, or 0 for one row", o.SlotsPerRow, MaxSlotsPerRow)
	case o.SlotsPerRow != 0 && o.Container != nil:
		return l, fmt.Errorf("Options.SlotsPerRow and Options.Container are both set; set only one")
	case o.SlotsPerRow == 0 && o.Container == nil && slots > MaxSlotsPerRow:
		return l, fmt.Errorf("%d slots do not fit in one row, which holds %d; declare Options.SlotsPerRow, or a Container", slots, MaxSlotsPerRow)
	case o.SlotsPerRow != 0 && (slots-1)/o.SlotsPerRow >= tables.MaxTransactionOperations:
		return l, fmt.Errorf("%d slots with %d in a row need more than %d rows; increase Options.SlotsPerRow", slots, o.SlotsPerRow, tables.MaxTransactionOperations)
	case strings.HasPrefix(prefix, "_tp"):
		return l, fmt.Errorf("prefix %q begins with _tp, which is reserved for the library; choose another prefix", prefix)
	}
	if o.Digits != 0 {
		l.digits = o.Digits
	}
	if o.SlotsPerRow != 0 {
		l.perRow = o.SlotsPerRow
	}
	return l, edm.CheckName(l.property(0))
}

// property names the property of a slot.
func (l *layout) property(slot int) string {
	return fmt.Sprintf("%s%0*d", l.prefix, l.digits, slot)
}

// slotOf is the inverse of property. It returns -1 for a property that is no slot, or a slot that only a later version of
// the program declares. A number of another width is an error: Digits was changed, and the value must not be ignored.
func (l *layout) slotOf(property string) (int, error) {
	number, ok := strings.CutPrefix(property, l.prefix)
	if !ok || number == "" || strings.Trim(number, "0123456789") != "" {
		return -1, nil
	}
	if len(number) != l.digits {
		return -1, fmt.Errorf("the stored property %s has a slot number of another width than the %d digits of this series; set Options.Digits to the value with which it was stored", property, l.digits)
	}
	slot, err := strconv.Atoi(number)
	if err != nil || slot >= l.slots {
		return -1, nil
	}
	return slot, nil
}

func (l *layout) several() bool { return l.perRow < l.slots }

// rowOf returns the key of the row that holds a slot.
func (l *layout) rowOf(key tables.Key, slot int) tables.Key {
	key.Row = rows.Numbered(key.Row, slot/l.perRow)
	return key
}

// check returns an error if key is illegal for a series.
func (l *layout) check(key tables.Key) error {
	if strings.HasPrefix(key.Row, markerPrefix) {
		return fmt.Errorf("the row key begins with the prefix of AddOnce's markers; choose another row key")
	}
	if !l.several() {
		return nil
	}
	if n := edm.Units(key.Row); n > rows.MaxFirst {
		return &edm.SizeError{What: "the row key of a series of several rows", Size: n, Limit: rows.MaxFirst, Unit: "UTF-16 units"}
	}
	if first, _ := rows.ParseNumbered(key.Row); first != key.Row {
		return fmt.Errorf("the row key ends with '!' and digits, as the keys of a series' further rows do; choose another row key")
	}
	return nil
}

// take copies the slots of a row or blob into values, and reports whether it has any. number is the row's number, 0 for a
// blob.
func (l *layout) take(values []tables.Value, p tables.Properties, number int) (found bool, err error) {
	for i := range p {
		slot, err := l.slotOf(p[i].Name)
		if err != nil {
			return false, err
		}
		if slot < 0 {
			continue
		}
		if slot/l.perRow != number {
			return false, fmt.Errorf("property %s is stored in row %d and must be in row %d; set Options.SlotsPerRow to the value with which it was stored", p[i].Name, number, slot/l.perRow)
		}
		values[slot], found = p[i].Value, true
	}
	return found, nil
}
