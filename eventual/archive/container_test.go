package archive_test

import (
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/eventual/archive"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// everything has a field of each type, and what the program does not know in Rest.
type everything struct {
	tables.Meta
	PartitionKey, RowKey string
	Text                 string
	Empty                string
	Binary               []byte
	Flag                 bool
	Small                int32
	Large                int64
	Whole, NaN, Infinite float64
	When                 time.Time
	ID                   uuid.UUID
	Missing              *string
	Lists                map[string][]int        `table:",json"`
	Rest                 map[string]tables.Value `table:",rest"`
}

func sample() *everything {
	return &everything{PartitionKey: "O'Brien & co", RowKey: "r\u00e9sum\u00e9 \U0001F600",
		Text: "<\"quotes\"> \\ \x00\x01\u2028\U0001F600", Binary: []byte{0, 255}, Flag: true, Small: math.MinInt32, Large: math.MaxInt64,
		Whole: 3, NaN: math.NaN(), Infinite: math.Inf(-1), When: time.Date(2026, 11, 20, 13, 0, 0, 123_456_700, time.UTC),
		ID: uuid.MustParse("5f0f9f3e-4b0a-4d8e-9a53-0a3c8a5b1c11"), Lists: map[string][]int{"a": {1, 2}},
		Rest: map[string]tables.Value{"Later": tables.Int64(1 << 60), "Half": tables.Double(0.5)}}
}

const sampleJSON = `{"v":1,"partition":"O'Brien & co","row":"résumé 😀","properties":{` +
	`"Text":"<\"quotes\"> \\ \u0000\u0001\u2028😀","Empty":"","Binary@odata.type":"Edm.Binary","Binary":"AP8=","Flag":true,"Small":-2147483648,` +
	`"Large@odata.type":"Edm.Int64","Large":"9223372036854775807","Whole@odata.type":"Edm.Double","Whole":3.0,` +
	`"NaN@odata.type":"Edm.Double","NaN":"NaN","Infinite@odata.type":"Edm.Double","Infinite":"-Infinity",` +
	`"When@odata.type":"Edm.DateTime","When":"2026-11-20T13:00:00.1234567Z","ID@odata.type":"Edm.Guid","ID":"5f0f9f3e-4b0a-4d8e-9a53-0a3c8a5b1c11",` +
	`"Lists":"{\"a\":[1,2]}",` + `REST}}`

// withoutMeta is an entity to compare: a NaN is not equal to itself.
func withoutMeta(e *everything) everything {
	c := *e
	c.Meta = tables.Meta{}
	if math.IsNaN(c.NaN) {
		c.NaN = 4711
	}
	return c
}

func newContainer(t testing.TB, s *storagetest.Service) *container.Client {
	t.Helper()
	account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
	c := blobstorage.Container(account, s.ContainerName(t))
	_, err := c.Create(t.Context(), nil)
	assert.Check(t, err)
	return c
}

func putText(t testing.TB, c *container.Client, name, text string) {
	t.Helper()
	_, err := c.NewBlockBlobClient(name).Upload(t.Context(), streaming.NopCloser(strings.NewReader(text)), nil)
	assert.Check(t, err)
}

// archiveSample moves an entity into a blob.
func archiveSample(t testing.TB, s *storagetest.Service, c *container.Client, e *everything) {
	t.Helper()
	q := newQueue(t, s, nil)
	table := q.Account().Table(s.TableName(t))
	assert.Check(t, table.Create(t.Context()))
	repo := assert.Must[*patterns.Repository[everything]](t)(patterns.NewRepository(table, patterns.Schema[everything]{
		Key: func(e *everything) tables.Key { return tables.Key{Partition: e.PartitionKey, Row: e.RowKey} }}))
	mover := assert.Must[*archive.Mover[everything]](t)(archive.New(q, "m", repo, archive.ToContainer(c, func(*everything) string { return "a" }), nil))
	assert.Check(t, repo.Insert(t.Context(), e))
	assert.Check(t, mover.Move(t.Context(), e))
	if stats := drain(t, q); stats.Handled != 1 || stats.Failed != 0 {
		t.Fatalf("%+v", stats)
	}
}

// TestArchivedFormat: every value comes back equal, and the blob is what the documentation says.
func TestArchivedFormat(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	c := newContainer(t, s)
	archiveSample(t, s, c, sample())
	got := assert.Must[*everything](t)(archive.Read[everything](ctx, c, "a"))
	if !reflect.DeepEqual(withoutMeta(got), withoutMeta(sample())) {
		t.Errorf("read %+v, moved %+v", got, sample())
	}
	if got.Incarnation() != "" || got.ETag != "" {
		t.Errorf("Meta %+v", got.Meta)
	}
	bag := assert.Must[*tables.Entity](t)(archive.Read[tables.Entity](ctx, c, "a"))
	if v, _ := bag.Get("Large").Int(); bag.Key.Partition != "O'Brien & co" || v != math.MaxInt64 || bag.Get("Large").Type() != tables.TypeInt64 {
		t.Errorf("%+v", bag)
	}
	blob, err := c.NewBlobClient("a").DownloadStream(ctx, nil)
	assert.Check(t, err)
	defer blob.Body.Close()
	text := string(assert.Must[[]byte](t)(io.ReadAll(blob.Body)))
	later, half := `"Later@odata.type":"Edm.Int64","Later":"1152921504606846976"`, `"Half@odata.type":"Edm.Double","Half":0.5`
	if text != strings.Replace(sampleJSON, "REST", later+","+half, 1) && text != strings.Replace(sampleJSON, "REST", half+","+later, 1) {
		t.Errorf("stored as %s", text)
	}
	if blob.ContentType == nil || *blob.ContentType != "application/json" || len(blob.Metadata) != 4 {
		t.Errorf("content type %v, metadata %v", blob.ContentType, blob.Metadata)
	}
}

// TestReadArchived: members in any order, and clear errors for what is no archived entity.
func TestReadArchived(t *testing.T) {
	ctx := t.Context()
	c := newContainer(t, storagetest.Open(t))
	putText(t, c, "sorted", `{"properties":{"Large":"7","Large@odata.type":"Edm.Int64","Small":8},"row":"r","partition":"p","v":1,"later":{}}`)
	got := assert.Must[*everything](t)(archive.Read[everything](ctx, c, "sorted"))
	if got.Large != 7 || got.Small != 8 || got.PartitionKey != "p" || got.RowKey != "r" {
		t.Errorf("%+v", got)
	}
	type nested struct {
		*Embedded
		*Keys
		Small int32
	}
	if got := assert.Must[*nested](t)(archive.Read[nested](ctx, c, "sorted")); got.PartitionKey != "p" || got.Row != "r" {
		t.Errorf("%+v", got)
	}
	for text, reason := range map[string]string{
		``:      "the blob's content, 0 bytes, is not the JSON of an entity",
		`null`:  "format version 0",
		`{"v":`: "5 bytes, is not",
		`{"v":2,"partition":"p","row":"r","properties":{}}`:                                             "the blob has format version 2, and this build reads version 1",
		`{"v":1,"partition":"p","row":"r"}`:                                                             "the member properties of the blob's JSON is not an object",
		`{"v":1,"partition":"p","row":"r","properties":[]}`:                                             "the member properties of the blob's JSON is not an object",
		`{"v":1,"partition":"p","row":"r","properties":{"Small":1,"Small":2}}`:                          "is not the JSON of an entity",
		`{"v":1,"partition":"p","row":"r","properties":{"Small@odata.type":"Edm.Int","Small":2}}`:       "property Small has a type that this build does not know",
		`{"v":1,"partition":"p","row":"r","properties":{"Small@odata.type":3,"Small":2}}`:               "property Small has a type that this build does not know",
		`{"v":1,"partition":"p","row":"r","properties":{"When@odata.type":"Edm.DateTime","When":"x"}}`:  "property When of the blob's JSON: ",
		`{"v":1,"partition":"p","row":"r","properties":{"When@odata.type":"Edm.DateTime","When":true}}`: "property When of the blob's JSON: ",
		`{"v":1,"partition":"p","row":"r","properties":{"Small":{}}}`:                                   "property Small of the blob's JSON: the value does not match the annotated type",
		`{"v":1,"partition":"p","row":"r","properties":{"Small":"secret"}}`:                             "Small",
	} {
		putText(t, c, "bad", text)
		_, err := archive.Read[everything](ctx, c, "bad")
		if wantKind(t, err, tables.ErrGarbled); !strings.Contains(err.Error(), reason) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", text, err, reason)
		}
	}
	_, err := archive.Read[everything](ctx, c, "missing")
	wantKind(t, err, tables.ErrNotFound)
	_, err = archive.Read[everything](ctx, c, "")
	wantKind(t, err, tables.ErrInvalid)
	_, err = archive.Read[everything](ctx, nil, "a")
	wantKind(t, err, tables.ErrInvalid)
}

