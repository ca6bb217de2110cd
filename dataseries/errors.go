package dataseries

import (
	"errors"
	"fmt"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/patterns"
)

// ErrOverflow is the cause of an addition whose sum the type of the slots does not hold; the error is patterns.ErrInvalid,
// too. The slot is as it was.
var ErrOverflow = errors.New("the sum overflows the type of the slots")

// ErrOtherAddition is the cause where an operation's id was counted before, with another slot or another delta; the error is
// patterns.ErrExists, too. Nothing was counted now.
var ErrOtherAddition = errors.New("the operation was counted with another slot or delta")

// invalid is the error of bad input.
func invalid(err error) error {
	kind := patterns.ErrInvalid
	var size *edm.SizeError
	if errors.As(err, &size) {
		kind = patterns.ErrTooLarge
	}
	return &patterns.Error{Kind: kind, Err: err}
}

func garbled(key patterns.Key, err error) error {
	return &patterns.Error{Key: key, Kind: patterns.ErrGarbled, Err: err}
}

// checkKeys refuses what cannot be the keys of a row, for blobs as well: a series may move.
func checkKeys(key patterns.Key) error {
	for _, k := range []string{key.Partition, key.Row} {
		err := compoundkey.CheckKey(k)
		if n := edm.Units(k); err != nil && compoundkey.Err(k) == nil && n > compoundkey.MaxUnits {
			err = &edm.SizeError{What: "a key", Size: n, Limit: compoundkey.MaxUnits, Unit: "UTF-16 units"}
		}
		if err != nil {
			return invalid(err)
		}
	}
	return nil
}

// labelled gives the library's own errors the operation and the series they are of. A key that cannot be one is left out: it
// may be a whole document.
func labelled(op, table string, key patterns.Key, err error) error {
	e, ok := err.(*patterns.Error)
	if !ok {
		return err
	}
	of := *e
	of.Op = op
	if of.Table == "" {
		of.Table = table
	}
	if of.Key == (patterns.Key{}) && checkKeys(key) == nil {
		of.Key = key
	}
	return &of
}

// moved reports whether a write was surely refused because somebody else's came first.
func moved(err error) bool {
	return !errors.Is(err, patterns.ErrUnknownOutcome) && (errors.Is(err, patterns.ErrConflict) || errors.Is(err, patterns.ErrExists) || errors.Is(err, patterns.ErrNotFound))
}

// unknownBeside is err where an earlier attempt may have been applied.
func unknownBeside(unsure, err error) error {
	if unsure == nil {
		return err
	}
	return &patterns.Error{Kind: patterns.ErrUnknownOutcome, Err: fmt.Errorf("an attempt was not answered, and then: %w", err)}
}
