package indexentities

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/blobio"
	"github.com/tablepatterns/tablepatterns/internal/blobowner"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/refusal"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// inBlobs stores the lists in blobs.
type inBlobs[T any] struct {
	index[T]
	blobs blobLists
}

// NewInBlobs makes an index with its lists in blobs of a container, the guide's option 1. name is the beginning of
// the blobs' names: ASCII letters, digits, '-' and '.'. value must be pure. value returns one value, or several, for
// example the entity's tags; repeated values count once. It returns the zero Part for an entity that is in no list.
// Get the container from blobstorage.Open or blobstorage.Container, in this or another account; Store.Create creates it.
// The repository needs a table of a patterns.Store. NewRepository reports invalid arguments.
func NewInBlobs[T any, K compoundkey.OneOrMany](name string, value func(*T) K, c *container.Client, options *Options[T]) *Index[T] {
	x := &inBlobs[T]{index: newIndex(name, value, options), blobs: blobLists{container: c}}
	x.shelves, x.attach = x, x.attachTo
	return &Index[T]{index: &x.index}
}

func (x *inBlobs[T]) attachTo(host driver.Host[T]) (driver.Implementation[T], error) {
	implementation, err := x.definition.Attach(host)
	if err == nil && x.blobs.container == nil {
		err = errors.New("the container is nil; give one of an account with a blob endpoint")
	}
	implementation.Intents = eventual.IntentQueue(nil)
	implementation.Prior, implementation.OutsideKeys, implementation.Reconcile = x.prior, x.outsideKeys, x.reconcileLists
	implementation.Containers = []driver.Container{blobstorage.Resource(x.blobs.container)}
	implementation.Audit = &driver.Audit[T]{Expected: x.wanted, List: x.held, Read: x.readLists}
	implementation.Fits = func([]driver.Implementation[T]) error { // not in Attach: a second repository also calls Attach, and only then gets an error for the index
		home := blobowner.Home(host.Table().Account().Identity(), host.Table().Name())
		x.blobs.owner = blobowner.Owner{What: fmt.Sprintf("index %q", x.definition.Name), Prefix: groupPrefix(x.definition.Name, ""),
			Labels: map[string]string{blobowner.HomeLabel: home}}
		return nil
	}
	return implementation, err
}

// reconcileLists puts the entities of an intent into the lists to which they belong, and removes them from the other lists
// that the intent names.
func (x *inBlobs[T]) reconcileLists(ctx context.Context, all []*driver.Reconciliation[T]) error {
	x.reconcile(ctx, all, func(edits []*edit[T]) {
		for _, e := range edits {
			if err := x.reconcileList(ctx, e); err != nil {
				e.fail(err)
			}
		}
	})
	return nil
}

