package httpapi_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/httpapi"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestProblems: each kind has its status and a fixed text, which has nothing of the error.
func TestProblems(t *testing.T) {
	secret := errors.New("sig=secret, email june@contoso.com")
	put, get := httptest.NewRequest("PUT", "/x", nil), httptest.NewRequest("GET", "/x", nil)
	put.Header.Set("If-Match", `"a"`)
	get.Header.Set("If-None-Match", `"a"`)
	for _, c := range []struct {
		err              error
		status, with     int
		code, retryAfter string
	}{
		{tables.ErrNotFound, 404, 412, "not-found", ""}, {tables.ErrExists, 409, 412, "exists", ""}, {tables.ErrConflict, 409, 412, "conflict", ""},
		{tables.ErrDuplicate, 409, 409, "duplicate", ""}, {tables.ErrMissingReference, 422, 422, "missing-reference", ""}, {tables.ErrTooLarge, 413, 413, "too-large", ""},
		{tables.ErrInvalid, 400, 400, "invalid", ""}, {tables.ErrUnknownOutcome, 504, 504, "unknown-outcome", ""}, {tables.ErrUnavailable, 503, 503, "unavailable", "2"},
		{tables.ErrBeingDeleted, 503, 503, "being-deleted", "40"}, {tables.ErrMissingResource, 500, 500, "internal", ""}, {tables.ErrDenied, 500, 500, "internal", ""}, {tables.ErrRefused, 500, 500, "internal", ""},
		{tables.ErrWiring, 500, 500, "internal", ""}, {tables.ErrTableScan, 500, 500, "internal", ""}, {tables.ErrGarbled, 500, 500, "internal", ""}, {nil, 500, 500, "internal", ""},
		{context.Canceled, 503, 503, "interrupted", "2"}, {context.DeadlineExceeded, 503, 503, "interrupted", "2"}, {&net.OpError{Op: "read", Err: secret}, 500, 500, "internal", ""},
	} {
		err := error(&tables.Error{Op: "Insert", Table: "Employees", Key: tables.Key{Partition: "june", Row: "secret"}, Pattern: "email", Kind: tables.KindOf(c.err), Err: errors.Join(secret, c.err)})
		err = fmt.Errorf("handler of june: %w", err)
		for r, want := range map[*http.Request]int{nil: c.status, get: c.status, put: c.with} {
			w := httptest.NewRecorder()
			w.Header().Set("ETag", `"of what was read"`)
			httpapi.ProblemOf(r, err).Write(w)
			var p httpapi.Problem
			assert.Check(t, json.Unmarshal(w.Body.Bytes(), &p))
			code := c.code
			if want == 412 {
				code = "precondition-failed"
			}
			if w.Code != want || p.Status != want || p.Code != code || p.Title != http.StatusText(want) || p.Detail == "" || w.Header().Get("Retry-After") != c.retryAfter {
				t.Errorf("%v: %d, %+v, Retry-After %q; want %d", c.err, w.Code, p, w.Header().Get("Retry-After"), want)
			}
			if w.Header().Get("Content-Type") != "application/problem+json" || w.Header().Get("ETag") != "" || (p.Pattern != "") != (want == 409 && code == "duplicate" || want == 422) {
				t.Errorf("%v: %v, %+v", c.err, w.Header(), p)
			}
			for _, said := range []string{"secret", "june", "sig", "Employees", "Insert"} {
				if strings.Contains(w.Body.String(), said) {
					t.Errorf("%v: the response says %q: %s", c.err, said, w.Body)
				}
			}
		}
		if httpapi.Status(err) != c.status || httpapi.Status(nil) != 200 {
			t.Errorf("%v: status %d", c.err, httpapi.Status(err))
		}
	}
}

