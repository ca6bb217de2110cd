package indexentities

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/continuation"
	"github.com/tablepatterns/tablepatterns/internal/keyindex"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Keys returns the sorted keys of the entities that have a value; none if no entity has it. Requests: 1; with NewInTable 1
// for each 1,000 keys, and 1 for each key that is being changed.
func (x *Index[T, K]) Keys(ctx context.Context, value K) ([]tables.Key, error) {
	const op = "Keys"
	place, err := x.place(op, value)
	if err != nil {
		return nil, err
	}
	return x.some(ctx, op, place, nil, 0)
}

// some returns keys of a list that are after a key, nil for all, at most so many, 0 for all.
func (x *index) some(ctx context.Context, op, place string, after *tables.Key, most int) ([]tables.Key, error) {
	keys := []tables.Key{}
	for key, err := range x.shelves.keys(ctx, place, after, most) {
		if err != nil {
			return nil, x.failed(op, err)
		}
		if keys = append(keys, key); len(keys) == most {
			break
		}
	}
	return keys, nil
}

// place names the list of a value in the group that the caller has chosen.
func (x *Index[T, K]) place(op string, value K) (string, error) {
	if _, err := x.definition.Host(op); err != nil {
		return "", err
	}
	group, err := x.definition.Chosen(op, x.group)
	if err != nil {
		return "", err
	}
	place, err := x.shelves.place(group, compoundkey.Of(value))
	return place, x.failed(op, err)
}

// FindOptions are the options of Find; nil is the same as the zero value.
type FindOptions struct {
	// Concurrency is the number of entities read at once (default 8).
	Concurrency int
}

// Find yields the entities that have a value, in the order of their keys. It reads each entity's current version, and
// skips it if it is deleted or has another value. For a row that does not fit the type it yields tables.ErrGarbled
// with Error.OfRow, and the loop can continue; any other error is yielded once, as the last element. Requests: those of
// Keys, and 1 for each key, FindOptions.Concurrency at once.
func (x *Index[T, K]) Find(ctx context.Context, value K, options *FindOptions) iter.Seq2[*T, error] {
	const op = "Find"
	return func(yield func(*T, error) bool) {
		place, err := x.place(op, value)
		if err != nil {
			yield(nil, err)
			return
		}
		var batch []tables.Key
		found := func() bool {
			for v, err := range x.follow(ctx, place, batch, options) {
				if !yield(v, err) || err != nil && !ofRow(err) {
					return false
				}
			}
			batch = batch[:0]
			return true
		}
		for key, err := range x.shelves.keys(ctx, place, nil, 0) {
			if err != nil {
				yield(nil, x.failed(op, err))
				return
			}
			if batch = append(batch, key); len(batch) == tables.MaxPageSize && !found() {
				return
			}
		}
		found()
	}
}

// ofRow reports whether an error is of one row, so that the others can be read.
func ofRow(err error) bool {
	e, ok := errors.AsType[*tables.Error](err)
	return ok && e.OfRow
}

// follow yields the entities of a list that still belong to it.
func (x *Index[T, K]) follow(ctx context.Context, place string, keys []tables.Key, options *FindOptions) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		host, err := x.definition.Host("Find")
		if err != nil {
			yield(nil, err)
			return
		}
		concurrency := 0
		if options != nil {
			concurrency = options.Concurrency
		}
		for v, err := range host.GetMany(ctx, keys, concurrency) {
			if err == nil && !slices.Contains(x.stored(v), place) {
				continue
			}
			if !yield(driver.As[T](v), err) {
				return
			}
		}
	}
}

// Page reads the entities of the next size keys in the list of a value: the first keys for an empty token,
// otherwise the keys after the page that returned the token. It skips entities that are gone or now have
// another value, so a page may be shorter. A token can be stored and used by another process; with another
// value, group or index Page returns tables.ErrInvalid. Even if the list changes between pages, Page returns
// no key twice, and misses no key that stays in the list. Requests: 1, and 1 for each key of the page, 8 at
// once.
func (x *Index[T, K]) Page(ctx context.Context, value K, size int, token string) (tables.Page[T], error) {
	const op = "Page"
	var page tables.Page[T]
	if size < 1 {
		return page, x.failed(op, fmt.Errorf("the page size is %d; it must be 1 or more", size))
	}
	place, err := x.place(op, value)
	if err != nil {
		return page, err
	}
	behind, err := x.parseToken(place, token)
	if err != nil {
		return page, x.failed(op, err)
	}
	keys, err := x.some(ctx, op, place, behind, size+1)
	if err != nil {
		return page, err
	}
	more := len(keys) > size
	keys = keys[:min(size, len(keys))]
	for v, err := range x.follow(ctx, place, keys, nil) {
		if err != nil {
			return tables.Page[T]{}, err
		}
		page.Items = append(page.Items, v)
	}
	if more {
		page.Next = continuation.Encode(pageToken{tokenVersion, x.fingerprint(place), keys[size-1].Partition, keys[size-1].Row})
	}
	return page, nil
}

// pageToken is what the text of Page.Next encodes.
type pageToken struct {
	Version   int    `json:"v"`
	List      string `json:"q"` // fingerprint of the list
	Partition string `json:"p"` // the last key of the page
	Row       string `json:"r"`
}

const tokenVersion = 1

// parseToken returns the key after which a page begins, nil for the first page.
func (x *index) parseToken(place, token string) (*tables.Key, error) {
	if token == "" {
		return nil, nil
	}
	var t pageToken
	switch {
	case continuation.Decode(token, &t) != nil:
		return nil, fmt.Errorf("the continuation token of %d characters is not one that Page has returned; give Page.Next of the page before, unchanged", len(token))
	case t.Version != tokenVersion:
		return nil, fmt.Errorf("the continuation token has version %d, and this build reads version %d; begin with an empty token", t.Version, tokenVersion)
	case t.List != x.fingerprint(place):
		return nil, fmt.Errorf("the continuation token belongs to another index, group or value; give Page.Next of a page of this list")
	}
	return &tables.Key{Partition: t.Partition, Row: t.Row}, nil
}

// fingerprint returns a hash that identifies a list.
func (x *index) fingerprint(place string) string {
	return continuation.Hash("%q %q", x.definition.Name, place)
}

// Value is one value of an index, with the number of its entities.
type Value struct {
	// Key is the value as compoundkey.Join("", value) writes it; compoundkey.Parse(Key, "", ...) reads it back.
	Key   string
	Count int // how many keys its list holds
}

// Text returns the value of an index of strings; of Folded, the folded text.
func (v Value) Text() (string, error) {
	var text string
	err := compoundkey.Parse(v.Key, "", compoundkey.ToString(&text))
	return text, err
}

// Values yields the values that entities have and that are in all of the intervals (compoundkey.Prefix, Between and so on), all values
// if there is none, in the order of their keys. An error is yielded once, as the last element. Requests: 1 for each page of
// at most 1,000 rows. With NewInPartition a row is a list, with NewInTable a key of a list.
func (x *Index[T, K]) Values(ctx context.Context, intervals ...compoundkey.Interval[K]) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		_, err := x.definition.Host("Values")
		if err != nil {
			yield(Value{}, err)
			return
		}
		group, err := x.definition.Chosen("Values", x.group)
		if err != nil {
			yield(Value{}, err)
			return
		}
		for v, err := range x.shelves.values(ctx, group, keyindex.Within(intervals)) {
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
