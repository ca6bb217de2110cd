package rangescan

import (
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/odata"
)

// MaxComparisons is the largest number of comparisons in the filter of a leg.
const MaxComparisons = 3

// Leg is a range, or the first part of a range, that a filter without "or" can select: rows of one partition,
// or whole partitions.
type Leg struct{ Range }

// leg returns the first leg of a range.
func (r Range) leg() Leg {
	if r.single() {
		return Leg{r}
	}
	if !r.From.opens() && r.From.Side != Behind {
		return Leg{Range{r.From, &Point{Partition: r.From.Partition, Side: Behind}}}
	}
	if r.To != nil && r.To.Side != Behind && !r.To.opens() {
		return Leg{Range{r.From, &Point{Partition: r.To.Partition}}}
	}
	return Leg{r}
}

// Filter returns the leg as a filter in the service's language, "" for the whole table. It returns an error if a key cannot be written in a
// filter.
func (l Leg) Filter() (string, error) {
	var terms []odata.Expr
	add := func(property string, op odata.Op, key string) {
		terms = append(terms, odata.Comparison{Property: property, Op: op, Value: edm.String(key)})
	}
	switch from := l.From; {
	case l.single():
		add("PartitionKey", odata.Eq, from.Partition)
		if !from.opens() {
			add("RowKey", [...]odata.Op{Before: odata.Ge, After: odata.Gt}[from.Side], from.Row)
		}
		if l.To.Side != Behind {
			add("RowKey", [...]odata.Op{Before: odata.Lt, After: odata.Le}[l.To.Side], l.To.Row)
		}
		return text(terms)
	case from.Side == Behind:
		add("PartitionKey", odata.Gt, from.Partition)
	case from.Partition != "":
		add("PartitionKey", odata.Ge, from.Partition)
	}
	if l.To != nil {
		op := odata.Lt
		if l.To.Side == Behind {
			op = odata.Le
		}
		add("PartitionKey", op, l.To.Partition)
	}
	return text(terms)
}

func text(terms []odata.Expr) (string, error) {
	printed, err := odata.Append(nil, odata.AllOf(terms...))
	return string(printed), err
}