// TestInterrupted: only errors of the library ask for a repetition; those of other packages say nothing of what was changed.
func TestInterrupted(t *testing.T) {
	file := &fs.PathError{Op: "open", Path: "page.tmpl", Err: syscall.ENOENT}
	refused := &net.OpError{Op: "dial", Err: &os.SyscallError{Syscall: "connect", Err: syscall.ECONNREFUSED}}
	webhook := &url.Error{Op: "Post", URL: "https://contoso.com", Err: refused}
	tooLong := &http.MaxBytesError{Limit: 1}
	of := func(kind, cause error) error {
		return fmt.Errorf("handler: %w", &tables.Error{Op: "Insert", Kind: kind, Err: cause})
	}
	for _, c := range []struct {
		err    error
		status int
		code   string
		delay  time.Duration
	}{
		{file, 500, "internal", 0}, {syscall.ETIMEDOUT, 500, "internal", 0}, {webhook, 500, "internal", 0}, {refused, 500, "internal", 0}, {os.ErrDeadlineExceeded, 500, "internal", 0},
		{of(nil, file), 500, "internal", 0}, {of(nil, nil), 500, "internal", 0}, {fmt.Errorf("%w, then %w", of(nil, errors.New("x")), webhook), 500, "internal", 0},
		{of(nil, webhook), 500, "internal", 0}, {of(nil, refused), 500, "internal", 0}, {of(tables.ErrUnavailable, refused), 503, "unavailable", 2 * time.Second},
		{of(nil, context.Canceled), 503, "interrupted", 2 * time.Second}, {of(nil, &url.Error{Err: context.DeadlineExceeded}), 503, "interrupted", 2 * time.Second},
		{of(tables.ErrUnknownOutcome, context.Canceled), 504, "unknown-outcome", 0}, {of(tables.ErrDenied, webhook), 500, "internal", 0},
		{context.Canceled, 503, "interrupted", 0}, {fmt.Errorf("template: %w", context.DeadlineExceeded), 503, "interrupted", 0},
		{tooLong, 413, "too-large", 0}, {errs.Invalid("Decode", tooLong), 413, "too-large", 0}, {of(tables.ErrUnknownOutcome, tooLong), 504, "unknown-outcome", 0},
		{of(tables.ErrUnavailable, nil), 503, "unavailable", 2 * time.Second}, {of(tables.ErrBeingDeleted, nil), 503, "being-deleted", 40 * time.Second}, {of(tables.ErrConflict, nil), 409, "conflict", 0},
	} {
		p := httpapi.ProblemOf(nil, c.err)
		if p.Status != c.status || p.Code != c.code || p.RetryAfter != c.delay || httpapi.Status(c.err) != c.status {
			t.Errorf("%v: %+v, want %d %s after %v", c.err, p, c.status, c.code, c.delay)
		}
		if strings.Contains(p.Detail, "nothing was changed") || p.Status == 503 && !strings.Contains(p.Detail, "The request was not completed.") {
			t.Errorf("%v: %q", c.err, p.Detail)
		}
	}
}

// TestHandlerErrors: an error becomes a problem and a line of the log without keys; after a part of the response it ends the connection.
func TestHandlerErrors(t *testing.T) {
	var log bytes.Buffer
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	mux := http.NewServeMux()
	mux.Handle("GET /none", httpapi.Handler(func(http.ResponseWriter, *http.Request) error {
		return &tables.Error{Op: "Get", Table: "Notes", Key: tables.Key{Partition: "june", Row: "secret"}, Kind: tables.ErrNotFound}
	}))
	mux.Handle("GET /early", httpapi.Handler(func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusEarlyHints)
		return tables.ErrUnavailable
	}))
	mux.Handle("GET /part", httpapi.Handler(func(w http.ResponseWriter, _ *http.Request) error {
		_, err := io.WriteString(w, "[1,")
		return errors.Join(err, http.NewResponseController(w).Flush(), tables.ErrGarbled)
	}))
	mux.Handle("GET /whole", httpapi.Handler(func(w http.ResponseWriter, _ *http.Request) error { return reply(w, http.StatusOK, 1) }))
	server := httptest.NewServer(mux)
	defer server.Close()
	for path, want := range map[string]int{"/none": 404, "/early": 503, "/part": 200, "/whole": 200} {
		request := assert.Must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, http.NoBody))
		answer := assert.Must[*http.Response](t)(server.Client().Do(request))
		_, err := io.ReadAll(answer.Body)
		assert.Check(t, answer.Body.Close())
		if answer.StatusCode != want || (err != nil) != (path == "/part") {
			t.Errorf("%s: %d, %v", path, answer.StatusCode, err)
		}
	}
	server.Close()
	if text := log.String(); strings.Count(text, "request failed") != 3 || strings.Contains(text, "june") || !strings.Contains(text, `route="GET /none" status=404`) || strings.Count(text, "ERROR") != 2 {
		t.Error(text)
	}
}

