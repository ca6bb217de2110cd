package blobs

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/google/go-cmp/cmp"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator/environment"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// testBlobs is a blob service with an SDK client on it.
type testBlobs struct {
	probe.Service
	service *Service
	clock   *environment.Clock
	chaos   *environment.Chaos
	client  *azblob.Client
}

func newTestBlobs(t *testing.T, seed uint64) *testBlobs {
	t.Helper()
	b := &testBlobs{clock: environment.NewClock(probe.Start()), chaos: &environment.Chaos{}}
	b.service = New(nil, b.clock, environment.NewDice(seed), b.chaos)
	b.Service = b.service.Serve
	client, err := azblob.NewClientWithNoCredential("http://contoso.sim.test/", &azblob.ClientOptions{ClientOptions: b.Options()})
	assert.Check(t, err)
	b.client = client
	return b
}

// container creates the container that most tests use.
func (b *testBlobs) container(t *testing.T) *container.Client {
	t.Helper()
	c := b.client.ServiceClient().NewContainerClient("photos")
	assert.Check(t, assert.Err(c.Create(probe.Context(t), nil)))
	return c
}

// putRaw puts a block blob.
func (b *testBlobs) putRaw(t *testing.T, name, body string) *protocol.Answer {
	t.Helper()
	return b.Want(t, probe.Call{Method: "PUT", Target: "/photos/" + name, Body: body,
		Header: map[string]string{"x-ms-blob-type": "BlockBlob"}}, 201, "")
}

func TestContainerNames(t *testing.T) {
	for name, code := range map[string]string{
		"abc":                   "",
		"ab":                    "OutOfRangeInput",
		strings.Repeat("a", 63): "",
		strings.Repeat("a", 64): "OutOfRangeInput",
		"a--b":                  "InvalidResourceName",
		"ABC":                   "InvalidResourceName",
		"$root":                 "",
		"$other":                "InvalidResourceName",
	} {
		status := map[bool]int{true: 201, false: 400}[code == ""]
		newTestBlobs(t, 1).Want(t, probe.Call{Method: "PUT", Target: "/" + name + "?restype=container"}, status, code)
	}
}

func TestContainerLife(t *testing.T) {
	ctx, b := probe.Context(t), newTestBlobs(t, 1)
	photos := b.client.ServiceClient().NewContainerClient("photos")
	probe.WantError(t, assert.Err(photos.GetProperties(ctx, nil)), 404, "ContainerNotFound")
	created, err := photos.Create(ctx, &container.CreateOptions{Metadata: map[string]*string{"Region": to.Ptr("eu")}})
	assert.Check(t, err)
	probe.WantError(t, assert.Err(photos.Create(ctx, nil)), 409, "ContainerAlreadyExists")
	got := assert.Must[container.GetPropertiesResponse](t)(photos.GetProperties(ctx, nil))
	if *got.ETag != *created.ETag || !got.LastModified.Equal(probe.Start()) || *got.Metadata["Region"] != "eu" {
		t.Errorf("properties %v %v %v", *got.ETag, *got.LastModified, got.Metadata)
	}
	b.putRaw(t, "a", "x")
	if again, err := photos.GetProperties(ctx, nil); err != nil || *again.ETag != *got.ETag {
		t.Errorf("a blob's change changed the container: %v, %v", *again.ETag, err)
	}

	assert.Check(t, assert.Err(photos.Delete(ctx, nil)))
	probe.WantError(t, assert.Err(photos.Delete(ctx, nil)), 404, "ContainerNotFound")
	b.Want(t, probe.Call{Method: "GET", Target: "/photos/a"}, 404, "ContainerNotFound")
	b.clock.Advance(deleteDelay - time.Microsecond)
	probe.WantError(t, assert.Err(photos.Create(ctx, nil)), 409, "ContainerBeingDeleted")
	b.clock.Advance(time.Microsecond)
	assert.Check(t, assert.Err(photos.Create(ctx, nil)))
	b.Want(t, probe.Call{Method: "GET", Target: "/photos/a"}, 404, "BlobNotFound")
}

