package check_test

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
)

// TestRepairOfSwappedClaims: two claims have changed places, each under the other's name. Repair leaves both copies with their
// claims, also when it looks at one partition of entities only, and whatever the order of its requests.
func TestRepairOfSwappedClaims(t *testing.T) {
	for _, partitions := range [][]string{nil, {"D0"}, {"D1"}} {
		for _, concurrency := range []int{1, 8} {
			w := newWorld(t, 2) // one in D0, one in D1, with their badges in one partition
			v := &vandal{t: t, w: w}
			var claims []victim
			for _, r := range v.victims() {
				if r.table == w.badges && r.row["_tpClaim"] != nil {
					claims = append(claims, r)
				}
			}
			swapped := []map[string]any{maps.Clone(claims[1].row), maps.Clone(claims[0].row)}
			for i, row := range swapped {
				row["RowKey"] = claims[i].key()
				v.write(victim{w.badges, row})
			}
			options := &patterns.JobOptions{Lag: time.Nanosecond, Partitions: partitions, Concurrency: concurrency}
			repaired, err := harness.Findings(t.Context(), w.repo.Repair, options)
			if err != nil {
				t.Errorf("partitions %v, concurrency %d: %v", partitions, concurrency, err)
			}
			for _, r := range repaired {
				if !r.Repaired {
					t.Errorf("partitions %v, concurrency %d: %v", partitions, concurrency, r)
				}
			}
			for _, claim := range claims {
				answer, err := w.badges.GetEntity(t.Context(), claim.partition(), claim.key(), &aztables.GetEntityOptions{})
				if err != nil {
					t.Errorf("partitions %v, concurrency %d: the claim of %v is gone: %v", partitions, concurrency, claim.row["_tpClaim"], err)
					continue
				}
				row := map[string]any{}
				ok(t, json.Unmarshal(answer.Value, &row))
				if partitions == nil && row["_tpClaim"] != claim.row["_tpClaim"] {
					t.Errorf("the claim of %v says %v", claim.row["_tpClaim"], row["_tpClaim"])
				}
			}
			if findings, err := w.model.Check(t.Context()); err != nil || partitions == nil && len(findings) > 0 {
				t.Errorf("partitions %v, concurrency %d: %v, %v", partitions, concurrency, findings, err)
			}
		}
	}
}
