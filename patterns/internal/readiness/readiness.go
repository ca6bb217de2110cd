// Package readiness checks the resources of a store.
package readiness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/resource"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/stores"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/ownrows"
)

// Check reports whether a resource exists and can be read, and if not, what to do.
func Check(ctx context.Context, r resource.Resource) error {
	switch err := r.Check(ctx); {
	case err == nil:
		return nil
	case errors.Is(err, entity.ErrMissingResource):
		return fmt.Errorf("%s %s does not exist; call Store.Create, or create it: %w", r.Kind, r.Name, err)
	case errors.Is(err, entity.ErrDenied):
		return fmt.Errorf("%s %s cannot be read; %s: %w", r.Kind, r.Name, allow(r), err)
	default:
		return fmt.Errorf("%s %s: %w", r.Kind, r.Name, err)
	}
}

// allow returns how to give the program the right to read a resource, which depends on its credential.
func allow(r resource.Resource) string {
	switch {
	case strings.Contains(r.Source, "shared key"):
		return "check that the account's key is the present one, and that the account allows shared keys; a role does not help a key"
	case strings.Contains(r.Source, "shared access signature"):
		return fmt.Sprintf("use a signature that has not expired and allows this %s; a role does not help a signature", r.Kind)
	}
	return "give the program the role " + r.Kind.Role()
}

// OfTable returns a table as a resource. Its check queries one row, which does not need the right to list
// tables.
func OfTable(t *core.Table) resource.Resource {
	return resource.Resource{Kind: resource.Table, Name: t.Name(), Source: t.Account().Source(), Check: func(ctx context.Context) error {
		_, _, err := t.Bags().AllowTableScan().Select("PartitionKey").PageSize(1).Page(ctx, "")
		return err
	}}
}

// atOnce limits how many functions All calls concurrently.
const atOnce = 8

// All calls functions, several concurrently, and joins their errors.
func All(ctx context.Context, all []func(context.Context) error) error {
	failures := make([]error, len(all))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, f := range all {
		group.Go(func() error {
			failures[i] = f(ctx)
			return nil
		})
	}
	_ = group.Wait() // the functions return nil
	return errors.Join(failures...)
}

// Unmatched reports whether the repository's table has rows of which none is an entity of the repository: then
// Prefix, Rows, Mine or Where of the schema is probably wrong. It returns false if one request cannot search the whole
// table. Requests: 0 if the schema has none of the three, else at most 2.
func Unmatched(ctx context.Context, r *engine.Engine) (bool, error) {
	own := &r.Schema.Own
	if !own.Declared() {
		return false, nil
	}
	src := &core.Source{Table: r.Table, Codec: r.Codec, Span: own.Span, Where: own.Conditions(), Skips: true, Problems: true, System: append(own.Properties(), rows.Primary, rows.Shared),
		Load: func(_ context.Context, row *tablerow.Row, _ []string) (any, error) {
			if !r.Owns(row) {
				return nil, nil
			}
			return row.Clone(), nil
		}}
	page, next, err := core.NewQuery(src).AllowTableScan().Select("PartitionKey").PageSize(pageOf(own)).Page(ctx, "")
	if err != nil || len(page.Values)+len(page.Problems) > 0 || next != "" {
		return false, err
	}
	_, err = r.Table.Bags().AllowTableScan().Select("PartitionKey").First(ctx)
	if errors.Is(err, entity.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// NameUnmatched returns the name of a repository that is Unmatched, for the report of a job. It returns "" for
// any other repository, and also if Unmatched fails, since the job itself has succeeded.
func NameUnmatched(ctx context.Context, r *engine.Engine) string {
	if none, err := Unmatched(ctx, r); !none || err != nil {
		return ""
	}
	return r.Name()
}

// pageOf returns the page size for Unmatched: one row, or a full page if Mine must decide about each row.
func pageOf(own *ownrows.Rows) int {
	if own.Mine != nil {
		return entity.MaxPageSize
	}
	return 1
}

// Warn logs the repositories that are Unmatched. It checks each repository once and does not repeat a failed
// check, since the caller asks about resources and this log line is only additional advice.
func Warn(ctx context.Context, r *stores.Register, all []*engine.Engine) {
	for _, e := range all {
		if !r.Mark(matchOf(e)) {
			continue
		}
		if unmatched, err := Unmatched(ctx, e); err == nil && unmatched {
			e.Table.Account().Telemetry().Log(ctx, telemetry.LineUnmatched, e.Table.Name(), slog.String("table", e.Table.Name()), slog.String("repository", e.Name()))
		}
	}
}

// matchOf returns the ID under which Warn records that a repository was checked.
func matchOf(e *engine.Engine) stores.ID {
	return stores.ID{Account: e.Table.Account(), Name: "rows of " + e.Table.Name() + " " + e.Name()}
}