// TestWriteHeaders: the headers of the body that the handler wanted to send do not describe the problem.
func TestWriteHeaders(t *testing.T) {
	stale := []string{"ETag", "Last-Modified", "Content-Length", "Content-Encoding", "Content-Range", "Retry-After"}
	for err, retryAfter := range map[error]string{tables.ErrInvalid: "", tables.ErrUnavailable: "2"} {
		w := httptest.NewRecorder()
		for _, name := range append(stale, "Cache-Control", "Content-Type") {
			w.Header().Set(name, "3600")
		}
		w.Header().Set("Vary", "Origin")
		httpapi.ProblemOf(nil, err).Write(w)
		for _, name := range stale {
			if got := w.Header().Get(name); got != "" && (name != "Retry-After" || got != retryAfter) {
				t.Errorf("%v: %s: %s", err, name, got)
			}
		}
		if h := w.Header(); h.Get("Retry-After") != retryAfter || h.Get("Cache-Control") != "no-store" || h.Get("Content-Type") != "application/problem+json" || h.Get("Vary") != "Origin" {
			t.Errorf("%v: %v", err, h)
		}
	}
}

// TestRetryAfter: the service's own delay is passed on, within bounds.
func TestRetryAfter(t *testing.T) {
	for header, want := range map[string]time.Duration{"7": 7 * time.Second, "0": 2 * time.Second, "-1": 2 * time.Second, "x": 2 * time.Second, "99999999999": 2 * time.Second * 150, "3600": 5 * time.Minute} {
		response := &azcore.ResponseError{StatusCode: 503, RawResponse: &http.Response{Header: http.Header{"Retry-After": {header}}}}
		assert.Equal(t, httpapi.ProblemOf(nil, &tables.Error{Kind: tables.ErrUnavailable, Err: response}).RetryAfter, want, "%q", header)
		assert.Equal(t, httpapi.ProblemOf(nil, &tables.Error{Kind: tables.ErrInvalid, Err: response}).RetryAfter, 0, "ErrInvalid")
	}
}

const azures = azcore.ETag(`W/"datetime'2026-11-23T16%3A21%3A14.1234567Z'"`)

// TestETags: every ETag of the service comes back from the tag that it was sent as, and no two have the same tag.
func TestETags(t *testing.T) {
	tags := map[string]azcore.ETag{}
	for _, etag := range []azcore.ETag{azures, `"strong"`, `W/"strong"`, `W/"a b"`, `W/"a"b"`, "W/", "x", `W/""`, `W/"~eA"`, `W/"~"`, `"`, "W/\"\xff\"", "*", `W/"a,b"`} {
		tag := httpapi.FormatETag(etag)
		if other, ok := tags[tag]; ok {
			t.Errorf("%s and %s are both %s", etag, other, tag)
		}
		tags[tag] = etag
		for _, sent := range []string{tag, "W/" + tag, `"x" , ` + tag, tag + `,,W/"y"`, "*"} {
			r := httptest.NewRequest("PUT", "/", nil)
			r.Header.Set("If-Match", sent)
			c, err := httpapi.IfMatch(r)
			if err != nil || !c.Given() || !c.Matches(etag) || c.Matches("") || !c.Any() && c.Matches(etag+"x") || c.Check(etag) != nil || !errors.Is(c.Check(""), httpapi.ErrPreconditionFailed) {
				t.Errorf("%s as %s: %+v, %v", etag, sent, c, err)
			}
		}
	}
	if tag := httpapi.FormatETag(azures); tag != `"datetime'2026-11-23T16%3A21%3A14.1234567Z'"` || httpapi.FormatETag("") != "" {
		t.Errorf("the tag of %s is %s", azures, tag)
	}
}

