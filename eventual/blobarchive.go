package eventual

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns"
)

// ToContainer moves entities into blobs, one for each. ReadArchived reads them. The container has to exist.
//
// A blob is the JSON of its entity: its key in the source, and its properties in the table service's own JSON, which
// names the types that cannot be read off the values:
//
//	{"v":1,"partition":"Sales","row":"empid_000223","properties":{"Age":34,"Salary@odata.type":"Edm.Int64","Salary":"91000"}}
//
// Its metadata tpincarnation is the incarnation of the copy, as Mover tells, and tpwrite the id of the write, by which an
// ambiguous answer is resolved. Properties are those of the program, before any pattern has rewritten them. So a source
// with a pattern that encrypts is refused by NewMover: the blob would be in clear. So is one with a patterns.Streamer: the
// archive would hold a reference to what goes with the entity.
//
// name names the blob of an entity. It follows from the entity's key alone, or from what never changes, and two entities do not
// get the same one. A client of Account.Container is best, since it holds requests to the worker's lease and tells which of them
// got no answer; with others, every request without an answer makes the message wait for its visibility timeout.
func ToContainer[T any](c *container.Client, name func(*T) string) Destination[T] {
	codec, err := patterns.NewCodec[T]()
	return toContainer[T]{c, name, codec, err}
}

type toContainer[T any] struct {
	container *container.Client
	name      func(*T) string
	codec     *patterns.Codec[T]
	codecErr  error
}

const (
	// The names of the metadata; the service knows no case in them.
	metaIncarnation = "tpincarnation"
	metaWrite       = "tpwrite"

	maxBlobName = 1024 // the service's limit, in characters
)

func (d toContainer[T]) check(source *patterns.Repository[T]) error {
	switch {
	case d.container == nil:
		return errors.New("the container is nil; an account without a blob endpoint has none")
	case d.name == nil:
		return errors.New("there is no function that names the blobs")
	case d.codecErr != nil:
		return d.codecErr
	}
	for _, p := range source.Patterns() {
		if s, ok := p.(patterns.Streamer); ok && s.Streams() {
			return fmt.Errorf("pattern %q leaves content in blobs that go with the entity, and the archive would hold a reference to it", p.PatternName())
		}
		if encrypts(p) {
			return fmt.Errorf("pattern %q encrypts properties, and a blob would hold them in clear", p.PatternName())
		}
	}
	return nil
}

func (d toContainer[T]) prepare(source *patterns.Repository[T], entity *T) (parcel[T], error) {
	if name := d.name(entity); name == "" || len([]rune(name)) > maxBlobName {
		return parcel[T]{}, &patterns.Error{Op: "Move", Table: source.Table().Name(), Key: source.MetaOf(entity).Key(), Index: -1, Kind: patterns.ErrInvalid,
			Err: fmt.Errorf("a blob name of %d characters: it has 1 to %d", len([]rune(name)), maxBlobName)}
	}
	v := *entity
	return newParcel(source, entity, &v), nil
}

func (d toContainer[T]) insert(ctx context.Context, p parcel[T]) (occupant[T], error) {
	absent := azcore.ETagAny
	return d.put(ctx, p, blob.ModifiedAccessConditions{IfNoneMatch: &absent})
}

// storedBlob is an entity's blob.
type storedBlob[T any] struct {
	toContainer[T]
	at    string
	life  string
	write string
	etag  azcore.ETag
}

func (s storedBlob[T]) incarnation() string { return s.life }

func (s storedBlob[T]) replace(ctx context.Context, p parcel[T]) (occupant[T], error) {
	if name := s.name(p.copied); name != s.at {
		return nil, invalidf("Move", s.at, "an update of the entity has given its blob another name")
	}
	return s.put(ctx, p, blob.ModifiedAccessConditions{IfMatch: &s.etag})
}

