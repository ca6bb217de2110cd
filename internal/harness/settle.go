package harness

import (
	"context"

	"github.com/tablepatterns/tablepatterns/internal/handle"
	"github.com/tablepatterns/tablepatterns/internal/stores"
	"github.com/tablepatterns/tablepatterns/patterns"
)

// Settle waits until the rest of all changes of a store is done, as the function does that Store.Start returns. Changes made afterwards do their
// rest before they return.
func Settle(ctx context.Context, store *patterns.Store) error {
	return (*handle.Any)(store).Value().(stores.Store).Drain(ctx)
}
