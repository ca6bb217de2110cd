package interop

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/interop/jsclient"
	"github.com/tablepatterns/tablepatterns/tables"
)

// hardScript writes a row for each value that JSON or JavaScript makes hard, and prints the HTTP status of each.
const hardScript = `
(async () => {
	const client = open(require("fs").readFileSync(0, "utf8"));
	const values = {
		minusZero: { type: "Double", value: "-0" }, one: { type: "Double", value: "1.0" }, exponent: { type: "Double", value: "1e0" }, number: 1.0,
		high: "cut \ud83d", low: "\ude00 cut", whole: "\ud83d\ude00",
	};
	const statuses = {};
	for (const [name, V] of Object.entries(values)) {
		statuses[name] = await client.createEntity({ partitionKey: "hard", rowKey: name, V }).then(() => 201, (e) => e.statusCode);
	}
	console.log(JSON.stringify(statuses));
})().catch((e) => { console.error(e); process.exit(1); });
`

// TestHardValues: whole Doubles, -0 and halves of surrogate pairs that @azure/data-tables has written are read as what the service has
// stored. Azurite stores halves of pairs, and loses the sign of -0; the simulator refuses the halves with status 400, and keeps the sign.
func TestHardValues(t *testing.T) {
	for name, s := range foreignServices(t) {
		t.Run(name, func(t *testing.T) {
			a := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
			table := a.Table(s.TableName(t))
			assert.Check(t, table.Create(t.Context()))
			var statuses map[string]int
			assert.Check(t, json.Unmarshal(jsclient.Run(t, s, hardScript, []byte(table.Name())), &statuses))
			for row, want := range map[string]struct {
				value any
				lossy bool
			}{
				"minusZero": {0.0, false}, "one": {1.0, false}, "exponent": {1.0, false}, "number": {int32(1), false}, // which the client sends as 1
				"high": {"cut \uFFFD", true}, "low": {"\uFFFD cut", true}, "whole": {"😀", false},
			} {
				if want.lossy && !isAzurite(s) {
					assert.Equal(t, statuses[row], http.StatusBadRequest, "the status of %s", row)
					continue
				}
				e, err := table.Entities().Get(t.Context(), tables.Key{Partition: "hard", Row: row})
				if err != nil || statuses[row] != http.StatusCreated {
					t.Errorf("%s: status %d: %v", row, statuses[row], err)
					continue
				}
				if got := e.Get("V").Any(); got != want.value || e.Lossy != want.lossy {
					t.Errorf("%s is read as %T %v, lossy %v", row, got, got, e.Lossy)
				}
				if zero, ok := e.Get("V").Any().(float64); row == "minusZero" && ok && math.Signbit(zero) == isAzurite(s) {
					t.Errorf("the sign of -0 is kept: %v", math.Signbit(zero))
				}
				if err := table.Entities().Replace(t.Context(), e); errors.Is(err, tables.ErrInvalid) != want.lossy || err != nil && !want.lossy {
					t.Errorf("%s is written back: %v", row, err)
				}
			}
		})
	}
}