// Keys are the keys under names of the program's own.
type Keys struct {
	PartitionKey string
	Row          string `table:"RowKey"`
}

// TestMoverBlobNames: a name that a blob cannot have is refused, and one that changes with the entity ends on the poison queue; the
// entity stays.
func TestMoverBlobNames(t *testing.T) {
	s := storagetest.Open(t)
	o := newOffice(t, s, office{toBlobs: true})
	ctx, p, c := t.Context(), o.open(t, s), june()
	assert.Check(t, p.current.Insert(ctx, c))
	mover := func(name func(*clerk) string) *archive.Mover[clerk] {
		p := o.open(t, s)
		return assert.Must[*archive.Mover[clerk]](t)(archive.New(p.queue, "names", p.current, archive.ToContainer(blobstorage.Container(p.queue.Account(), o.container), name), nil))
	}
	for reason, name := range map[string]string{"it is empty": "", "1025": strings.Repeat("é", 1025), "1026": strings.Repeat("😊", 513), "255 segments": strings.Repeat("a/", 254) + "a"} {
		if err := mover(func(*clerk) string { return name }).Move(ctx, c); !errors.Is(err, tables.ErrInvalid) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%v, want %q", err, reason)
		}
	}
	changing := assert.Must[*archive.Mover[clerk]](t)(archive.New(p.queue, "names", p.current,
		archive.ToContainer(blobstorage.Container(p.queue.Account(), o.container), func(c *clerk) string { return "clerks/" + c.Note }), nil))
	assert.Check(t, changing.Move(ctx, c))
	_, err := p.current.Update(ctx, clerkKey(c), rewrite("promoted"))
	assert.Check(t, err)
	if _, err := p.work(ctx, 1); err != nil {
		t.Error(err)
	}
	if e := entries(t, p.queue); len(e) != 1 || !strings.Contains(e[0].Reason, "derive it only from the key and from properties that never change") {
		t.Errorf("%+v", e)
	}
	if found := assert.Must[places](t)(p.find(ctx, c)); found.current == nil {
		t.Errorf("%v", found)
	}
}

