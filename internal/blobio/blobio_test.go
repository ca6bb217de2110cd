package blobio_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/blobio"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/kinds"
)

// listing is a service that gives one response to every request.
type listing string

func (l listing) Do(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/xml"}}, Body: io.NopCloser(strings.NewReader(string(l))), Request: req}, nil
}

// TestCheckName: the limits of names, in UTF-16 units and segments.
func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{
		strings.Repeat("a", 1024): true, strings.Repeat("a", 1025): false, strings.Repeat("é", 1024): true, strings.Repeat("é", 1025): false,
		strings.Repeat("😊", 512): true, strings.Repeat("😊", 512) + "a": false, strings.Repeat("a/", 253) + "a": true, strings.Repeat("a/", 254) + "a": false,
	} {
		err := blobio.CheckName(name)
		if _, tooLong := errors.AsType[*edm.SizeError](err); (err == nil) != ok || tooLong == ok {
			t.Errorf("%.20q, %d bytes: %v", name, len(name), err)
		}
	}
}

// TestList: a listing that has lost its list of blobs is no empty container.
func TestList(t *testing.T) {
	for body, want := range map[string]struct {
		names   string
		garbled bool
	}{
		`<EnumerationResults><Blobs><Blob><Name>a</Name></Blob><Blob><Name>b</Name></Blob></Blobs><NextMarker /></EnumerationResults>`: {names: "a b "},
		`<EnumerationResults><Blobs /><NextMarker /></EnumerationResults>`:                                                             {},
		`<EnumerationResults><NextMarker /></EnumerationResults>`:                                                                      {garbled: true},
	} {
		client, err := container.NewClientWithNoCredential("https://contoso.example/names", &container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: listing(body)}})
		assert.Check(t, err)
		names, garbled := "", false
		for item, err := range blobio.List(t.Context(), client, "", container.ListBlobsInclude{}) {
			if err != nil {
				garbled = errors.Is(err, kinds.ErrCutOff)
				continue
			}
			names += *item.Name + " "
		}
		if names != want.names || garbled != want.garbled {
			t.Errorf("%s: %q, garbled: %v", body, names, garbled)
		}
	}
}