// put writes a blob. It marks the write, so that it knows the blob again when the answer is lost.
func (d toContainer[T]) put(ctx context.Context, p parcel[T], condition blob.ModifiedAccessConditions) (occupant[T], error) {
	const op = "Move"
	name := d.name(p.copied)
	body, err := d.encode(p)
	if err != nil {
		return nil, err
	}
	write, contentType := rand.Text(), "application/json"
	var ex wire.Exchange
	answer, err := d.container.NewBlockBlobClient(name).Upload(wire.With(ctx, &ex), streaming.NopCloser(bytes.NewReader(body)), &blockblob.UploadOptions{
		HTTPHeaders:      &blob.HTTPHeaders{BlobContentType: &contentType},
		Metadata:         map[string]*string{metaIncarnation: &p.incarnation, metaWrite: &write},
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &condition},
	})
	if err == nil {
		etag := putETag(answer, &ex)
		if etag == "" {
			return nil, nil
		}
		return storedBlob[T]{d, name, p.incarnation, write, etag}, nil
	}
	if certain(err, &ex) {
		return nil, blobFailure(op, name, err)
	}
	there, lookErr := d.read(ctx, name)
	switch {
	case lookErr == nil && there != nil && there.write == write:
		return *there, nil
	case isRefusal(err):
		// Whether an earlier attempt was applied or not, somebody else's write came before the last one.
		return nil, blobFailure(op, name, err)
	}
	return nil, unknownBlob(op, name, err)
}

// putETag is the ETag that a put has left, "" where the answer does not tell. The SDK sees nothing of the answer to a call
// that carries an exchange, where the client has the policies for it.
func putETag(answer blockblob.UploadResponse, ex *wire.Exchange) azcore.ETag {
	if etag := ex.Header.Get("ETag"); wire.IsETag(etag) {
		return azcore.ETag(etag)
	}
	if answer.ETag != nil {
		return *answer.ETag
	}
	return ""
}

// certain reports whether a failed write was surely not applied. A client of somebody else's notes nothing: then an answer
// may be that to a repetition of a write that was applied.
func certain(err error, ex *wire.Exchange) bool {
	if ex.Last == wire.OutcomeNone {
		return false
	}
	return !ex.Lost() && !ex.EarlierUnknown()
}

// isRefusal reports whether the condition of a request did not hold.
func isRefusal(err error) bool {
	return wire.HasCode(err, "BlobAlreadyExists", "ConditionNotMet") || wire.IsStatus(err, http.StatusNotFound) && !wire.HasCode(err, "ContainerNotFound")
}

// blobFailure is failure for what is done to a blob under a condition.
func blobFailure(op, name string, err error) error {
	wrapped := failure(op, name, err)
	if e := (*patterns.Error)(nil); isRefusal(err) && errors.As(wrapped, &e) {
		e.Kind = patterns.ErrConflict
	}
	return wrapped
}

func unknownBlob(op, name string, err error) error {
	wrapped := failure(op, name, err)
	if e := (*patterns.Error)(nil); errors.As(wrapped, &e) {
		e.Kind = patterns.ErrUnknownOutcome
	}
	return wrapped
}

func (d toContainer[T]) look(ctx context.Context, p parcel[T]) (occupant[T], error) {
	there, err := d.read(ctx, d.name(p.copied))
	if there == nil || err != nil {
		return nil, err // not there: a nil *storedBlob would be an occupant
	}
	return *there, nil
}

// read reads what identifies a blob, nil where there is none.
func (d toContainer[T]) read(ctx context.Context, name string) (*storedBlob[T], error) {
	answer, err := d.container.NewBlobClient(name).GetProperties(ctx, nil)
	if wire.IsStatus(err, http.StatusNotFound) && !wire.HasCode(err, "ContainerNotFound") {
		return nil, nil
	}
	if err != nil {
		return nil, failure("Look", name, err)
	}
	if answer.ETag == nil {
		return nil, failure("Look", name, fmt.Errorf("%w: a blob without an ETag", patterns.ErrGarbled))
	}
	s := &storedBlob[T]{toContainer: d, at: name, etag: *answer.ETag}
	for key, value := range answer.Metadata {
		switch {
		case value == nil:
		case strings.EqualFold(key, metaIncarnation):
			s.life = *value
		case strings.EqualFold(key, metaWrite):
			s.write = *value
		}
	}
	return s, nil
}

func (s storedBlob[T]) remove(ctx context.Context) error {
	var ex wire.Exchange
	_, err := s.container.NewBlobClient(s.at).Delete(wire.With(ctx, &ex), &blob.DeleteOptions{
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &s.etag}},
	})
	switch {
	case err == nil:
		return nil
	case certain(err, &ex), isRefusal(err):
		return blobFailure("Move", s.at, err)
	}
	return unknownBlob("Move", s.at, err)
}
