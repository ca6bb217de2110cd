package logdata_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/logdata"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// noon is when the tests' records happen.
func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

func containerOf(s *storagetest.Service, name string) (*container.Client, error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	return blobstorage.Container(account, name), nil
}

// newContainer makes a container of the service.
func newContainer(t testing.TB, s *storagetest.Service) string {
	t.Helper()
	name := s.ContainerName(t)
	assert.Check(t, assert.Err(assert.Must[*container.Client](t)(containerOf(s, name)).Create(t.Context(), nil)))
	return name
}

// openLog opens the log that the tests write, with a client of the service's own.
func openLog(s *storagetest.Service, containerName string, o *logdata.Options) (*logdata.Log, error) {
	c, err := containerOf(s, containerName)
	if err != nil {
		return nil, err
	}
	return logdata.New(c, "web", o)
}

func newLog(t testing.TB, s *storagetest.Service, o *logdata.Options) *logdata.Log {
	t.Helper()
	return assert.Must[*logdata.Log](t)(openLog(s, newContainer(t, s), o))
}

// newWriter makes a writer that is closed with the test.
func newWriter(t testing.TB, l *logdata.Log, o *logdata.WriterOptions) *logdata.Writer {
	t.Helper()
	w := assert.Must[*logdata.Writer](t)(l.NewWriter(o))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		assert.Check(t, w.Close(ctx))
	})
	return w
}

func record(at time.Time, text string) logdata.Record {
	return logdata.Record{Time: at, Data: []byte(text)}
}

// day is the range of the tests' records.
func day() (time.Time, time.Time) {
	from := noon().Truncate(24 * time.Hour)
	return from, from.Add(24 * time.Hour)
}

// read returns the texts of a query.
func read(ctx context.Context, l *logdata.Log, from, to time.Time) ([]string, error) {
	var all []string
	for r, err := range l.Query(ctx, from, to, nil) {
		if err != nil {
			return all, err
		}
		all = append(all, string(r.Data))
	}
	return all, nil
}

func readDay(t testing.TB, l *logdata.Log) []string {
	t.Helper()
	from, to := day()
	return assert.Must[[]string](t)(read(t.Context(), l, from, to))
}

func blobsOf(t testing.TB, l *logdata.Log) []logdata.Blob {
	t.Helper()
	var all []logdata.Blob
	from, to := day()
	for b, err := range l.Blobs(t.Context(), from, to) {
		assert.Check(t, err)
		all = append(all, b)
	}
	return all
}

func names(blobs []logdata.Blob) []string {
	var all []string
	for _, b := range blobs {
		all = append(all, b.Name)
	}
	return all
}

func numbered(prefix string, n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("%s%d", prefix, i))
	}
	return all
}

func wantTexts(t testing.TB, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %d\n%s\nwant %d\n%s", len(got), strings.Join(got, "\n"), len(want), strings.Join(want, "\n"))
	}
}