// TestConditions: what headers mean, and what malformed ones are.
func TestConditions(t *testing.T) {
	request := func(method string, lines ...string) *http.Request {
		r := httptest.NewRequest(method, "/", nil)
		r.Header["If-Match"], r.Header["If-None-Match"] = lines, lines
		return r
	}
	for _, header := range []string{"", ",", "abc", `"abc`, `abc"`, `"a" "b"`, `w/"a"`, `"a b"`, "\"a\x00\"", `*, "a"`, `"a", *`, `W/`, `W/*`, `"a";"b"`, "\"\x7f\"", strings.Repeat(`"a",`, 101), `"` + strings.Repeat("a", 9000) + `"`} {
		for _, read := range []func(*http.Request) (httpapi.Condition, error){httpapi.IfMatch, httpapi.IfNoneMatch, httpapi.RequireIfMatch} {
			if _, err := read(request("PUT", header)); !errors.Is(err, tables.ErrInvalid) || httpapi.Status(err) != 400 {
				t.Errorf("%.40q: %v", header, err)
			}
		}
		if w := httptest.NewRecorder(); httpapi.NotModified(w, request("GET", header), azures) {
			t.Errorf("%.40q answers 304", header)
		}
	}
	several, err := httpapi.IfMatch(request("PUT", `"a"`, `W/"b", "c"`))
	if err != nil || len(several.ETags()) != 3 || !several.Matches(`W/"b"`) {
		t.Errorf("%+v, %v", several, err)
	}
	if c, err := httpapi.IfMatch(request("PUT")); err != nil || c.Given() || c.Matches(azures) || c.Check(azures) != nil || c.Check("") != nil {
		t.Errorf("no header: %+v, %v", c, err)
	}
	if _, err := httpapi.RequireIfMatch(request("PUT")); httpapi.Status(err) != 428 || !errors.Is(err, tables.ErrInvalid) {
		t.Errorf("no header: %v", err)
	}
	if c, err := httpapi.RequireIfMatch(request("PUT", " * ")); httpapi.Status(err) != 428 || !errors.Is(err, httpapi.ErrPreconditionRequired) || !errors.Is(err, tables.ErrInvalid) || c.Matches(azures) {
		t.Errorf("If-Match: * of a request that must name a version: %+v, %v", c, err)
	}
	if c, err := httpapi.RequireIfMatch(request("PUT", "\"\x80\xff\"")); err != nil || !c.Matches("W/\"\x80\xff\"") || c.Matches("W/\"\x80\"") {
		t.Errorf("a tag with bytes from 0x80 on: %+v, %v", c, err)
	}
	none, err := httpapi.IfNoneMatch(request("PUT", "*"))
	if err != nil || !none.Any() || none.Check("") != nil || httpapi.Status(none.Check(azures)) != 412 {
		t.Errorf("If-None-Match: *: %+v, %v", none, err)
	}
	for method, want := range map[string]bool{"GET": true, "HEAD": true, "PUT": false} {
		w := httptest.NewRecorder()
		if got := httpapi.NotModified(w, request(method, httpapi.FormatETag(azures)), azures); got != want || want && w.Code != 304 || w.Header().Get("ETag") != httpapi.FormatETag(azures) {
			t.Errorf("%s: %v, %d, %v", method, got, w.Code, w.Header())
		}
	}
}

