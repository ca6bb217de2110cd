package composition

import (
	"context"
	"errors"
	"time"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
)

// jobs are all maintenance runs over the items.
func jobs() []harness.Job[*desk] {
	return append(harness.RepositoryJobs(func(d *desk) *patterns.Repository[item] { return d.items }, time.Second), []harness.Job[*desk]{
		{Name: "Upgrade", Run: func(ctx context.Context, d *desk) error {
			return second(d.typ.Upgrade(ctx, &patterns.JobOptions{Concurrency: 1}))
		}},
		{Name: "Reencrypt", Run: func(ctx context.Context, d *desk) error {
			_, err := d.registry.CreateDataKey(ctx)
			return errors.Join(err, second(encryption.Reencrypt(ctx, d.items, &patterns.JobOptions{Concurrency: 1})))
		}},
		{Name: "Recount", Run: func(ctx context.Context, d *desk) error {
			project, _ := projectOf(d.itemOf(1, states[0]))
			return errors.Join(third(d.count.Recount(ctx, theSite)), third(d.lengths.Recount(ctx, theSite, "")), third(d.counted.Recount(ctx, siteKey(theSite, "counted"))),
				third(d.members.Recount(ctx, project)))
		}},
		{Name: "Sweep", Run: func(ctx context.Context, d *desk) error { return second(d.photo.Sweep(ctx, nil)) }},
		{Name: "SweepClaims", Run: func(ctx context.Context, d *desk) error { return second(d.queue.SweepClaims(ctx, nil)) }},
	}...)
}