func (x *inBlobs[T]) reconcileList(ctx context.Context, e *edit[T]) error {
	if len(e.in) == 0 && blobio.CheckName(e.place) != nil {
		return nil // the service has no such list, so nobody is in it; it would refuse every request for it
	}
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

func (x *inBlobs[T]) place(group string, value compoundkey.Part) (string, error) {
	return blobName(x.definition.Name, group, value)
}

func (x *inBlobs[T]) checkOwn(place string) error { return x.blobs.owner.CheckName(place) }

func (x *inBlobs[T]) load(ctx context.Context, place string) ([]string, error) {
	l, err := x.blobs.read(ctx, place)
	if err != nil {
		return nil, err
	}
	return l.ids, nil
}

func (x *inBlobs[T]) idOf(entity tables.Key) string { return driver.JoinKey(entity) }

func (x *inBlobs[T]) keyOf(_, id string) (tables.Key, error) { return driver.SplitKey(id) }

// under lists the blobs whose names begin with prefix.
func (b blobLists) under(ctx context.Context, prefix string) iter.Seq2[*container.BlobItem, error] {
	return blobio.List(ctx, b.container, prefix, container.ListBlobsInclude{Metadata: true})
}

func (x *inBlobs[T]) values(ctx context.Context, group string, of compoundkey.Span) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		if err := of.Err(); err != nil {
			yield(Value{}, err)
			return
		}
		prefix := groupPrefix(x.definition.Name, group)
		for b, err := range x.blobs.under(ctx, prefix) {
			if err != nil {
				yield(Value{}, core.ServiceError("", prefix, err))
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

// held yields a fact for each key in the lists. Without Options.ByPartition, or without partitions in the scope, it
// reads the blobs of all groups. Requests: 1 for each 5,000 blobs, and 1 for each blob.
func (x *inBlobs[T]) held(ctx context.Context, scope driver.Scope) iter.Seq2[driver.Fact, error] {
	return func(yield func(driver.Fact, error) bool) {
		all := !x.definition.Groups.ByPartition || scope.Partitions == nil
		groups := scope.Partitions
		if all {
			groups = []string{""} // the names of all lists begin with the prefix of the group ""
		}
		for _, group := range groups {
			prefix := groupPrefix(x.definition.Name, group)
			for b, err := range x.blobs.under(ctx, prefix) {
				if err != nil {
					yield(driver.Fact{}, x.failed("List", core.ServiceError("", prefix, err)))
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
func (x *inBlobs[T]) heldIn(ctx context.Context, place string, scope driver.Scope, yield func(driver.Fact, error) bool) bool {
	l, err := x.blobs.read(ctx, place)
	if err != nil && (!errors.Is(err, tables.ErrGarbled) || refusal.OfResponse(err)) {
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

const (
	metaCount   = "tpcount" // lower case, since the service ignores case in names of metadata
	contentType = "text/plain; charset=utf-8"
)

// blobLists reads and writes the lists in blobs of a container.
type blobLists struct {
	container *container.Client
	owner     blobowner.Owner // the owner of all lists
}

// blobList is a list as it was read. Its ETag is empty if the blob does not exist.
type blobList struct {
	ids  []string
	etag azcore.ETag
}

// read reads a list. It returns tables.ErrGarbled for a blob that is not a list of the index. Requests: 1.
func (b blobLists) read(ctx context.Context, name string) (*blobList, error) {
	if err := b.owner.CheckName(name); err != nil {
		return nil, &tables.Error{Table: name, Kind: tables.ErrGarbled, Err: err}
	}
	content, err := blobio.Read(ctx, b.container, name)
	if err != nil {
		return nil, core.ServiceError("", name, err)
	}
	l, meta := &blobList{etag: content.ETag}, blobowner.FromHeader(content.Header)
	if l.etag == "" {
		return l, nil
	}
	if err = b.owner.CheckLabels(name, meta); err == nil {
		l.ids, err = decodeLines(string(content.Text), blobowner.Label(meta, metaCount))
	}
	if err != nil {
		return nil, &tables.Error{Table: name, Kind: tables.ErrGarbled, Err: err}
	}
	return l, nil
}

// write replaces the ids of a list that was read, under its ETag. If ids is empty, it deletes the blob. Requests: 1.
func (b blobLists) write(ctx context.Context, name string, old *blobList, ids []string) error {
	condition, text := blobio.Unchanged(old.etag), encodeLines(ids)
	err := blobio.CheckSize(len(text))
	if err != nil {
		return errs.Invalid("", err)
	}
	var ex wire.Exchange
	if len(ids) == 0 {
		_, err = b.container.NewBlobClient(name).Delete(wire.With(ctx, &ex), &blob.DeleteOptions{AccessConditions: condition})
	} else {
		kind, meta := contentType, b.owner.Metadata(map[string]string{metaCount: strconv.Itoa(len(ids))})
		_, err = b.container.NewBlockBlobClient(name).Upload(wire.With(ctx, &ex), streaming.NopCloser(bytes.NewReader(text)), &blockblob.UploadOptions{
			HTTPHeaders: &blob.HTTPHeaders{BlobContentType: &kind}, Metadata: meta, AccessConditions: condition})
	}
	if err == nil {
		return nil
	}
	e := core.ServiceError("", name, err)
	if errors.Is(e.Kind, tables.ErrNotFound) {
		e.Kind = tables.ErrConflict // a concurrent writer has deleted the list
	}
	if ex.Lost() || ex.EarlierUnknown() && !errors.Is(e.Kind, tables.ErrConflict) {
		e.Kind = tables.ErrUnknownOutcome // after a conflict the caller reads the list again, which shows the outcome
	}
	return e
}

// encodeLines returns the text of a list, one id a line.
func encodeLines(ids []string) []byte {
	var text bytes.Buffer
	for _, id := range ids {
		text.WriteString(id)
		text.WriteString(idSeparator)
	}
	return text.Bytes()
}

// decodeLines returns the ids of a list. It refuses a text that was cut off or edited by hand, which the count in the
// blob's metadata and the end of the last line show: otherwise the next change would write it back without the missing
// ids.
func decodeLines(text, count string) ([]string, error) {
	whole, ended := strings.CutSuffix(text, idSeparator)
	lines := strings.Split(whole, idSeparator)
	if !ended || strconv.Itoa(len(lines)) != count {
		return nil, fmt.Errorf("metadata %s of the list is %q, but the list has %d lines, the last of which may be cut off; delete the blob and run Repository.Rebuild", metaCount, count, len(lines))
	}
	return sortedIDs(lines), nil
}

const segmentEnd = "/"

// groupPrefix begins the names of a group's blobs.
func groupPrefix(name, group string) string {
	prefix := blobio.Segment(name) + segmentEnd
	if group == "" {
		return prefix
	}
	return prefix + blobio.Segment(compoundkey.Join("", compoundkey.String(group))) + segmentEnd
}

// blobName names the blob of a value.
func blobName(name, group string, value compoundkey.Part) (string, error) {
	prefix, key := groupPrefix(name, group), compoundkey.Join("", value)
	if err := compoundkey.Err(key); err != nil {
		return "", err
	}
	if err := compoundkey.Err(compoundkey.Join("", compoundkey.String(group))); err != nil {
		return "", err
	}
	full := prefix + blobio.Segment(key)
	if err := blobio.CheckName(full); err != nil {
		return "", errs.Invalid("", err)
	}
	return full, nil
}

// valueOf is the inverse of blobName for a blob under a group's prefix. It returns false for a list of
// another group: for a global index, the names of all other groups' lists also begin with the prefix.
func valueOf(prefix, name string) (key string, ok bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok || rest == "" || strings.Contains(rest, segmentEnd) {
		return "", false
	}
	return blobio.ParseSegment(rest), true
}