func key(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

func tokensOf(t testing.TB, keys [][]byte, purpose string, o *httpapi.PageTokenOptions) *httpapi.PageTokens {
	t.Helper()
	return assert.Must[*httpapi.PageTokens](t)(httpapi.NewPageTokens(keys, purpose, o))
}

// TestPageTokens: only what the same purpose, binding and keys have sealed is opened, and the text shows nothing.
func TestPageTokens(t *testing.T) {
	must := assert.Must[string](t)
	p := tokensOf(t, [][]byte{key(1)}, "contoso v1", nil)
	const token = "1!8!june@contoso.com"
	sealed := must(p.Seal(token, "tenant", "route"))
	if got := must(p.Open(sealed, "tenant", "route")); got != token || must(p.Seal("")) != "" || must(p.Open("")) != "" {
		t.Errorf("opened as %q", got)
	}
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil || bytes.Contains(raw, []byte("june")) || sealed == must(p.Seal(token, "tenant", "route")) || len(sealed) != len(must(p.Seal(token+"longer", "tenant", "route"))) {
		t.Errorf("%q shows its token", sealed)
	}
	refused := func(what string, p *httpapi.PageTokens, sealed string, bound ...string) {
		t.Helper()
		if got, err := p.Open(sealed, bound...); got != "" || !errors.Is(err, tables.ErrInvalid) || !errors.Is(err, httpapi.ErrPageToken) || httpapi.Status(err) != 400 || httpapi.ProblemOf(nil, err).Code != "page-token" {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
	for what, bound := range map[string][]string{"nothing": nil, "another tenant": {"tenant2", "route"}, "joined": {"tenantroute"}, "moved": {"tenantr", "oute"}, "turned": {"route", "tenant"}, "more": {"tenant", "route", ""}} {
		refused(what, p, sealed, bound...)
	}
	refused("another purpose", tokensOf(t, [][]byte{key(1)}, "contoso v2", nil), sealed, "tenant", "route")
	refused("another key", tokensOf(t, [][]byte{key(2)}, "contoso v1", nil), sealed, "tenant", "route")
	refused("a token in clear", p, token, "tenant", "route")
	refused("a long text", p, strings.Repeat("AAAA", 10000), "tenant", "route")
	for _, broken := range []string{sealed[:9] + "\n" + sealed[9:], "\r" + sealed, sealed + "\r\n"} {
		refused(fmt.Sprintf("%q", broken), p, broken, "tenant", "route")
	}
	for i := range raw {
		forged := bytes.Clone(raw)
		forged[i] ^= 1
		refused(fmt.Sprintf("byte %d", i), p, base64.RawURLEncoding.EncodeToString(forged), "tenant", "route")
		refused(fmt.Sprintf("%d bytes", i+1), p, base64.RawURLEncoding.EncodeToString(raw[:i+1])[:max(1, i)], "tenant", "route")
	}
	assert.ErrorIs(t, assert.Err(p.Seal(strings.Repeat("x", 9000))), tables.ErrInvalid, "a long token")
	assert.Equal(t, len(must(p.Open(must(p.Seal(strings.Repeat("x", 8192)))))), 8192, "bytes of a long token")
}

// TestPageTokensAreHidden: nothing that prints or encodes PageTokens shows a key.
func TestPageTokensAreHidden(t *testing.T) {
	secret := []byte("a key of thirty-two bytes, hidden")
	p := tokensOf(t, [][]byte{secret}, "contoso v1", nil)
	type byValue struct{ Tokens httpapi.PageTokens }
	type byPointer struct{ Tokens *httpapi.PageTokens }
	type unexported struct {
		value   httpapi.PageTokens
		pointer *httpapi.PageTokens
	}
	var texts []string
	for _, v := range []any{p, *p, byValue{*p}, &byValue{*p}, byPointer{p}, &byPointer{p}, unexported{*p, p}, &unexported{*p, p}, []httpapi.PageTokens{*p}, map[string]*httpapi.PageTokens{"p": p}} {
		for _, verb := range strings.Split("v +v #v T s q x X d b o O U c p t e E f F g G w", " ") {
			texts = append(texts, fmt.Sprintf("%"+verb, v))
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v)
		encoded, err := json.Marshal(v)
		texts = append(texts, log.String(), string(encoded), fmt.Sprint(err))
	}
	decimals := strings.Trim(fmt.Sprint(secret[:4]), "[]")
	for _, text := range texts {
		text := strings.ToLower(text)
		for _, shown := range []string{"a key of", decimals, strings.ReplaceAll(decimals, " ", ", "), "61206b65", "0x61, 0x20, 0x6b", base64.StdEncoding.EncodeToString(secret)[:8]} {
			if strings.Contains(text, strings.ToLower(shown)) {
				t.Errorf("%q shows %q", text, shown)
			}
		}
	}
	const want = "page tokens with 1 keys"
	if text, err := p.MarshalText(); err != nil || string(text) != want || p.String() != want || fmt.Sprintf("%x", p) != want || p.LogValue().String() != want {
		t.Errorf("%s, %s, %v", p, text, err)
	}
	for _, none := range []*httpapi.PageTokens{nil, {}} {
		_, sealErr := none.Seal("x")
		_, openErr := none.Open(assert.Must[string](t)(p.Seal("x")))
		if none.String() != "page tokens with 0 keys" || !errors.Is(sealErr, tables.ErrWiring) || !errors.Is(openErr, tables.ErrWiring) {
			t.Errorf("%v without keys: %v, %v", none, sealErr, openErr)
		}
	}
}

// TestOpenLongText: a text over the limit is refused before it is decoded.
func TestOpenLongText(t *testing.T) {
	p, long := tokensOf(t, [][]byte{key(1)}, "p", nil), strings.Repeat("AAAA", 4<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := p.Open(long)
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, httpapi.ErrPageToken) || allocated > 1<<20 {
		t.Errorf("%d bytes were allocated for a text of %d: %v", allocated, len(long), err)
	}
}

// TestPageTokenKeys: old keys still open; and tokens end with their lifetime.
func TestPageTokenKeys(t *testing.T) {
	must := assert.Must[string](t)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	o := &httpapi.PageTokenOptions{Lifetime: time.Hour, Now: func() time.Time { return now }}
	old, both, fresh := tokensOf(t, [][]byte{key(1)}, "p", o), tokensOf(t, [][]byte{key(2), key(1)}, "p", o), tokensOf(t, [][]byte{key(2)}, "p", o)
	if must(both.Open(must(old.Seal("x")))) != "x" || must(fresh.Open(must(both.Seal("y")))) != "y" {
		t.Error("a rotated key does not open its tokens")
	}
	assert.ErrorIs(t, assert.Err(fresh.Open(must(old.Seal("x")))), httpapi.ErrPageToken, "a removed key")
	sealed := must(old.Seal("x"))
	now = now.Add(time.Hour - time.Millisecond)
	assert.Equal(t, must(old.Open(sealed)), "x", "expired too early")
	now = now.Add(time.Millisecond)
	if _, err := old.Open(sealed); !errors.Is(err, httpapi.ErrPageTokenExpired) || !errors.Is(err, tables.ErrInvalid) || httpapi.ProblemOf(nil, err).Code != "page-token-expired" {
		t.Errorf("expired: %v", err)
	}
	own := key(3)
	copied := tokensOf(t, [][]byte{own}, "p", nil)
	sealed = must(copied.Seal("x"))
	clear(own)
	assert.Equal(t, must(copied.Open(sealed)), "x", "the key is that of the caller's slice")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if sealed, err := both.Seal("x", "y"); err != nil || sealed == "" {
				t.Errorf("%q, %v", sealed, err)
			}
		})
	}
	all.Wait()
	for what, f := range map[string]func() (*httpapi.PageTokens, error){
		"no key":    func() (*httpapi.PageTokens, error) { return httpapi.NewPageTokens(nil, "p", nil) },
		"short key": func() (*httpapi.PageTokens, error) { return httpapi.NewPageTokens([][]byte{key(1)[:31]}, "p", nil) },
		"many keys": func() (*httpapi.PageTokens, error) {
			return httpapi.NewPageTokens([][]byte{key(1), key(1), key(1), key(1), key(1), key(1), key(1), key(1), key(1)}, "p", nil)
		},
		"no purpose": func() (*httpapi.PageTokens, error) { return httpapi.NewPageTokens([][]byte{key(1)}, "", nil) },
		"lifetime": func() (*httpapi.PageTokens, error) {
			return httpapi.NewPageTokens([][]byte{key(1)}, "p", &httpapi.PageTokenOptions{Lifetime: -1})
		},
	} {
		assert.ErrorIs(t, assert.Err(f()), tables.ErrWiring, what)
	}
}

