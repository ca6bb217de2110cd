// Package conformance holds one suite that runs on the simulator, on Azurite as it is, on Azurite behind Strict, and, when
// AZURE_STORAGE_CONNECTION_STRING names one, on an account. Every case is a script of raw requests. What the answers say is
// compared field by field with what the simulator says; where Azurite says something else, differences_test.go has to
// declare it, with the reason, and a declaration that nothing needs any more fails the suite.
package conformance

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// The names of the targets; differences are declared for them.
const (
	onSimulator = "simulator"
	onAzurite   = "azurite"
	onStrict    = "strict"
	onAccount   = "account"
)

// target is a service that the suite runs on.
type target struct {
	name string
	*storagetest.Service
	// open makes the service of one case. A simulator is a fresh one for each, since time is its own.
	open func(t testing.TB) *storagetest.Service
}

// targets are all there are; the simulator, which the others are compared with, comes first.
func targets(t testing.TB) []target {
	t.Helper()
	storagetest.AzuriteOnly(t) // the simulator with nothing to compare it with is what its own tests run on
	shared := assert.Must[*storagetest.Service](t)(storagetest.Shared())
	bare := *shared
	bare.ClientOptions.Transport = http.DefaultClient
	all := []target{
		{name: onSimulator, open: func(t testing.TB) *storagetest.Service { return storagetest.Simulator(t, nil) }},
		{name: onAzurite, open: func(testing.TB) *storagetest.Service { return &bare }},
		{name: onStrict, open: func(testing.TB) *storagetest.Service { return shared }},
	}
	if os.Getenv(storagetest.ConnectionStringVariable) != "" {
		all = append(all, target{name: onAccount, open: func(t testing.TB) *storagetest.Service { return storagetest.Azurite(t) }})
	}
	return all
}

// The services of an account.
type service int

const (
	tables service = iota
	queues
	blobs
)

func (tg target) endpoint(s service) string {
	return [...]string{tg.TableEndpoint, tg.QueueEndpoint, tg.BlobEndpoint}[s]
}

// version is the one that the SDK's clients speak.
func (s service) version() string {
	return [...]string{"2019-02-02", "2026-04-06", "2026-04-06"}[s]
}

// request is a request before it is signed; headers are names and values in turn, and one with an empty value is not sent.
type request struct {
	service service
	method  string
	path    string // with its query, escaped
	body    string
	headers []string
	signed  bool
}

// send signs a request and returns the answer with its body read.
func (tg target) send(ctx context.Context, r request) (*http.Response, string, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, tg.endpoint(r.service)+r.path, bytes.NewReader([]byte(r.body)))
	if err != nil {
		return nil, "", err
	}
	now := time.Now()
	if tg.Clock != nil {
		now = tg.Clock.Now()
	}
	h := req.Header
	h.Set("x-ms-date", now.UTC().Format(http.TimeFormat))
	h.Set("x-ms-version", r.service.version())
	if r.body == "" {
		req.Body, req.ContentLength = http.NoBody, 0
	} else {
		h.Set("Content-Length", strconv.Itoa(len(r.body)))
	}
	if r.service == tables {
		h.Set("DataServiceVersion", "3.0")
		h.Set("Accept", "application/json;odata=minimalmetadata")
		if r.body != "" {
			h.Set("Content-Type", "application/json")
		}
	}
	for i := 0; i < len(r.headers); i += 2 {
		h.Del(r.headers[i])
		if r.headers[i+1] != "" {
			h.Set(r.headers[i], r.headers[i+1])
		}
	}
	if r.signed {
		tg.sign(r.service, req)
	}
	var transport policy.Transporter = http.DefaultClient
	if tg.ClientOptions.Transport != nil {
		transport = tg.ClientOptions.Transport
	}
	resp, err := transport.Do(req)
	if err != nil {
		var told *url.Error
		if errors.As(err, &told) {
			err = told.Err // without the address, which can hold a signature
		}
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

// sign signs by code of its own, neither the simulator's nor the SDK's: with the account's key, or, where the connection
// string holds a shared access signature instead, with that.
func (tg target) sign(s service, req *http.Request) {
	if tg.AccountKey == "" {
		for part := range strings.SplitSeq(tg.ConnectionString, ";") {
			if sas, ok := strings.CutPrefix(part, "SharedAccessSignature="); ok {
				req.URL.RawQuery = strings.TrimPrefix(req.URL.RawQuery+"&"+strings.TrimPrefix(sas, "?"), "&")
			}
		}
		return
	}
	resource := "/" + tg.AccountName + req.URL.EscapedPath()
	query := req.URL.Query()
	scheme, text := "SharedKey", ""
	if s == tables {
		scheme = "SharedKeyLite"
		text = req.Header.Get("x-ms-date") + "\n" + resource
		if comp := query.Get("comp"); comp != "" {
			text += "?comp=" + comp
		}
	} else {
		h := req.Header
		text = strings.Join([]string{req.Method, h.Get("Content-Encoding"), h.Get("Content-Language"), h.Get("Content-Length"), h.Get("Content-MD5"),
			h.Get("Content-Type"), "", h.Get("If-Modified-Since"), h.Get("If-Match"), h.Get("If-None-Match"), h.Get("If-Unmodified-Since"),
			h.Get("Range"), storageHeaders(h) + resource + storageQuery(query)}, "\n")
	}
	key, _ := base64.StdEncoding.DecodeString(tg.AccountKey)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	req.Header.Set("Authorization", scheme+" "+tg.AccountName+":"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

func storageHeaders(h http.Header) string {
	values := map[string]string{}
	for name := range h {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-ms-") {
			values[lower] = h.Get(name)
		}
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(values)) {
		b.WriteString(name + ":" + values[name] + "\n")
	}
	return b.String()
}

func storageQuery(query url.Values) string {
	var lines []string
	for name, values := range query {
		lines = append(lines, "\n"+strings.ToLower(name)+":"+strings.Join(values, ","))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
