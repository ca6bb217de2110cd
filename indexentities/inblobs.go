package indexentities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/blobio"
	"github.com/tablepatterns/tablepatterns/internal/blobowner"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// InBlobs is an index whose lists are blobs. It belongs to the one Repository to which it was given. Before NewRepository has
// returned, its reads return tables.ErrWiring.
type InBlobs[T any] struct {
	index[T]
	blobs blobLists
}

// NewInBlobs makes an index with its lists in blobs of a container, the guide's option 1. name is the beginning of the blobs'
// names: ASCII letters, digits, '-' and '.'. value must be pure. It returns one value, or several, for example the entity's
// tags; repeated values count once. It returns the zero Part for an entity that is in no list. Get the container from
// Store.Container or Account.Container, of this or another account; Store.Create creates it. The repository needs a table of a patterns.Store.
// NewRepository reports invalid arguments.
func NewInBlobs[T any, K compoundkey.OneOrMany](name string, value func(*T) K, c *container.Client, options *Options[T]) *InBlobs[T] {
	x := &InBlobs[T]{index: newIndex(name, value, options), blobs: blobLists{container: c}}
	x.shelves = x
	return x
}

// Attach implements patterns.Pattern; NewRepository calls it.
func (x *InBlobs[T]) Attach(host driver.Host[T]) (driver.Implementation[T], error) {
	implementation, err := x.definition.Attach(host)
	if err == nil && x.blobs.container == nil {
		err = errors.New("the container is nil; give one of an account with a blob endpoint")
	}
	implementation.Prior, implementation.OutsideKeys, implementation.Reconcile = x.prior, x.outsideKeys, x.reconcileLists
	implementation.Containers = []*container.Client{x.blobs.container}
	implementation.Audit = &driver.Audit[T]{Expected: x.wanted, List: x.held, Read: x.readLists}
	implementation.Fits = func([]driver.Implementation[T]) error { // attached is set only now, when it is certain that the index belongs to this repository
		home := blobowner.Home(host.Table().Account().Endpoints().Table, host.Table().Name())
		x.blobs.owner = blobowner.Owner{What: fmt.Sprintf("index %q", x.definition.Name), Prefix: groupPrefix(x.definition.Name, Global),
			Labels: map[string]string{blobowner.HomeLabel: home}}
		return nil
	}
	return implementation, err
}

// outsideKeys names the lists that the entity enters or leaves.
func (x *InBlobs[T]) outsideKeys(_ context.Context, change *driver.Change[T]) ([]string, error) {
	return x.changed(change)
}

// reconcileLists makes the lists that an intent names contain the entities that belong to them, and none of
// the intent's other entities. It writes each list once.
func (x *InBlobs[T]) reconcileLists(ctx context.Context, all []*driver.Reconciliation[T]) error {
	x.reconcile(ctx, all, func(edits []*edit[T]) {
		for _, e := range edits {
			if err := x.reconcileList(ctx, e); err != nil {
				e.fail(err)
			}
		}
	})
	return nil
}

// reconcileList writes one list.
func (x *InBlobs[T]) reconcileList(ctx context.Context, e *edit[T]) error {
	return backoff.Retry(ctx, attempts+1, func() (again bool, err error) {
		old, err := x.blobs.read(ctx, e.place)
		if err != nil {
			return false, err
		}
		ids := slices.Clone(old.ids)
		for _, r := range e.in {
			if at, found := slices.BinarySearchFunc(ids, x.idOf(r.Key), compoundkey.Compare); !found {
				ids = slices.Insert(ids, at, x.idOf(r.Key))
			}
		}
		for _, r := range e.out {
			if at, found := slices.BinarySearchFunc(ids, x.idOf(r.Key), compoundkey.Compare); found {
				ids = slices.Delete(ids, at, at+1)
			}
		}
		if slices.Equal(ids, old.ids) {
			return false, nil
		}
		err = x.blobs.write(ctx, e.place, old, ids)
		return errors.Is(err, tables.ErrConflict), err
	})
}

func (x *InBlobs[T]) place(group string, value compoundkey.Part) (string, error) {
	return blobName(x.definition.Name, group, value)
}

func (x *InBlobs[T]) checkOwn(place string) error { return x.blobs.owner.CheckName(place) }

func (x *InBlobs[T]) load(ctx context.Context, place string) ([]string, error) {
	l, err := x.blobs.read(ctx, place)
	if err != nil {
		return nil, err
	}
	return l.ids, nil
}

func (x *InBlobs[T]) idOf(entity tables.Key) string { return driver.JoinKey(entity) }

func (x *InBlobs[T]) keyOf(_, id string) (tables.Key, error) { return driver.SplitKey(id) }

// under lists the blobs whose names begin with prefix.
func (b blobLists) under(ctx context.Context, prefix string) iter.Seq2[*container.BlobItem, error] {
	return blobio.List(ctx, b.container, prefix, container.ListBlobsInclude{Metadata: true})
}

func (x *InBlobs[T]) values(ctx context.Context, group string, of compoundkey.Span) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		if err := of.Err(); err != nil {
			yield(Value{}, err)
			return
		}
		prefix := groupPrefix(x.definition.Name, group)
		for b, err := range x.blobs.under(ctx, prefix) {
			if err != nil {
				yield(Value{}, tables.ServiceError("", prefix, err))
				return
			}
			key, ok := valueOf(prefix, *b.Name)
			if !ok || !of.Contains(key) {
				continue
			}
			count, err := strconv.Atoi(blobowner.Label(b.Metadata, metaCount))
			if err != nil {
				err = fmt.Errorf("the list blob has no metadata %s; delete the blob and run Repair", metaCount)
			}
			if err := cmp.Or(x.blobs.owner.CheckLabels(*b.Name, b.Metadata), err); err != nil {
				yield(Value{}, &tables.Error{Table: *b.Name, Kind: tables.ErrGarbled, Err: err})
				return
			}
			if !yield(Value{Key: key, Count: count}, nil) {
				return
			}
		}
	}
}

// held yields a fact for each key in the lists. Requests: 1 for each 5,000 blobs, and 1 for each blob; with Options.Group, the blobs of all
// groups.
func (x *InBlobs[T]) held(ctx context.Context, scope driver.Scope) iter.Seq2[driver.Fact, error] {
	return func(yield func(driver.Fact, error) bool) {
		all := x.definition.Group != nil || scope.Partitions == nil
		groups := scope.Partitions
		if all {
			groups = []string{Global} // the prefix of Global is also a prefix of the names of all other groups' lists
		}
		for _, group := range groups {
			prefix := groupPrefix(x.definition.Name, group)
			for b, err := range x.blobs.under(ctx, prefix) {
				if err != nil {
					yield(driver.Fact{}, x.failed("List", tables.ServiceError("", prefix, err)))
					return
				}
				if _, ok := valueOf(prefix, *b.Name); !ok && !all {
					continue
				}
				if !x.heldIn(ctx, *b.Name, scope, yield) {
					return
				}
			}
		}
	}
}

// heldIn yields a fact for each key in one blob. It returns false if the iteration must end.
func (x *InBlobs[T]) heldIn(ctx context.Context, place string, scope driver.Scope, yield func(driver.Fact, error) bool) bool {
	l, err := x.blobs.read(ctx, place)
	if err != nil && !errors.Is(err, tables.ErrGarbled) {
		yield(driver.Fact{}, x.failed("List", err))
		return false
	}
	if err != nil {
		return yield(x.unreadable(place, err), nil)
	}
	for fact := range x.facts(place, l.ids, scope) {
		if !yield(fact, nil) {
			return false
		}
	}
	return true
}