// FuzzOpen: no text but a sealed one is opened, and no header makes a condition match an entity that it does not name.
func FuzzOpen(f *testing.F) {
	p := tokensOf(f, [][]byte{key(1), key(2)}, "fuzz", nil)
	sealed := assert.Must[string](f)(p.Seal("token", "a"))
	for _, seed := range []string{"", sealed, sealed[:30], sealed + "A", "AQ", `"a"`, `W/"a", *`, `"~eA"`, `"~", "a"`, `W/"datetime'2026'"`, "\"\xff\"", ",,", "*"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := p.Open(text, "a"); text != "" && got != "token" && (err == nil || got != "") { // a worker gets what another process has sealed
			t.Errorf("%q is opened as %q", text, got)
		}
		r := httptest.NewRequest("PUT", "/", nil)
		r.Header["If-Match"] = []string{text}
		c, err := httpapi.IfMatch(r)
		if (err == nil) != c.Given() || err != nil && !errors.Is(err, tables.ErrInvalid) {
			t.Fatalf("%q: %+v, %v", text, c, err)
		}
		for _, etag := range c.ETags() {
			if tag := httpapi.FormatETag(etag); !strings.Contains(text, strings.Trim(tag, `"`)) && !strings.Contains(text, "~") {
				t.Errorf("%q has %q, which is sent as %s", text, etag, tag)
			}
		}
		if c.Matches(azures) && !c.Any() && !strings.Contains(text, "datetime'2026-11-23") {
			t.Errorf("%q matches %s", text, azures)
		}
	})
}

