package composition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/dataseries"
	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/eventual/archive"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/logdata"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// endless is a service that answers every request with one status and 160 MiB of spaces, whose length the response says or not, and counts
// what is taken from it.
func endless(t *testing.T, status int, says bool) (*tables.Account, *atomic.Int64) {
	t.Helper()
	var taken atomic.Int64
	block := []byte(strings.Repeat(" ", 1<<20))
	const blocks = 160
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Date", "Mon, 01 Jan 2024 00:00:00 GMT")
		w.Header().Set("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
		if says {
			w.Header().Set("Content-Length", strconv.Itoa(blocks*len(block)))
		}
		w.WriteHeader(status)
		for range blocks {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	// What the program reads counts, and not what the service sends: how much of that buffers hold depends on the machine's load.
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		return &countedConn{c, &taken}, err
	}}
	t.Cleanup(transport.CloseIdleConnections)
	a := server.URL + "/contoso"
	return assert.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(tables.Endpoints{Table: a, Queue: a, Blob: a}, "contoso", "a2V5",
		&tables.AccountOptions{ClientOptions: azcore.ClientOptions{Transport: &http.Client{Transport: transport}, Retry: policy.RetryOptions{MaxRetries: -1}}})), &taken
}

// countedConn counts the bytes that are read from a connection.
type countedConn struct {
	net.Conn
	read *atomic.Int64
}

func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read.Add(int64(n))
	return n, err
}

// TestEndlessResponses: a program holds no response of any length in memory, whatever the response says of its length: not of an entity, a
// page, messages or a listing; of a blob that is read as a whole at most what its kind may have; and of an error no more either.
func TestEndlessResponses(t *testing.T) {
	type thing struct {
		tables.Meta
		Team string
	}
	// An upsert whose outcome is unknown reads the row.
	for _, status := range []int{http.StatusOK, http.StatusNotFound, http.StatusConflict} {
		for _, says := range []bool{true, false} {
			a, taken := endless(t, status, says)
			c := blobstorage.Container(a, "things")
			queue := assert.Must[*eventual.Queue](t)(eventual.NewQueue(a, "things", nil))
			things := assert.Must[*patterns.Repository[thing]](t)(patterns.NewRepository(a.Table("Things"), patterns.Schema[thing]{
				Key: func(v *thing) tables.Key { return tables.Key{Partition: "p", Row: v.Team} }}))
			series := assert.Must[*dataseries.Series[int64]](t)(dataseries.New[int64](a.Table("Things"), "load", 24, &dataseries.Options{Container: c}))
			log := assert.Must[*logdata.Log](t)(logdata.New(c, "web", nil))
			for what, c := range map[string]struct {
				most int64 // MiB
				read func(ctx context.Context) error
			}{
				"an entity":       {64, func(ctx context.Context) error { return second(things.Get(ctx, tables.Key{Partition: "p", Row: "r"})) }},
				"a page":          {64, func(ctx context.Context) error { return second(things.Query().Partition("p").Page(ctx, "")) }},
				"messages":        {64, func(ctx context.Context) error { return second(queue.Poison().Peek(ctx, 1)) }},
				"an archived one": {32, func(ctx context.Context) error { return second(archive.Read[thing](ctx, c, "blob")) }},
				"a series": {16, func(ctx context.Context) error {
					return second(series.Read(ctx, tables.Key{Partition: "p", Row: "load_s"}))
				}},
				"a listing":       {64, func(ctx context.Context) error { return second(encryption.UsesInBlobs(ctx, c, "")) }},
				"a log's listing": {64, func(ctx context.Context) error { return logOf(ctx, log) }},
				"an upsert": {128, func(ctx context.Context) error {
					return a.Table("Things").Entities().Upsert(ctx, &tables.Entity{Key: tables.Key{Partition: "p", Row: "r"}})
				}},
				"a table's making": {64, func(ctx context.Context) error { return a.Table("Things").Create(ctx) }},
			} {
				t.Run(fmt.Sprintf("%s, status %d, says its length %v", what, status, says), func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					taken.Store(0)
					err := c.read(ctx)
					if status != http.StatusOK {
						c.most = 2
					}
					if n := taken.Load() >> 20; n > c.most+1 { // the connection's buffer takes some more
						t.Errorf("%d MiB were taken, at most %d are to be; %v", n, c.most, err)
					}
					if err == nil || status == http.StatusOK && !errors.Is(err, tables.ErrGarbled) && !errors.Is(err, tables.ErrUnknownOutcome) {
						t.Errorf("%v", err)
					}
				})
			}
		}
	}
}

// logOf reads the first record of a log.
func logOf(ctx context.Context, log *logdata.Log) error {
	for _, err := range log.Query(ctx, time.Unix(0, 0), time.Unix(3600, 0), nil) {
		return err
	}
	return io.EOF
}

// TestTooLargeToBeReadAgain: what could not be read again is refused before it is written: a series in a blob, and an entity with a value of
// a blob that is to be archived; nothing is lost.
func TestTooLargeToBeReadAgain(t *testing.T) {
	type note struct {
		tables.Meta
		ID   string
		Text []byte
	}
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	a := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
	c, table := blobstorage.Container(a, "things"), a.Table("Things")
	assert.Check(t, second(c.Create(ctx, nil)), table.Create(ctx))
	queue := assert.Must[*eventual.Queue](t)(eventual.NewQueue(a, "things", nil))
	assert.Check(t, queue.Create(ctx))

	series := assert.Must[*dataseries.Series[string]](t)(dataseries.New[string](table, "load", 600, &dataseries.Options{Container: c}))
	key := tables.Key{Partition: "p", Row: "s"}
	assert.Check(t, series.Set(ctx, key, 0, "first"))
	values := map[int]string{}
	for slot := range 600 {
		values[slot] = strings.Repeat("x", 30_000)
	}
	if err := series.SetMany(ctx, key, values); !errors.Is(err, tables.ErrTooLarge) {
		t.Errorf("a series of 18 MB: %v", err)
	}
	read := assert.Must[*dataseries.Values[string]](t)(series.Read(ctx, key))
	if all := read.Fill("gap"); all[0] != "first" || all[1] != "gap" {
		t.Errorf("the series begins with %q", all[:2])
	}

	notes := assert.Must[*patterns.Repository[note]](t)(patterns.NewRepository(harness.In(table, queue), patterns.Schema[note]{
		Key: func(n *note) tables.Key { return tables.Key{Partition: "notes", Row: n.ID} }},
		largeentities.NewProperty[note]("Text", c, nil)))
	n := &note{ID: "1", Text: make([]byte, 30<<20)}
	assert.Check(t, notes.Insert(ctx, n))
	mover := assert.Must[*archive.Mover[note]](t)(archive.New(queue, "archive", notes, archive.ToContainer(c, func(n *note) string { return "archive/" + n.ID }), nil))
	if err := mover.Move(ctx, n); !errors.Is(err, tables.ErrTooLarge) {
		t.Errorf("an entity of 40 MiB as JSON: %v", err)
	}
	if got := assert.Must[*note](t)(notes.Get(ctx, tables.Key{Partition: "notes", Row: "1"})); len(got.Text) != len(n.Text) {
		t.Errorf("the entity has %d bytes", len(got.Text))
	}
}
