package tables

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// BulkVerb is what a bulk write does with each entity.
type BulkVerb uint8

// The verbs of Rows.BulkNonAtomic.
const (
	BulkInsert BulkVerb = iota
	BulkUpsert
	BulkUpsertMerge
)

// BulkOptions are the options of bulk writes; nil is the same as the zero value.
type BulkOptions struct {
	Verb BulkVerb // of Rows.BulkNonAtomic
	// Concurrency is the number of transactions under way at once, 8 for 0. One partition has one at a time, so that
	// its entities are written in the order they come in.
	Concurrency int
	// Skip leaves out the first entities: BulkProgress.Resume of an earlier run over the same entities in the same order.
	Skip int64
	// SkipExisting counts an insert of an entity that is there as done, whoever inserted it. A run that resumes another
	// needs it: what was written behind the earlier run's Resume is met again.
	SkipExisting bool
	// Progress is called after each transaction, one call at a time. It must not block for long.
	Progress func(BulkProgress)
}

func (o *BulkOptions) check() error {
	if o.Verb > BulkUpsertMerge || o.Concurrency < 0 || o.Skip < 0 {
		return fmt.Errorf("a Verb of %d, a Concurrency of %d, a Skip of %d", o.Verb, o.Concurrency, o.Skip)
	}
	return nil
}

// BulkProgress is how far a bulk write is.
type BulkProgress struct {
	Entities     int64 // written
	Existing     int64 // met and left, with SkipExisting
	Rows         int64 // written, index rows included
	Transactions int64 // committed
	Resume       int64 // every entity before this one in the sequence is done; BulkOptions.Skip of a later run
	Elapsed      time.Duration
}

// BulkNonAtomic writes any number of rows: groups them by partition, packs each group into entity group transactions
// and runs partitions side by side. Each transaction is atomic and the whole is not: when it ends early, with the
// context or an error, any part of the rows behind Resume may be written. The error is that of the first failure; what
// was under way is waited for. Memory is bounded by 20,000 rows; of more partitions than that, transactions are as small
// as they come. A bag's properties are copied when it is taken from the sequence; ETags are set later, from other
// goroutines, so that a struct must stay as it is until BulkNonAtomic returns. Requests: 1 for each 100 rows of a
// partition at best.
func (r *Rows[T]) BulkNonAtomic(ctx context.Context, rows iter.Seq2[*T, error], options *BulkOptions) (BulkProgress, error) {
	const op = "BulkNonAtomic"
	b := newBulk(r.src.Table, op, options)
	verb := wire.VerbReplace
	switch b.options.Verb {
	case BulkInsert:
		verb = wire.VerbInsert
	case BulkUpsertMerge:
		verb = wire.VerbMerge
	}
	return runBulk(ctx, b, rows, func(v *T) (*unit, error) {
		w, err := r.src.Codec.write(verb, v, "")
		if err != nil {
			return nil, err
		}
		return &unit{writes: []RawWrite{w}, written: func(etag azcore.ETag) { r.src.Codec.written(verb, v, etag) }}, nil
	})
}

// runBulk feeds the entities to the lanes and waits for them.
func runBulk[T any](ctx context.Context, b *bulk, entities iter.Seq2[*T, error], plan func(*T) (*unit, error)) (BulkProgress, error) {
	if err := b.options.check(); err != nil {
		return BulkProgress{}, relabel(b.op, b.table, Invalid("", err))
	}
	if entities == nil {
		return BulkProgress{}, relabel(b.op, b.table, Invalidf("", "the sequence is nil"))
	}
	// A failure stops what has not begun; what is under way goes on with the caller's context, since cutting it off
	// would leave its outcome unknown.
	begin, stop := context.WithCancel(ctx)
	defer stop()
	b.stop = stop
	var sequence int64
	for v, err := range entities {
		if err != nil {
			b.fail(err)
			break
		}
		sequence++
		if sequence <= b.options.Skip {
			continue
		}
		if err := take(begin, ctx, b, v, sequence, plan); err != nil {
			b.fail(relabel(b.op, b.table, err))
			break
		}
	}
	b.finish(begin, ctx)
	return b.progress, b.err
}

// take plans one entity of the sequence and gives it to its lane.
func take[T any](begin, ctx context.Context, b *bulk, v *T, sequence int64, plan func(*T) (*unit, error)) error {
	if v == nil {
		return Invalidf(b.op, "entity %d of the sequence is nil", sequence)
	}
	u, err := plan(v)
	if err != nil {
		return err
	}
	u.sequence = sequence
	return b.add(begin, ctx, u)
}
