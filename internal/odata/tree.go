package odata

import "github.com/tablepatterns/tablepatterns/internal/edm"

// Comparison compares a property with a value. A boolean property on its own is a Comparison with Eq and true.
type Comparison struct {
	Property string
	Op       Op
	Value    edm.Value
}

// And matches if both sides match.
type And struct{ Left, Right Expr }

// Or matches if one side matches.
type Or struct{ Left, Right Expr }

// Not matches an entity that X does not match, including an entity that lacks the property in X.
type Not struct{ X Expr }

// Constant is a filter that matches every entity (true) or none (false).
type Constant bool

func (Comparison) isExpr() {}
func (And) isExpr()        {}
func (Or) isExpr()         {}
func (Not) isExpr()        {}
func (Constant) isExpr()   {}

// AllOf joins terms by and, without nil terms. Without terms it returns nil, the filter that every entity matches.
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

// AnyOf joins terms by or. With a nil term it returns nil, because every entity matches that term. Without terms it returns
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

// Comparisons returns the number of comparisons in e. The service allows edm.MaxComparisons.
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