// TestMoverForeignContainer: a client that was not made by an Account tells nothing of its attempts; the mover finds out.
func TestMoverForeignContainer(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	o := newOffice(t, s, office{toBlobs: true})
	ctx, p := t.Context(), o.open(t, s)
	for i, fault := range []storagetest.Fault{nil, storagetest.LostAnswer, storagetest.Before500, storagetest.NotSent} {
		for _, retries := range []int32{0, 3} {
			faulty, _ := s.Faulty(storagetest.On(storagetest.PutBlob, storagetest.Once(storagetest.InjectorFunc(func(storagetest.Call) storagetest.Fault { return fault }))))
			options := faulty.WithRetries(retries).ClientOptions
			credential := assert.Must[*container.SharedKeyCredential](t)(container.NewSharedKeyCredential(s.AccountName, s.AccountKey))
			client := assert.Must[*container.Client](t)(container.NewClientWithSharedKeyCredential(s.BlobEndpoint+"/"+o.container, credential,
				&container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: options.Transport, Retry: options.Retry}}))
			queue := assert.Must[*eventual.Queue](t)(openQueue(s, o.queue, nil))
			mover := assert.Must[*archive.Mover[clerk]](t)(archive.New(queue, "foreign", p.current, archive.ToContainer(client, clerkBlob), nil))
			c := &clerk{Department: "Sales", ID: 10*i + int(retries), Email: "x", Life: "first", Note: "hired"}
			c.Email = clerkBlob(c)
			assert.Check(t, p.current.Insert(ctx, c))
			assert.Check(t, mover.Move(ctx, c))
			for range 2 {
				drain(t, queue)
				s.Wait(2 * time.Minute)
			}
			wantPlaces(t, p, c, "", "first: hired")
		}
	}
}
