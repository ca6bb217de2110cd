package scatter

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Epoch is a range of row keys that are spread over the same number of partitions, up to the next Epoch.
type Epoch struct {
	// Time is where the epoch begins, with ByTime and ByTimeDesc; the first epoch has no lower bound.
	Time time.Time
	// Number is where the epoch begins, with ByNumber.
	Number int64
	// Partitions is n, the number of partitions.
	Partitions int
}

// epoch is the stored form of an Epoch.
type epoch struct {
	from int64
	n    int
}

// layout is the content of a record. It is immutable, since goroutines share it.
type layout struct {
	horizon int64
	epochs  []epoch // the first begins at 0; at least one
}

const (
	recordVersion = 1
	maxEpochs     = 1000
)

// record is the row that a layout is stored in.
type record struct {
	tables.Meta
	PartitionKey string
	RowKey       string
	Version      int32
	Order        string
	Horizon      int64
	Epochs       string
}

// covers reports whether the position is below the layout's horizon.
func (l *layout) covers(position int64) bool { return l != nil && position < l.horizon }

// partitions returns the n of a position, which the layout must cover.
func (l *layout) partitions(position int64) int {
	i, found := slices.BinarySearchFunc(l.epochs, position, func(e epoch, p int64) int {
		switch {
		case e.from < p:
			return -1
		case e.from > p:
			return 1
		}
		return 0
	})
	if !found {
		i--
	}
	return l.epochs[i].n
}

// most returns the largest number of partitions that applies within a span.
func (l *layout) most(o Order, span compoundkey.Span) int {
	n := 0
	for i, e := range l.epochs {
		end := l.horizon
		if i+1 < len(l.epochs) {
			end = l.epochs[i+1].from
		}
		if o.overlaps(span, e.from, end) {
			n = max(n, e.n)
		}
	}
	return n
}

// resized returns the layout with another n from the horizon on, or nil if that n already applies.
func (l *layout) resized(n int) *layout {
	if l.epochs[len(l.epochs)-1].n == n {
		return nil
	}
	next := &layout{horizon: l.horizon}
	for _, e := range l.epochs {
		if e.from < l.horizon { // no entity is above the horizon yet, so the last epoch can be replaced if it begins there
			next.epochs = append(next.epochs, e)
		}
	}
	if last := len(next.epochs); last == 0 || next.epochs[last-1].n != n {
		next.epochs = append(next.epochs, epoch{l.horizon, n})
	}
	return next
}

// store writes the layout into the fields of the record.
func (l *layout) store(r *record, o Order) {
	lines := make([]string, len(l.epochs))
	for i, e := range l.epochs {
		lines[i] = fmt.Sprintf("%d %d", e.from, e.n)
	}
	r.Version, r.Order, r.Horizon, r.Epochs = recordVersion, o.name, l.horizon, strings.Join(lines, "\n")
}

var errOtherOrder = errors.New("the table's record was written with another Order; use the same Order in all programs")

// read checks the content of the record and returns its layout.
func (r *record) read(o Order) (*layout, error) {
	if r.Version != recordVersion {
		return nil, fmt.Errorf("the record has version %d, and this build reads version %d; use a newer build", r.Version, recordVersion)
	}
	if r.Order != o.name {
		return nil, fmt.Errorf("%w: the record has Order %q, and this program has %q", errOtherOrder, r.Order, o.name)
	}
	l := &layout{horizon: r.Horizon}
	last := int64(-1)
	for line := range strings.SplitSeq(r.Epochs, "\n") {
		from, n, _ := strings.Cut(line, " ")
		position, err1 := strconv.ParseInt(from, 10, 64)
		partitions, err2 := strconv.Atoi(n)
		if err1 != nil || err2 != nil || position <= last || partitions < 1 || partitions > MaxPartitions {
			return nil, fmt.Errorf("line %d of the record's Epochs is malformed; restore the record from a backup", len(l.epochs))
		}
		l.epochs, last = append(l.epochs, epoch{position, partitions}), position
	}
	if l.epochs[0].from != 0 || last > l.horizon || l.horizon > o.limit {
		return nil, fmt.Errorf("the record's epochs begin between %d and %d, and its horizon is %d; they must begin at 0 and end below the horizon, so restore the record from a backup", l.epochs[0].from, last, l.horizon)
	}
	return l, nil
}

// public converts an epoch to an Epoch.
func (o Order) public(e epoch) Epoch {
	if o.isTime() {
		return Epoch{Time: o.time(e.from), Partitions: e.n}
	}
	return Epoch{Number: e.from, Partitions: e.n}
}
