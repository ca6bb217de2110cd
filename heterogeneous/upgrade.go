package heterogeneous

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// UpgradeOptions are the options of Upgrade; nil is the same as the zero value.
type UpgradeOptions struct {
	// Partitions are the partitions to upgrade; nil is the whole table. No option to allow a table scan is needed.
	Partitions []string
	// Concurrency is the number of entities processed at once (default 8).
	Concurrency int
	// RowsPerSecond limits the rows that the job reads and writes in tables in a second, on average (default 0: no limit), so that it
	// leaves the throughput of the table to other programs. A change with all its patterns is not interrupted: the next one waits for it.
	RowsPerSecond int
}

const defaultConcurrency = 8

// Upgrade writes the entities of older versions as the current version, each under its ETag, while programs read and write.
// It also adds EntityType to entities without it. You can interrupt it at any time and run it again; it does not read
// upgraded entities again. The Report counts, also beside an error, as Read the entities that were not of the current version, and
// as Written those of them that this run wrote as the current version; concurrent writers wrote or deleted the others. When it is complete, and no program writes older versions any more, you can remove the steps.
//
// Requests: 1 for each page of at most 1,000 older rows, 2 for each of them, and 3 more for each conflict. If the type has no
// steps, it reads all rows of the type.
func (t *Type[T]) Upgrade(ctx context.Context, options *UpgradeOptions) (tables.Report, error) {
	var o UpgradeOptions
	if options != nil {
		o = *options
	}
	began := time.Now()
	var report tables.Report
	if err := pace.Check("UpgradeOptions", o.RowsPerSecond); err != nil {
		return report, tables.Invalid("Upgrade", err)
	}
	ctx = pace.With(ctx, o.RowsPerSecond)
	switch {
	case t.host() == nil:
		_, err := t.repository.Host("Upgrade", typeName)
		return report, err
	case o.Concurrency < 0:
		return report, tables.Invalidf("Upgrade", "UpgradeOptions.Concurrency is negative; it must be 0 (meaning 8) or more")
	case t.options.ByKey:
		return report, nil
	case o.Concurrency == 0:
		o.Concurrency = defaultConcurrency
	}
	queries := []tables.Query[tables.Entity]{t.outdated().AllowTableScan()}
	if o.Partitions != nil {
		queries = queries[:0]
		for _, partition := range o.Partitions {
			queries = append(queries, t.outdated().Partition(partition))
		}
	}
	var err error
	for _, q := range queries {
		if err = t.upgradeAll(ctx, q, o.Concurrency, &report); err != nil {
			break
		}
	}
	report.Elapsed = time.Since(began)
	return report, err
}

// outdated returns a query for the rows that may not be of the current version. Rows without EntityType match no condition on
// it.
func (t *Type[T]) outdated() tables.Query[tables.Entity] {
	q := t.host().Table().Entities().Query().Rows(t.span()).Select(EntityType)
	if len(t.options.Steps) > 0 {
		q = q.Where(t.Is(), tables.Ne(EntityType, t.tag.String()))
	}
	return q
}

// upgradeAll upgrades the entities that a query yields.
func (t *Type[T]) upgradeAll(ctx context.Context, q tables.Query[tables.Entity], concurrency int, report *tables.Report) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	var mu sync.Mutex
	var failed error
	for bag, err := range q.All(ctx) {
		if err != nil {
			failed = err
			break
		}
		if !t.upgradable(bag.Properties) {
			continue
		}
		group.Go(func() error {
			was, upgraded, err := t.upgradeOne(ctx, bag.Key)
			mu.Lock()
			defer mu.Unlock()
			if was {
				report.Read++
			}
			if upgraded {
				report.Written++
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err // the query failed only because this error ended its context
	}
	return failed
}

// upgradable reports whether a row belongs to the type and, according to EntityType, is not of the current version.
func (t *Type[T]) upgradable(p tables.Properties) bool {
	value := p.Get(EntityType)
	if value.IsNull() {
		return len(t.options.Steps) == 0 && t.host().RowPrefix() != ""
	}
	text, _ := value.Text()
	stored, ok := parseTag(text)
	return ok && t.reads(stored) && !t.current(p)
}

// upgradeOne writes one entity as the current version. It does nothing if the row is a copy, if the entity no longer exists,
// or if a concurrent writer has upgraded it.
func (t *Type[T]) upgradeOne(ctx context.Context, key tables.Key) (was, upgraded bool, err error) {
	err = backoff.Retry(ctx, attempts, func() (again bool, err error) {
		if was { // a concurrent writer changed it since
			bag, err := t.host().Table().Entities().Get(ctx, key)
			if errors.Is(err, tables.ErrNotFound) {
				return false, nil
			}
			if err != nil || !t.upgradable(bag.Properties) {
				return false, err
			}
		}
		v, err := t.host().Get(ctx, key)
		if errors.Is(err, tables.ErrNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		was = true
		err = t.host().Apply(ctx, driver.ChangeReplace, v, nil)
		upgraded = err == nil
		lost := errors.Is(err, tables.ErrConflict) || errors.Is(err, tables.ErrNotFound)
		return lost && !errors.Is(err, tables.ErrUnknownOutcome), err
	})
	return was, upgraded, err
}
