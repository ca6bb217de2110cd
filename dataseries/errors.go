package dataseries

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/tables"
)

// ErrOverflow is the cause of an error of kind tables.ErrInvalid: the type of the slots cannot hold the sum.
// The slot is unchanged.
var ErrOverflow = errors.New("the sum overflows the type of the slots; the slot is unchanged, so use a larger type or a smaller delta")

// ErrOtherAddition is the cause of an error of kind tables.ErrExists: the operation's ID was counted before
// with another slot or delta. This call has counted nothing.
var ErrOtherAddition = errors.New("the operation's ID was counted before with another slot or delta; use an ID for one addition only")

func garbled(key tables.Key, err error) error {
	return &tables.Error{Key: key, Kind: tables.ErrGarbled, Err: err}
}

// checkKeys refuses keys that are illegal for a row. It does so also for series in blobs, since a series may
// later be moved into rows.
func checkKeys(key tables.Key) error {
	for _, k := range []string{key.Partition, key.Row} {
		err := compoundkey.CheckKey(k)
		if n := edm.Units(k); err != nil && compoundkey.Err(k) == nil && n > compoundkey.MaxUnits {
			err = &edm.SizeError{What: "a key", Size: n, Limit: compoundkey.MaxUnits, Unit: "UTF-16 units"}
		}
		if err != nil {
			return tables.Invalid("", err)
		}
	}
	return nil
}

// labelled sets operation, table and key of the library's own errors. It omits an illegal key, which may be a whole
// document.
func labelled(op, table string, key tables.Key, err error) error {
	return tables.Amend(rows.Open, err, func(e *tables.Error) {
		e.Op, e.Table = op, cmp.Or(e.Table, table)
		if e.Key == (tables.Key{}) && checkKeys(key) == nil {
			e.Key = key
		}
	})
}

// unknownBeside returns an error of kind ErrUnknownOutcome with the causes unsure and err. unsure is the
// error of an earlier attempt that may have been applied.
func unknownBeside(unsure, err error) error {
	if unsure == nil {
		return err
	}
	return &tables.Error{Kind: tables.ErrUnknownOutcome, Err: fmt.Errorf("an earlier attempt got no response and may have been applied; the next one failed: %w", err)}
}

// isLost reports whether a write was not applied because a concurrent writer came first: the row has changed, appeared or disappeared.
func isLost(err error) bool {
	return slices.Contains([]error{tables.ErrConflict, tables.ErrExists, tables.ErrNotFound}, tables.KindOf(err))
}
