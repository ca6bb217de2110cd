package indexentities

import (
	"context"
	"iter"

	"github.com/tablepatterns/tablepatterns/compoundkey"
)

// Value is a value that entities have.
type Value struct {
	// Key is the value as compoundkey.Join("", value) writes it; compoundkey.Parse(Key, "", ...) reads it back.
	Key string
	// Count is how many keys its list holds. Outside of the partition, two holders of intents who enter one entity at the same
	// time may both count it, in a list of several rows, until the entity leaves or enters the list again.
	Count int
}

// Text returns the value of an index by compoundkey.String.
func (v Value) Text() (string, error) {
	var text string
	err := compoundkey.Parse(v.Key, "", compoundkey.ToString(&text))
	return text, err
}

// Values yields the values in a span that entities of a group have: compoundkey.All, Prefix, Between and so on. They come in
// their order; of blobs, in that of the blobs' names, which for characters beyond U+FFFF is another. An error comes once,
// last. Requests: 1 for each page: of at most 1,000 rows, or 5,000 blobs.
func (x *index[T]) Values(ctx context.Context, group string, span compoundkey.Span) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		if _, err := x.definition.Host("Values"); err != nil {
			yield(Value{}, err)
			return
		}
		for v, err := range x.shelves.values(ctx, group, span) {
			if err != nil {
				yield(Value{}, x.failed("Values", err))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}
