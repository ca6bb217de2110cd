package composition

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// atRest is an error if Repair or Rebuild writes anything: after a change; and a second time after what patterns have added to the item was damaged.
func (k *kit) atRest(ctx context.Context, r *patterns.Repository[item]) error {
	ctx = lease.Waive(ctx, lease.Terms)
	jobs := []harness.RepositoryJob[tally.Report]{
		func(ctx context.Context, _ *patterns.JobOptions) (tally.Report, error) {
			return harness.Tallied(r.Repair)(ctx, &patterns.JobOptions{Lag: 1})
		},
		harness.Tallied(r.Rebuild),
	}
	for _, job := range jobs {
		if err := k.writesNothing(ctx, job); err != nil {
			return fmt.Errorf("after a change: %w", err)
		}
	}
	for _, job := range jobs {
		damaged, err := k.damage(ctx)
		if err != nil || damaged == 0 {
			return err
		}
		if found, err := harness.Findings(ctx, r.Verify, &patterns.JobOptions{Lag: 1}); err != nil || len(found) < damaged {
			return fmt.Errorf("%d rows were damaged, and Verify finds %v, %w", damaged, found, err)
		}
		report, err := job(ctx, nil)
		if err != nil || report.Failed > 0 || report.Findings != report.Repaired {
			return fmt.Errorf("%d rows were damaged: %+v, %w", damaged, report, err)
		}
		if err := k.writesNothing(ctx, job); err != nil {
			return fmt.Errorf("%d rows were damaged: %w", damaged, err)
		}
		if _, err := r.Repair(ctx, nil); err != nil { // Rebuild trusts an entity that lists its copies
			return err
		}
		if err := clean(ctx, r); err != nil {
			return fmt.Errorf("%d rows were damaged: %w", damaged, err)
		}
	}
	return nil
}

// writesNothing is an error if a job sends a request that writes, or changes an ETag.
func (k *kit) writesNothing(ctx context.Context, job harness.RepositoryJob[tally.Report]) error {
	before, err := k.etags(ctx)
	if err != nil {
		return err
	}
	k.calls.Reset()
	report, err := job(ctx, nil)
	if err != nil || report.Written+report.Repaired+report.Findings+report.Failed != 0 {
		return fmt.Errorf("%+v, %w", report, err)
	}
	for kind, n := range k.calls.Kinds() {
		if !slices.Contains([]storagetest.Kind{storagetest.GetEntity, storagetest.QueryEntities, storagetest.GetBlob}, kind) {
			return fmt.Errorf("%d requests %s", n, kind)
		}
	}
	after, err := k.etags(ctx)
	if !maps.Equal(before, after) {
		err = errors.Join(err, fmt.Errorf("the rows were\n%v\nand are\n%v", before, after))
	}
	return err
}

// etags has the ETags of all rows.
func (k *kit) etags(ctx context.Context) (map[string]string, error) {
	all := map[string]string{}
	for _, table := range []*tables.Table{k.table, k.away} {
		for row, err := range table.Entities().Query().AllowTableScan().All(ctx) {
			if err != nil {
				return nil, err
			}
			all[fmt.Sprint(table.Name(), row.Key)] = string(row.ETag)
		}
	}
	return all, nil
}

// damage deletes the item's copies, unless the item needs its further rows, and falsifies the numbers in rows of their own. It returns how many rows it
// has damaged.
func (k *kit) damage(ctx context.Context) (n int, err error) {
	for _, table := range []*tables.Table{k.table, k.away} {
		client := table.Client()
		for pager := client.NewListEntitiesPager(nil); pager.More(); {
			page, err := pager.NextPage(ctx)
			if err != nil {
				return n, err
			}
			for _, text := range page.Entities {
				var row struct{ PartitionKey, RowKey, Primary, Shared string }
				if err := json.Unmarshal([]byte(strings.NewReplacer("_tpPrimary", "Primary", "_tpShared", "Shared").Replace(string(text))), &row); err != nil {
					return n, err
				}
				switch {
				case row.RowKey == row.Shared && (strings.HasPrefix(row.Shared, "number") || strings.HasPrefix(row.Shared, "sum")):
					_, err = client.UpsertEntity(ctx, fmt.Appendf(nil, `{"PartitionKey":%q,"RowKey":%q,"Count":"7","Count@odata.type":"Edm.Int64"}`, row.PartitionKey, row.RowKey), nil)
				case row.Primary != "" && row.Shared == "" && !k.wide:
					_, err = client.DeleteEntity(ctx, row.PartitionKey, row.RowKey, nil)
				default:
					continue
				}
				if n++; err != nil {
					return n, err
				}
			}
		}
	}
	return n, nil
}
