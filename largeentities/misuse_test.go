package largeentities_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// encrypting is a pattern that encrypts the photo.
type encrypting struct{}

func (encrypting) Attach(driver.Host, *employee) (driver.Implementation, error) {
	return driver.Implementation{Name: "secret", Transform: &driver.Transform{
		Stage:      driver.StageEncrypt,
		Filterable: func(property string) bool { return property != "Photo" },
		Store: func(_ context.Context, _ *driver.Change, p tables.Properties) (tables.Properties, error) {
			return p, nil
		},
		Load: func(_ context.Context, _ driver.Reading, p tables.Properties) (tables.Properties, error) {
			return p, nil
		},
	}}, nil
}

// TestMisuse: what cannot work is refused before any request.
func TestMisuse(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	w := (&world{}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	photo := func(o largeentities.Options) patterns.Pattern[employee] {
		return largeentities.NewProperty[employee]("Photo", p.blobs, &o)
	}
	other := func(_ *employee) *largeentities.Stream { return &largeentities.Stream{} }
	for name, attached := range map[string][]patterns.Pattern[employee]{
		"no container":     {largeentities.NewProperty[employee]("Photo", nil, nil)},
		"no such property": {largeentities.NewProperty[employee]("Picture", p.blobs, nil)},
		"a number":         {largeentities.NewProperty[employee]("ID", p.blobs, nil)},
		"another field":    {largeentities.NewStream("Video", other, p.blobs, nil)},
		"no field":         {largeentities.NewStream[employee]("Video", nil, p.blobs, nil)},
		"used already":     {p.photo},
		"encrypted":        {photo(largeentities.Options{}), encrypting{}},
		"threshold":        {photo(largeentities.Options{Threshold: tables.MaxBinarySize + 1})},
		"max value":        {photo(largeentities.Options{MaxValue: 1})},
		"block size":       {photo(largeentities.Options{BlockSize: -1})},
		"concurrency":      {photo(largeentities.Options{Concurrency: 1000})},
		"deadline":         {photo(largeentities.Options{Deadline: time.Millisecond})},
		"prefix":           {photo(largeentities.Options{Prefix: "a//b"})},
		"prefix with dots": {photo(largeentities.Options{Prefix: "../b"})},
		"prefix, space":    {photo(largeentities.Options{Prefix: "a b"})},
		"content type":     {photo(largeentities.Options{ContentType: "a\r\nb"})},
	} {
		_, err := patterns.NewRepository(p.account.Table(w.table), patterns.Schema[employee]{Name: name, Key: keyOf, Prefix: "empid"}, attached...)
		if !errors.Is(err, tables.ErrWiring) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestForeignClient: a client of somebody else's is not held to the lease, and is refused; so is a container that is not there.
func TestForeignClient(t *testing.T) {
	ctx, s := context.Background(), storagetest.Simulator(t, nil)
	w := (&world{}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	foreign := assert.Must[*container.Client](t)(container.NewClientFromConnectionString(s.ConnectionString, w.container, &container.ClientOptions{ClientOptions: s.ClientOptions}))
	for name, c := range map[string]*container.Client{"foreign": foreign, "missing": blobstorage.Container(p.account, "missing-container")} {
		repo, err := patterns.NewRepository(p.account.Table(w.table), patterns.Schema[employee]{Name: name, Key: keyOf, Prefix: "empid"},
			largeentities.NewProperty[employee]("Photo", c, &largeentities.Options{Threshold: -1}))
		ok(t, err)
		e := with(1)
		e.Photo = large("a")
		if err := repo.Insert(ctx, e); !errors.Is(err, map[string]error{"foreign": tables.ErrWiring, "missing": tables.ErrMissingResource}[name]) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := repo.Get(ctx, at(1)); !errors.Is(err, tables.ErrNotFound) {
			t.Errorf("%s was written: %v", name, err)
		}
	}
}

// delegation is a blob service that gives a user delegation key, and the metadata of blobs, which it reads with another client.
type delegation struct {
	inner policy.Transporter
	blobs *container.Client
}

func (d delegation) Do(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodHead {
		_, name, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
		there, err := d.blobs.NewBlobClient(name).GetProperties(req.Context(), nil)
		if err != nil {
			return nil, err
		}
		header := http.Header{"Etag": {string(*there.ETag)}}
		for name, value := range there.Metadata {
			header.Set("X-Ms-Meta-"+name, *value)
		}
		return &http.Response{StatusCode: http.StatusOK, Header: header, Body: http.NoBody, Request: req}, nil
	}
	if req.URL.Query().Get("comp") != "userdelegationkey" {
		return d.inner.Do(req)
	}
	body := `<?xml version="1.0"?><UserDelegationKey><SignedOid>o</SignedOid><SignedTid>t</SignedTid><SignedStart>2026-01-01T00:00:00Z</SignedStart>` +
		`<SignedExpiry>2036-01-01T00:00:00Z</SignedExpiry><SignedService>b</SignedService><SignedVersion>2024-11-04</SignedVersion><Value>a2V5</Value></UserDelegationKey>`
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/xml"}}, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
}

type bearer struct{}

func (bearer) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "t", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// TestDelegatedURL: without a shared key the service signs; without either, nothing does.
func TestDelegatedURL(t *testing.T) {
	ctx, s := context.Background(), storagetest.Simulator(t, nil)
	w := (&world{}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	e := with(1)
	e.Photo = large("a")
	ok(t, p.repo.Insert(ctx, e))
	options := s.ClientOptions
	options.Transport = delegation{options.Transport, p.blobs}
	endpoint := func(u string) string { return strings.Replace(u, "http://", "https://", 1) }
	account := assert.Must[*tables.Account](t)(tables.NewAccount(tables.Endpoints{Table: endpoint(s.TableEndpoint), Queue: endpoint(s.QueueEndpoint), Blob: endpoint(s.BlobEndpoint)},
		bearer{}, &tables.AccountOptions{ClientOptions: options}))
	signed := assert.Must[*tables.Account](t)(tables.NewAccountWithSAS(account.Endpoints(), "sv=2026-01-01&sig=x", &tables.AccountOptions{ClientOptions: options}))
	for name, o := range map[string]*largeentities.Options{"service": {Account: account}, "nobody": {Account: signed}, "another": nil} {
		x := largeentities.NewProperty[employee]("Photo", blobstorage.Container(account, w.container), o)
		if name == "another" {
			x = largeentities.NewProperty[employee]("Photo", blobstorage.Container(assert.Must[*tables.Account](t)(tables.NewAccount(tables.AccountEndpoints("fabrikam"), bearer{}, nil)), w.container), nil)
		}
		_, err := patterns.NewRepository(p.account.Table(w.table), patterns.Schema[employee]{Name: name, Key: keyOf, Prefix: "empid"}, x)
		ok(t, err)
		address, err := x.SignedURL(ctx, at(1), time.Now().Add(time.Hour))
		if name != "service" {
			if !errors.Is(err, tables.ErrWiring) {
				t.Errorf("%s signs: %v", name, err)
			}
			continue
		}
		ok(t, err)
		query := assert.Must[*url.URL](t)(url.Parse(address)).Query()
		if query.Get("skoid") != "o" || query.Get("sp") != "r" || query.Get("sr") != "b" || query.Get("spr") != "https" || query.Get("sig") == "" {
			t.Errorf("the address has %v", query)
		}
	}
}