func TestContainerConditions(t *testing.T) {
	ctx, b := probe.Context(t), newTestBlobs(t, 1)
	photos := b.container(t)
	early, late := probe.Start().Add(-time.Second), probe.Start().Add(time.Second)
	deleteIf := func(c container.ModifiedAccessConditions) error {
		_, err := photos.Delete(ctx, &container.DeleteOptions{AccessConditions: &container.AccessConditions{ModifiedAccessConditions: &c}})
		return err
	}
	probe.WantError(t, deleteIf(container.ModifiedAccessConditions{IfUnmodifiedSince: &early}), 412, "ConditionNotMet")
	probe.WantError(t, deleteIf(container.ModifiedAccessConditions{IfModifiedSince: &late}), 412, "ConditionNotMet")
	assert.Check(t, deleteIf(container.ModifiedAccessConditions{IfUnmodifiedSince: &late}))
}

func TestContainerMetadataAndPolicies(t *testing.T) {
	ctx, b := probe.Context(t), newTestBlobs(t, 1)
	photos := b.container(t)
	before := assert.Must[container.GetPropertiesResponse](t)(photos.GetProperties(ctx, nil))
	assert.Check(t, assert.Err(photos.SetMetadata(ctx, &container.SetMetadataOptions{Metadata: map[string]*string{"a": to.Ptr("1")}})))
	after := assert.Must[container.GetPropertiesResponse](t)(photos.GetProperties(ctx, nil))
	if *after.Metadata["A"] != "1" || *after.ETag == *before.ETag {
		t.Errorf("metadata %v, ETag %v after %v", after.Metadata, *after.ETag, *before.ETag)
	}
	_, err := photos.SetAccessPolicy(ctx, &container.SetAccessPolicyOptions{ContainerACL: []*container.SignedIdentifier{
		{ID: to.Ptr("r"), AccessPolicy: &container.AccessPolicy{Permission: to.Ptr("r")}}}})
	assert.Check(t, err)
	got := assert.Must[container.GetAccessPolicyResponse](t)(photos.GetAccessPolicy(ctx, nil))
	if len(got.SignedIdentifiers) != 1 || *got.SignedIdentifiers[0].AccessPolicy.Permission != "r" {
		t.Errorf("policies %v", got.SignedIdentifiers)
	}
	if p, ok := b.service.Policy("photos", "r"); !ok || p.Permission != "r" {
		t.Errorf("policy %v %v", p, ok)
	}
	if _, ok := b.service.Policy("others", "r"); ok {
		t.Error("a policy of a container that does not exist")
	}
	for name, rule := range probe.MetadataRules() {
		t.Run(name, func(t *testing.T) {
			status := map[bool]int{true: 200, false: 400}[rule.Code == ""]
			b.Want(t, probe.Call{Method: "PUT", Target: "/photos?restype=container&comp=metadata", Header: rule.Header}, status, rule.Code)
		})
	}
}

func TestContainerList(t *testing.T) {
	b := newTestBlobs(t, 1)
	for _, name := range []string{"north-2", "south", "north-1"} {
		_, err := b.client.CreateContainer(probe.Context(t), name, &azblob.CreateContainerOptions{Metadata: map[string]*string{"a": to.Ptr(name)}})
		assert.Check(t, err)
	}
	var got []string
	pager := b.client.NewListContainersPager(&azblob.ListContainersOptions{Prefix: to.Ptr("north"), MaxResults: to.Ptr(int32(1)),
		Include: azblob.ListContainersInclude{Metadata: true}})
	pages := 0
	for ; pager.More(); pages++ {
		page := assert.Must[azblob.ListContainersResponse](t)(pager.NextPage(probe.Context(t)))
		for _, item := range page.ContainerItems {
			got = append(got, *item.Name+"="+*item.Metadata["a"])
			if item.Properties.ETag == nil || !item.Properties.LastModified.Equal(probe.Start()) {
				t.Errorf("properties of %s: %v", *item.Name, item.Properties)
			}
		}
	}
	if diff := cmp.Diff([]string{"north-1=north-1", "north-2=north-2"}, got); diff != "" || pages != 2 {
		t.Errorf("%d pages: %s", pages, diff)
	}
}

