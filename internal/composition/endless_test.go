package composition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/dataseries"
	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/eventual/archive"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/logdata"
	"github.com/tablepatterns/tablepatterns/patterns"
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
			n, err := w.Write(block)
			taken.Add(int64(n))
			if err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	a := server.URL + "/contoso"
	return harness.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(tables.Endpoints{Table: a, Queue: a, Blob: a}, "contoso", "a2V5",
		&tables.AccountOptions{ClientOptions: azcore.ClientOptions{Transport: &http.Client{Transport: transport}, Retry: policy.RetryOptions{MaxRetries: -1}}})), &taken
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
			c, team := a.Container("things"), compoundkey.String("red")
			index := indexentities.NewInBlobs("team", func(v *thing) compoundkey.Part { return compoundkey.String(v.Team) }, c, nil)
			queue := harness.Must[*eventual.Queue](t)(eventual.NewQueue(a, "things", nil))
			things := harness.Must[*patterns.Repository[thing]](t)(patterns.NewRepository(harness.In(a.Table("Things"), queue), patterns.Schema[thing]{
				Key: func(v *thing) tables.Key { return tables.Key{Partition: "p", Row: v.Team} }}, index))
			series := harness.Must[*dataseries.Series[int64]](t)(dataseries.New[int64](a.Table("Things"), "load", 24, &dataseries.Options{Container: c}))
			log := harness.Must[*logdata.Log](t)(logdata.New(c, "web", nil))
			for what, c := range map[string]struct {
				most int64 // MiB
				read func(ctx context.Context) error
			}{
				"an entity":       {64, func(ctx context.Context) error { return second(things.Get(ctx, tables.Key{Partition: "p", Row: "r"})) }},
				"a page":          {64, func(ctx context.Context) error { return second(things.Query().Partition("p").Page(ctx, "")) }},
				"messages":        {64, func(ctx context.Context) error { return second(queue.Poison().Peek(ctx, 1)) }},
				"an archived one": {32, func(ctx context.Context) error { return second(archive.Read[thing](ctx, c, "blob")) }},
				"a list":          {16, func(ctx context.Context) error { return second(index.Keys(ctx, team)) }},
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
					if n := taken.Load() >> 20; n > c.most+16 { // the connection's buffers take some more
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
