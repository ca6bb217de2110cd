package odata

import "github.com/tablepatterns/tablepatterns/internal/edm"

// Comparison compares a property with a value. A boolean property on its own is one with Eq and true.
type Comparison struct {
	Property string
	Op       Op
	Value    edm.Value
}

// And holds when both sides do.
type And struct{ Left, Right Expr }

// Or holds when one side does.
type Or struct{ Left, Right Expr }

// Not holds when X does not, so also for an entity that lacks the property X compares.
type Not struct{ X Expr }

// Constant is a filter that holds for every entity, or for none.
type Constant bool

func (Comparison) isExpr() {}
func (And) isExpr()        {}
func (Or) isExpr()         {}
func (Not) isExpr()        {}
func (Constant) isExpr()   {}

// AllOf joins terms by and, leaving out nil ones. Without terms it is nil, the filter that every entity passes.
func AllOf(terms ...Expr) Expr {
	var all Expr
	for _, term := range terms {
		switch {
		case term == nil:
		case all == nil:
			all = term
		default:
			all = And{all, term}
		}
	}
	return all
}

// AnyOf joins terms by or. A nil term makes it nil, since every entity passes that term; without terms it is
// Constant(false).
func AnyOf(terms ...Expr) Expr {
	var one Expr = Constant(false)
	for i, term := range terms {
		switch {
		case term == nil:
			return nil
		case i == 0:
			one = term
		default:
			one = Or{one, term}
		}
	}
	return one
}

// Comparisons counts the comparisons of e, of which the service takes edm.MaxComparisons.
func Comparisons(e Expr) int {
	switch e := e.(type) {
	case Comparison:
		return 1
	case And:
		return Comparisons(e.Left) + Comparisons(e.Right)
	case Or:
		return Comparisons(e.Left) + Comparisons(e.Right)
	case Not:
		return Comparisons(e.X)
	}
	return 0
}
