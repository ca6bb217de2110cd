package indexentities

import (
	"context"
	"iter"

	"github.com/tablepatterns/tablepatterns/compoundkey"
)

// Value is one value of an index, with the number of its entities.
type Value struct {
	// Key is the value as compoundkey.Join("", value) writes it; compoundkey.Parse(Key, "", ...) reads it back.
	Key string
	// Count is how many keys its list holds. Outside of the partition, if two processes enter an entity into a list of several rows at the
	// same time, Count may count it twice until the entity leaves or enters the list again.
	Count int
}

// Text returns the value of an index whose value function uses compoundkey.String.
func (v Value) Text() (string, error) {
	var text string
	err := compoundkey.Parse(v.Key, "", compoundkey.ToString(&text))
	return text, err
}

// Values yields the values that entities of a group have, within a span: compoundkey.All, Prefix, Between and
// so on. They come in the order of their keys; with blobs, in the order of the blobs' names, which differs
// for characters above U+FFFF. An error is yielded once, as the last element. Requests: 1 for each page: of
// at most 1,000 rows, or 5,000 blobs.
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
