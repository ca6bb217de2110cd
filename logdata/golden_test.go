package logdata_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/logdata"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// TestGoldenBlob pins what is stored: name, content and metadata of a blob, while it is written and when it is final.
func TestGoldenBlob(t *testing.T) {
	s := storagetest.Open(t)
	name := newContainer(t, s)
	l := assert.Must[*logdata.Log](t)(openLog(s, name, nil))
	c := assert.Must[*container.Client](t)(containerOf(s, name))
	w := newWriter(t, l, nil)
	at := noon().Add(7*time.Minute + 123456789)
	assert.Check(t, w.Write(t.Context(), record(at, "one")), w.Write(t.Context(), record(at.Add(-time.Second), "1 s late\n")))
	const golden = "web/2026/11/20/1200/000001.log"
	want := "\x1e2026-11-20T12:07:00.123456789Z 3 287e4e3b one\n" + "\x1e2026-11-20T12:06:59.123456789Z 9 11ab6df0 1 s late\n\n"
	assert.Equal(t, string(contentOf(t, c, golden)), want, "the blob")
	wantMetadata(t, c, golden, "tpdisorder=2000", "tpfirst=2026-11-20T12:06:58.123456789Z", "tpformat=1", "tpperiod=10")
	assert.Check(t, w.Close(t.Context()))
	wantMetadata(t, c, golden, "tpdisorder=2000", "tpfirst=2026-11-20T12:06:59.123456789Z", "tpformat=1", "tplast=2026-11-20T12:07:00.123456789Z", "tpperiod=10", "tprecords=2")
}

// wantMetadata checks them all but for the random id.
func wantMetadata(t *testing.T, c *container.Client, name string, want ...string) {
	t.Helper()
	properties := assert.Must[blob.GetPropertiesResponse](t)(c.NewBlobClient(name).GetProperties(t.Context(), nil))
	var got []string
	for key, value := range properties.Metadata {
		if key = strings.ToLower(key); key != "tpwriter" {
			got = append(got, fmt.Sprintf("%s=%s", key, *value))
		} else if len(*value) != 26 {
			t.Errorf("tpwriter %q", *value)
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("metadata\n%q, want\n%q", got, want)
	}
}
