package denormalization

import "context"

// end says by which end of a link an entity is written.
type end uint8

const (
	bySource end = iota + 1 // a holder, with its source's copy
	byHolder                // a source, unchanged, beside its holder
)

// byKey is where a context says that an end of a link writes; the link's other end has nothing to do then.
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
