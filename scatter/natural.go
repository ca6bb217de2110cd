package scatter

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// NaturalSchema says how entities of type T are spread by a natural key. Its functions must be pure.
type NaturalSchema[T any] struct {
	// Name begins the partition keys.
	Name string
	// Partition is the natural key, such as compoundkey.Tuple(compoundkey.String(e.Department), compoundkey.Int(e.ID, 6)).
	Partition func(*T) compoundkey.Part
	// Row returns the row key. It begins with Prefix and "_"; Range orders by the rest.
	Row func(*T) string
	// Prefix is the text before "_" in all row keys, as in compoundkey.Join(Prefix, ...); it is required.
	Prefix string
	// MaxAttempts limits the attempts of one change on conflict (default 10).
	MaxAttempts int
}

// Natural spreads entities over as many partitions as there are natural keys, the guide's own solution: the
// partition key is Name, "_" and the natural key, as in "event_Sales!_000223". All writes of one natural key go
// to one partition; to read all entities in order you need a list of the natural keys. It is safe for concurrent
// use.
type Natural[T any] struct {
	Writer[T]
	name   string
	prefix string
}

// NewNatural opens the entities of a table that are spread by a natural key, with their patterns. It returns
// tables.ErrWiring for an inconsistent schema or pattern. Requests: 0.
func NewNatural[T any](table *tables.Table, schema NaturalSchema[T], options *Options, attached ...patterns.Pattern[T]) (*Natural[T], error) {
	const op = "scatter.NewNatural"
	if table == nil || schema.Partition == nil || schema.Row == nil || schema.Name == "" || schema.Prefix == "" {
		return nil, miswired(op, table, errors.New("the table is nil, or NaturalSchema lacks Name, Prefix, Partition or Row; give all of them"))
	}
	if _, err := compoundkey.Encode(schema.Name); err != nil {
		return nil, miswired(op, table, err)
	}
	if options == nil {
		options = &Options{}
	}
	n := &Natural[T]{name: schema.Name, prefix: schema.Prefix}
	repository, err := patterns.NewRepository(table, patterns.Schema[T]{Name: repositoryName(table, schema.Name), Prefix: schema.Prefix,
		Key: func(v *T) tables.Key {
			return n.Key(schema.Partition(v), schema.Row(v))
		},
		MaxAttempts: schema.MaxAttempts}, attached...)
	if err != nil {
		return nil, err
	}
	n.Writer = newWriter(repository, options.Meter)
	n.Writer.reach = func(_ context.Context, op string, v *T) error {
		if row := schema.Row(v); !strings.HasPrefix(row, n.prefix+"_") && compoundkey.CheckKey(row) == nil {
			return invalid(op, table, fmt.Errorf("the row key does not begin with %q, so Range would not find the entity; let NaturalSchema.Row return keys that do", n.prefix+"_"))
		}
		return nil
	}
	return n, nil
}

// Key returns the key of the entity with a natural key and a row key, for the Repository's methods.
func (n *Natural[T]) Key(natural compoundkey.Part, row string) tables.Key {
	return tables.Key{Partition: compoundkey.Join(n.name, natural), Row: row}
}

// Get reads one entity. Requests: 1.
func (n *Natural[T]) Get(ctx context.Context, natural compoundkey.Part, row string) (*T, error) {
	return n.Repository().Get(ctx, n.Key(natural, row))
}

// Update is like [Spread.Update].
func (n *Natural[T]) Update(ctx context.Context, natural compoundkey.Part, row string, change func(*T) error) (*T, error) {
	return n.update(ctx, n.Key(natural, row), change)
}

// Range is like [Spread.Range], of the entities under the natural keys. More than MaxPartitions keys cause tables.ErrTooLarge,
// since pages of each are held in memory. Requests: 1 for each natural key and page.
func (n *Natural[T]) Range(ctx context.Context, naturals []compoundkey.Part, span compoundkey.Span, options *ReadOptions) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		const op = "Range"
		if len(naturals) > MaxPartitions {
			yield(nil, failure(op, n.Repository().Table(), tables.ErrTooLarge, fmt.Errorf("got %d natural keys, and a Range reads at most %d; split them", len(naturals), MaxPartitions)))
			return
		}
		partitions := make([]string, len(naturals))
		for i, natural := range naturals {
			partitions[i] = n.Key(natural, "").Partition
		}
		merged(ctx, n.Repository(), partitions, span.Under(n.prefix), options)(yield)
	}
}
