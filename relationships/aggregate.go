package relationships

import (
	"errors"
	"math/big"
	"slices"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Aggregate summarizes a value of the entities of a group.
type Aggregate struct {
	Count         int64 // number of entities
	Sum, Min, Max int64 // sum, minimum and maximum of their values; 0 if Count is 0
}

// The properties of the row of a Summary. A Count stores only the first of them.
const (
	countProperty = "Count"
	sumProperty   = "Sum"
	minProperty   = "Min"
	maxProperty   = "Max"
)

// countIn returns the number in a row; false if it is missing or invalid.
func countIn(row *tables.Entity) (Aggregate, bool) {
	n, ok := row.Get(countProperty).Int()
	return Aggregate{Count: n}, ok && n >= 0 && row.ETag != ""
}

// aggregateIn returns the aggregate in a row; or false if the aggregate is missing or impossible.
func aggregateIn(row *tables.Entity) (Aggregate, bool) {
	a, ok := countIn(row)
	for property, field := range map[string]*int64{sumProperty: &a.Sum, minProperty: &a.Min, maxProperty: &a.Max} {
		v, stored := row.Get(property).Int()
		*field, ok = v, ok && stored
	}
	return a, ok && a.Min <= a.Max && (a.Count > 0 || a == Aggregate{})
}

// setCount and setAggregate store an aggregate in a row.
func setCount(row *tables.Entity, a Aggregate) { row.Set(countProperty, tables.Int64(a.Count)) }

func setAggregate(row *tables.Entity, a Aggregate) {
	setCount(row, a)
	row.Set(sumProperty, tables.Int64(a.Sum))
	row.Set(minProperty, tables.Int64(a.Min))
	row.Set(maxProperty, tables.Int64(a.Max))
}

// adding is an Aggregate while values are added; its sum may temporarily exceed 64 bits.
type adding struct {
	Aggregate
	sum big.Int
}

func (a *adding) add(v int64) {
	if a.Count == 0 {
		a.Min, a.Max = v, v
	}
	a.Count, a.Min, a.Max = a.Count+1, min(a.Min, v), max(a.Max, v)
	a.sum.Add(&a.sum, big.NewInt(v))
}

// result returns the aggregate, or an error if the sum of all values does not fit into an Int64.
func (a *adding) result() (Aggregate, error) {
	if !a.sum.IsInt64() {
		return Aggregate{}, errors.New("the sum of the values does not fit into a 64-bit integer; use a larger unit for the values, or more groups")
	}
	a.Sum = a.sum.Int64()
	return a.Aggregate, nil
}

// without returns the aggregate of a group after some values have left and before others join. It returns
// false if the stored numbers are not sufficient: if the minimum or maximum leaves, the next value is
// unknown; or other programs have stored wrong numbers.
func (a Aggregate) without(leaving, joining []int64) (rest adding, known bool) {
	switch left := a.Count - int64(len(leaving)); {
	case left < 0:
		return adding{}, false
	case left == 0:
		return adding{}, true
	}
	for _, v := range leaving {
		if a.Min == a.Max {
			break // all values are equal
		}
		if v <= a.Min && (len(joining) == 0 || slices.Min(joining) > v) || v >= a.Max && (len(joining) == 0 || slices.Max(joining) < v) {
			return adding{}, false
		}
	}
	rest.Aggregate = a
	rest.sum.SetInt64(a.Sum)
	for _, v := range leaving {
		rest.Count--
		rest.sum.Sub(&rest.sum, big.NewInt(v))
	}
	return rest, true
}
