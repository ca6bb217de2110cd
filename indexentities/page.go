package indexentities

import (
	"context"
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/continuation"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Page reads the entities of the next size keys in the list of a value: the first keys for an empty token,
// otherwise the keys after the page that returned the token. It skips entities that are gone or now have
// another value, so a page may be shorter. A token can be stored and used by another process; with another
// value, group or index Page returns tables.ErrInvalid. Even if the list changes between pages, Page returns
// no key twice, and misses no key that stays in the list. Requests: 1, and 1 for each key of the page, 8 at
// once.
func (x *index[T]) Page(ctx context.Context, group string, value compoundkey.Part, size int, token string) (tables.Page[T], error) {
	const op = "Page"
	var page tables.Page[T]
	if size < 1 {
		return page, x.failed(op, fmt.Errorf("the page size is %d; it must be 1 or more", size))
	}
	behind, err := x.parseToken(group, value, token)
	if err != nil {
		return page, x.failed(op, err)
	}
	place, keys, err := x.keysAt(ctx, op, group, value)
	if err != nil {
		return page, err
	}
	from := 0
	if behind != nil {
		at, found := slices.BinarySearchFunc(keys, *behind, func(a, b tables.Key) int { return compoundkey.Compare(driver.JoinKey(a), driver.JoinKey(b)) })
		if from = at; found {
			from++
		}
	}
	to := min(len(keys), from+size)
	for v, err := range x.follow(ctx, place, keys[from:to], nil) {
		if err != nil {
			return tables.Page[T]{}, err
		}
		page.Items = append(page.Items, v)
	}
	if to < len(keys) {
		page.Next = continuation.Encode(pageToken{tokenVersion, x.fingerprint(place), keys[to-1].Partition, keys[to-1].Row})
	}
	return page, nil
}

// pageToken is the decoded form of a page's Next.
type pageToken struct {
	Version   int    `json:"v"`
	List      string `json:"q"` // fingerprint of the list
	Partition string `json:"p"` // the last key of the page
	Row       string `json:"r"`
}

const tokenVersion = 1

// parseToken returns the key after which a page begins, nil for the first page.
func (x *index[T]) parseToken(group string, value compoundkey.Part, token string) (*tables.Key, error) {
	if token == "" {
		return nil, nil
	}
	place, err := x.shelves.place(group, value)
	if err != nil {
		return nil, err
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
func (x *index[T]) fingerprint(place string) string {
	return continuation.Hash("%q %q", x.definition.Name, place)
}