// TestHandler: the Example's handler on the service of the run, with writers in its way and hostile requests.
func TestHandler(t *testing.T) {
	s := storagetest.Open(t)
	a := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
	n := assert.Must[*notes](t)(newNotes(t.Context(), a, harness.NewTable(t, a).Name()))
	h := n.routes()
	created := ask(h, "POST", "/contoso/notes", `{"id":"a/b#c","text":"x"}`)
	etag := created.Header().Get("ETag")
	if created.Code != 201 || !strings.HasPrefix(etag, `"`) {
		t.Fatalf("%d, %v", created.Code, created.Header())
	}
	const path = "/contoso/notes/a%2Fb%23c"
	for want, w := range map[int]*httptest.ResponseRecorder{
		304: ask(h, "GET", path, "", "If-None-Match", `"x", W/`+etag), 404: ask(h, "GET", "/fabrikam/notes/a%2Fb%23c", ""), 400: ask(h, "POST", "/contoso/notes", `{"id":`),
		413: ask(h, "POST", "/contoso/notes", `{"id":"b","text":"`+strings.Repeat("x", 40_000)+`"}`), 428: ask(h, "PUT", path, `{"text":"y"}`), 412: ask(h, "PUT", path, `{"text":"y"}`, "If-Match", `"x"`),
	} {
		if w.Code != want || want != 304 && w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%d %s, want %d", w.Code, w.Body, want)
		}
	}
	var all sync.WaitGroup
	codes := make(chan int, 8)
	for range cap(codes) {
		all.Go(func() { codes <- ask(h, "PUT", path, `{"text":"y"}`, "If-Match", etag).Code })
	}
	all.Wait()
	close(codes)
	got := map[int]int{}
	for code := range codes {
		got[code]++
	}
	if got[200] != 1 || got[412] != cap(codes)-1 {
		t.Errorf("of %d writers of one version: %v", cap(codes), got)
	}
	if w := ask(h, "POST", "/contoso/notes", `{"id":"b","text":"`+strings.Repeat("x", 1<<16)+`"}`); w.Code != 413 || !strings.Contains(w.Body.String(), "too-large") {
		t.Errorf("a body over the limit: %d %s", w.Code, w.Body)
	}
	if w := ask(h, "PUT", path, `{"text":"y"}`, "If-Match", "*"); w.Code != 428 {
		t.Errorf("If-Match: * is %d %s", w.Code, w.Body)
	}
	w := httptest.NewRecorder()
	if err := reply(w, http.StatusCreated, make(chan int)); err == nil {
		t.Error("a value without a JSON encoding is sent")
	} else if httpapi.ProblemOf(nil, err).Write(w); w.Code != 500 || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("a value without a JSON encoding: %d %v", w.Code, w.Header())
	}
	if w := ask(h, "GET", "/contoso/notes?page=june", ""); w.Code != 400 || !strings.Contains(w.Body.String(), "page-token") {
		t.Errorf("a page token of the caller's own: %d %s", w.Code, w.Body)
	}
}
