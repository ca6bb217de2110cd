package tables_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/eventual/archive"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/blobio"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// endless is a body of spaces without end, and counts what was taken.
type endless struct{ taken int64 }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.taken += int64(len(p))
	return len(p), nil
}

// TestEndlessResponses: of a response, a refusal, an archived entity, and a blob of a list or a series, no more is read than the limit of
// its kind, and nothing if the response says that it is longer.
func TestEndlessResponses(t *testing.T) {
	get := func(ctx context.Context, a *tables.Account) error {
		_, err := a.Table("Notes").Entities().Get(ctx, tables.Key{Partition: "p", Row: "r"})
		return err
	}
	for name, tc := range map[string]struct {
		status int
		limit  int64
		read   func(context.Context, *tables.Account) error
	}{
		"entity":  {http.StatusOK, 64 << 20, get},
		"refusal": {http.StatusBadRequest, 1 << 20, get},
		"archived entity": {http.StatusOK, 32 << 20, func(ctx context.Context, a *tables.Account) error {
			_, err := archive.Read[tables.Entity](ctx, blobstorage.Container(a, "archive"), "blob")
			return err
		}},
		"list or series": {http.StatusOK, 16 << 20, func(ctx context.Context, a *tables.Account) error {
			_, err := blobio.Read(ctx, blobstorage.Container(a, "lists"), "blob")
			return err
		}},
	} {
		for said, most := range map[int64]int64{-1: tc.limit + 1<<12, tc.limit + 1: 0} {
			body := &endless{}
			transport := harness.Transport(func(req *http.Request) (*http.Response, error) {
				header := http.Header{"Etag": {`"1"`}}
				if said > 0 {
					header.Set("Content-Length", strconv.FormatInt(said, 10)) // the SDK reads a blob's length here
				}
				return &http.Response{StatusCode: tc.status, ContentLength: said, Body: io.NopCloser(body), Header: header, Request: req}, nil
			})
			a := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString("AccountName=contoso;AccountKey=Q0FOQVJZS0VZQ0FOQVJZS0VZ;EndpointSuffix=core.windows.net",
				&tables.AccountOptions{ClientOptions: azcore.ClientOptions{Transport: transport, Retry: policy.RetryOptions{MaxRetries: -1}}}))
			if err := tc.read(t.Context(), a); err == nil || !strings.Contains(err.Error(), "longer than") || body.taken > most {
				t.Errorf("%s, said to be of %d bytes: %d bytes were taken, %v", name, said, body.taken, err)
			}
		}
	}
}
