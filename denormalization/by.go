package denormalization

import "context"

// end is the end of a link that writes an entity.
type end uint8

const (
	bySource end = iota + 1 // a holder, with its source's copy
	byHolder                // a source, unchanged, beside its holder
)

// byKey marks a context in which one end of a link writes; then the other end does nothing.
type byKey struct {
	end      end
	relation any
}

func by(ctx context.Context, end end, relation any) context.Context {
	return context.WithValue(ctx, byKey{end, relation}, true)
}

func isBy(ctx context.Context, end end, relation any) bool {
	return ctx.Value(byKey{end, relation}) != nil
}
