package odata

import (
	"math"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// drawValue draws a value that has a literal, of any type.
func drawValue(t *rapid.T) edm.Value {
	switch rapid.IntRange(0, 7).Draw(t, "type") {
	case 0:
		return edm.String(drawText(t))
	case 1:
		return edm.Binary(rapid.SliceOf(rapid.Byte()).Draw(t, "binary"))
	case 2:
		return edm.Boolean(rapid.Bool().Draw(t, "boolean"))
	case 3:
		return edm.Int32(rapid.Int32().Draw(t, "int32"))
	case 4:
		return edm.Int64(rapid.Int64().Draw(t, "int64"))
	case 5:
		return edm.Double(rapid.Float64().Filter(func(f float64) bool { return !math.IsInf(f, 0) && !math.IsNaN(f) }).Draw(t, "double"))
	case 6:
		seconds := rapid.Int64Range(-11644473600, 253402300799).Draw(t, "seconds")
		v := assert.Must[edm.Value](t)(edm.DateTime(time.Unix(seconds, 100*rapid.Int64Range(0, 9999999).Draw(t, "fraction"))))
		return v
	}
	return edm.Guid(uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "guid")))
}

func drawText(t *rapid.T) string {
	return rapid.OneOf(rapid.String(), rapid.StringMatching(`[' aA\x00-\x1F\x{E000}\x{1F600}]{0,8}`)).Draw(t, "text")
}

// drawTree draws a tree of up to the given depth whose comparisons leaf draws.
func drawTree(t *rapid.T, depth int, leaf func(*rapid.T) Expr) Expr {
	if depth > 0 {
		switch rapid.IntRange(0, 6).Draw(t, "node") {
		case 0, 1, 2:
			return And{drawTree(t, depth-1, leaf), drawTree(t, depth-1, leaf)}
		case 3, 4:
			return Or{drawTree(t, depth-1, leaf), drawTree(t, depth-1, leaf)}
		case 5:
			return Not{drawTree(t, depth-1, leaf)}
		}
	}
	return leaf(t)
}

func drawOp(t *rapid.T) Op { return Op(rapid.IntRange(0, len(opNames)-1).Draw(t, "op")) }

// drawAnyLeaf draws a comparison of any property with any value, or a constant.
func drawAnyLeaf(t *rapid.T) Expr {
	if rapid.IntRange(0, 9).Draw(t, "leaf") == 0 {
		return Constant(rapid.Bool().Draw(t, "constant"))
	}
	name := rapid.SampledFrom([]string{"PartitionKey", "RowKey", "Age", "_x1", "Größe", "eq", "and", "guid", "X", "datetime"}).Draw(t, "name")
	return Comparison{name, drawOp(t), drawValue(t)}
}