func TestBlobRefusals(t *testing.T) {
	b := newTestBlobs(t, 1)
	b.container(t)
	b.putRaw(t, "a", "x")
	with := func(name, value string) map[string]string { return map[string]string{name: value} }
	block := with("x-ms-blob-type", "BlockBlob")
	for name, test := range map[string]struct {
		call   probe.Call
		status int
		code   string
	}{
		"no container":        {probe.NewCall("GET", "/others/a", nil, ""), 404, "ContainerNotFound"},
		"no blob":             {probe.NewCall("GET", "/photos/b", nil, ""), 404, "BlobNotFound"},
		"no blob, HEAD":       {probe.NewCall("HEAD", "/photos/b", nil, ""), 404, "BlobNotFound"},
		"no blob to delete":   {probe.NewCall("DELETE", "/photos/b", nil, ""), 404, "BlobNotFound"},
		"no blob to set":      {probe.NewCall("PUT", "/photos/b?comp=metadata", nil, ""), 404, "BlobNotFound"},
		"no restype":          {probe.NewCall("PUT", "/photos", nil, ""), 400, "InvalidQueryParameterValue"},
		"no such resource":    {probe.NewCall("GET", "/photos/a?comp=pagelist", nil, ""), 400, "InvalidQueryParameterValue"},
		"verb":                {probe.NewCall("POST", "/photos/a", nil, ""), 405, "UnsupportedHttpVerb"},
		"container's verb":    {probe.NewCall("POST", "/photos?restype=container", nil, ""), 405, "UnsupportedHttpVerb"},
		"no type":             {probe.NewCall("PUT", "/photos/b", nil, "x"), 400, "MissingRequiredHeader"},
		"page blob":           {probe.NewCall("PUT", "/photos/b", with("x-ms-blob-type", "PageBlob"), ""), 400, "InvalidHeaderValue"},
		"append with content": {probe.NewCall("PUT", "/photos/b", with("x-ms-blob-type", "AppendBlob"), "x"), 400, "InvalidHeaderValue"},
		"other type":          {probe.NewCall("PUT", "/photos/a", with("x-ms-blob-type", "AppendBlob"), ""), 409, "InvalidBlobType"},
		"append to a block":   {probe.NewCall("PUT", "/photos/a?comp=appendblock", nil, "x"), 409, "InvalidBlobType"},
		"tags":                {probe.NewCall("GET", "/photos/a", with("x-ms-if-tags", "x"), ""), 400, "UnsupportedHeader"},
		"version":             {probe.NewCall("GET", "/photos/a?versionid=x", nil, ""), 400, "UnsupportedQueryParameter"},
		"snapshots listed":    {probe.NewCall("GET", "/photos?restype=container&comp=list&include=snapshots", nil, ""), 400, "UnsupportedQueryParameter"},
		"no snapshot":         {probe.NewCall("GET", "/photos/a?snapshot=x", nil, ""), 404, "BlobNotFound"},
		"lease":               {probe.NewCall("PUT", "/photos/a?comp=metadata", with("x-ms-lease-id", "x"), ""), 412, "LeaseNotPresentWithBlobOperation"},
		"1,024 units":         {probe.NewCall("PUT", "/photos/"+strings.Repeat("%C3%A9", 1024), block, ""), 201, ""},
		"1,025 units":         {probe.NewCall("PUT", "/photos/"+strings.Repeat("%C3%A9", 1025), block, ""), 400, "OutOfRangeInput"},
		"512 of two units":    {probe.NewCall("PUT", "/photos/"+strings.Repeat("%F0%9F%98%8A", 512), block, ""), 201, ""},
		"513 of two units":    {probe.NewCall("PUT", "/photos/"+strings.Repeat("%F0%9F%98%8A", 513), block, ""), 400, "OutOfRangeInput"},
		"since what":          {probe.NewCall("GET", "/photos/a", with("If-Modified-Since", "yesterday"), ""), 400, "InvalidHeaderValue"},
		"list by number":      {probe.NewCall("GET", "/photos?restype=container&comp=list&maxresults=0", nil, ""), 400, "OutOfRangeQueryParameterValue"},
		"list from where":     {probe.NewCall("GET", "/photos?restype=container&comp=list&marker=x", nil, ""), 400, "InvalidQueryParameterValue"},
	} {
		t.Run(name, func(t *testing.T) { b.Want(t, test.call, test.status, test.code) })
	}
}

func readSeeker(text string) io.ReadSeekCloser { return nopCloser{strings.NewReader(text)} }

type nopCloser struct{ io.ReadSeeker }

// Close does nothing: there is nothing to close.
func (nopCloser) Close() error { return nil }
