package access_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	azlog "github.com/Azure/azure-sdk-for-go/sdk/azcore/log"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/access"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/testrun"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// verbs are what fmt knows, and what it does not.
var verbs = []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%t", "%p", "%T", "%c", "%U", "%e", "%10.3v", "%!", "%w"}

// canary looks for secrets in whatever a program could print or export.
type canary struct {
	harness.SecretSearch
	secrets []string
}

// newCanary looks for secrets whole, for their halves, and in every spelling.
func newCanary(secrets ...string) *canary {
	c := &canary{}
	for _, secret := range secrets {
		for _, part := range []string{secret[:len(secret)/2], secret[len(secret)/2:]} {
			for _, form := range []string{part, url.QueryEscape(part), url.PathEscape(part), strings.ToLower(url.QueryEscape(part)), fmt.Sprintf("%x", part), fmt.Sprintf("%v", []byte(part))} {
				c.secrets = append(c.secrets, strings.Trim(form, "[]"))
			}
		}
	}
	return c
}

func (c *canary) search(where, text string) { c.Search(where, where, text, c.secrets...) }

// value looks at a value as every verb, encoder and handler shows it.
func (c *canary) value(where string, v any) {
	for _, verb := range verbs {
		c.search(where, fmt.Sprintf(verb, v))
	}
	var b bytes.Buffer
	slog.New(slog.NewJSONHandler(&b, nil)).Info("m", "v", v, slog.Any("group", []any{v}))
	slog.New(slog.NewTextHandler(&b, nil)).Info("m", "v", v, slog.Any("group", []any{v}))
	c.search(where, b.String())
	for _, marshal := range []func(any) ([]byte, error){json.Marshal, xml.Marshal} {
		text, err := marshal(v)
		c.search(where, string(text)+fmt.Sprint(err))
	}
}

// error looks at an error and everything below it.
func (c *canary) error(err error) {
	testrun.EachCause(err, func(err error) {
		var b bytes.Buffer
		slog.New(slog.NewJSONHandler(&b, nil)).Info("m", "err", err)
		c.search("error", fmt.Sprintf("%s %+v %#v %q %s", err.Error(), err, err, err, b.String()))
	})
}

// provider looks at spans.
func (c *canary) provider() tracing.Provider {
	return harness.Spans(func(text string) { c.search("span", text) })
}

// listen looks at the SDK's own log until the test ends.
func (c *canary) listen(t *testing.T) {
	azlog.SetListener(func(_ azlog.Event, text string) { c.search("log", text) })
	t.Cleanup(func() { azlog.SetListener(nil) })
}

func sigOf(t testing.TB, token access.Token) string {
	return assert.Must[url.Values](t)(url.ParseQuery(token.RevealQuery())).Get("sig")
}

// TestValuesShowNoSecret: tokens and everything that holds one or a key, by themselves, behind pointers, in other values, and
// behind unexported fields, where package fmt calls no methods.
func TestValuesShowNoSecret(t *testing.T) {
	o := newOwner(t, storagetest.Simulator(t, nil))
	token := o.sign(access.Grant{Range: access.Partition("Sales"), Permissions: access.Query})
	client := openToken(t, o.s, token)
	issuer := assert.Must[*access.Issuer](t)(access.NewIssuer(o.signer, func(context.Context, string) (access.Grant, error) {
		return access.Grant{Table: o.table.Name(), Range: access.Partition("Sales"), Permissions: access.Query, InsecureHTTP: true}, nil
	}, nil))
	issued := assert.Must[access.Token](t)(issuer.Token(t.Context(), "June"))
	if issuer.Len() != 1 { // takes the lock, so that what made the token is surely over
		t.Fatal("no token is kept")
	}
	c := newCanary(sigOf(t, token), sigOf(t, issued), o.s.AccountKey, string(decoded(t, o.s.AccountKey)))
	type hidden struct {
		token  access.Token
		signer *access.Signer
		issuer *access.Issuer
		client *access.Client
		values access.Signer
		opened access.Client
		table  *tables.Table
	}
	type shown struct {
		Token   access.Token
		Pointer *access.Token
		Client  *access.Client
		Any     any
		Map     map[string]access.Token
		Slice   []*access.Token
		hidden  hidden
	}
	inner := hidden{token, o.signer, issuer, client, *o.signer, *client, client.Table()}
	all := shown{token, &token, client, token, map[string]access.Token{"a": token}, []*access.Token{&token}, inner}
	for i, v := range []any{token, &token, client, *client, o.signer, *o.signer, issuer, client.Account(), *client.Account(), client.Table(), *client.Table(), client.Token(),
		client.Table().Entities(), client.Table().Entities().Query(), client.Table().NewTransaction(), inner, &inner, all, &all, []any{inner, &all}, map[string]any{"x": all},
		errors.New(token.String()), fmt.Errorf("token %v, %s, %#v: %w", token, client, o.signer, tables.ErrDenied)} {
		c.value(fmt.Sprintf("value %d (%T)", i, v), v)
	}
	for where, n := range c.Searched() {
		if n < len(verbs)+3 {
			t.Errorf("%s was looked at %d times", where, n)
		}
	}
	c.Verdict(t, nil)
	for _, verb := range verbs[:len(verbs)-2] {
		if text := fmt.Sprintf(verb, token); !strings.Contains(text, "REDACTED") && verb != "%T" && verb != "%p" {
			t.Errorf("%s: %s", verb, text)
		}
	}
	if text, err := json.Marshal(map[string]any{"t": token}); err != nil || !strings.Contains(string(text), "REDACTED") {
		t.Errorf("%s, %v", text, err)
	}
	if fmt.Sprint(access.Token{}) != "access.Token(none)" || strings.Contains(token.String(), "Sales") {
		t.Errorf("%v, %v", access.Token{}, token)
	}
	// The canary sings when there is something to sing about.
	c.value("a leak", struct{ s string }{token.RevealAddress()})
	c.value("another leak", decoded(t, o.s.AccountKey))
	if len(c.Take()) < 2 {
		t.Error("the canary is deaf")
	}
}

// talkative is a proxy that breaks off or refuses with a status, and says what it was asked for.
type talkative int

func (f talkative) String() string { return fmt.Sprintf("talkative%d", int(f)) }

func (f talkative) Meet(_ storagetest.Call, req *http.Request, _ storagetest.Send) (*http.Response, error) {
	if f == 0 {
		return nil, fmt.Errorf("proxy of %s: %w", req.URL, errors.Join(io.ErrUnexpectedEOF, fmt.Errorf("asked for %q with %q", req.URL, req.Header.Get("Authorization"))))
	}
	body := fmt.Sprintf(`{"odata.error":{"code":"Odd","message":{"lang":"en-US","value":"no access: %s with %s"}}}`, req.URL, req.Header.Get("Authorization"))
	return &http.Response{Status: http.StatusText(int(f)), StatusCode: int(f), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/json"}, "X-Ms-Error-Code": {"Odd"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// TestCallsShowNoSecret: every operation of a client, and of the policies, with each of its calls meeting each fault: no error,
// log or span holds the signature or the account's key.
func TestCallsShowNoSecret(t *testing.T) {
	o := newOwner(t, storagetest.Simulator(t, nil))
	o.insert(at("Sales", "b"))
	token := o.sign(access.Grant{Range: access.Rows("Sales", compoundkey.Range("a", "d")), Permissions: access.Everything})
	expired := o.sign(access.Grant{Range: access.WholeTable(), Permissions: access.Everything, Lifetime: time.Second, Start: o.s.Clock.Now().Add(-time.Hour)})
	o.s.Wait(10 * time.Second)
	c := newCanary(sigOf(t, token), sigOf(t, expired), o.s.AccountKey)
	c.listen(t)
	type run func(ctx context.Context, s *storagetest.Service) error
	runs := map[string]run{}
	for name, op := range operations(at("Sales", "b")) {
		for kind, with := range map[string]access.Token{"": token, "expired ": expired} {
			runs[kind+name] = func(ctx context.Context, s *storagetest.Service) error {
				client := openToken(t, s, with)
				err := op.do(ctx, client.Table())
				c.search("log", client.String())
				return err
			}
		}
	}
	outside := operations(at("Tax", "b"))["Get"]
	runs["outside"] = func(ctx context.Context, s *storagetest.Service) error {
		return outside.do(ctx, openToken(t, s, token).Table())
	}
	list := func(ctx context.Context, p *access.Policies) error { _, err := p.List(ctx); return err }
	for name, change := range map[string]func(context.Context, *access.Policies) error{"List": list,
		"Create": func(ctx context.Context, p *access.Policies) error { return p.Create(ctx, whole(o, "a")) },
		"Revoke": func(ctx context.Context, p *access.Policies) error { return p.Revoke(ctx, "a") }} {
		runs[name+" by the owner"] = func(ctx context.Context, s *storagetest.Service) error {
			return change(ctx, policiesOf(t, accountOf(t, s).Table(o.table.Name()), time.Millisecond))
		}
		runs[name+" by the token"] = func(ctx context.Context, s *storagetest.Service) error {
			return change(ctx, policiesOf(t, openToken(t, s, token).Table(), time.Millisecond))
		}
	}
	faults, points := append(storagetest.SweepFaults(), storagetest.DiesBefore, storagetest.DiesAfter, talkative(0), talkative(400), talkative(403), talkative(500)), 0
	for name, run := range runs {
		for i, fault := range faults {
			for index := 0; ; index++ {
				faulty, calls := o.s.WithRetries(int32(i % 2)).Faulty(storagetest.OnIndex(index, storagetest.Always(fault)))
				faulty.ClientOptions.TracingProvider = c.provider()
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				err := run(ctx, faulty)
				cancel()
				if err != nil {
					c.error(fmt.Errorf("%s: %w", name, err))
				}
				if len(calls.Met()) == 0 || index == 5 {
					break
				}
				points++
			}
		}
	}
	t.Logf("%d operations, %d points", len(runs), points)
	if points < 350 {
		t.Errorf("%d points", points)
	}
	c.Verdict(t, map[string]int{"error": 3000, "span": 2000, "log": 2000})

	// The SDK alone says it all, and the canary sings.
	faulty, _ := o.s.WithRetries(0).Faulty(storagetest.Always(talkative(0)))
	alone := assert.Must[*aztables.Client](t)(aztables.NewClientWithNoCredential(token.RevealAddress(), &aztables.ClientOptions{ClientOptions: faulty.ClientOptions}))
	_, err := alone.GetEntity(t.Context(), "Sales", "b", nil)
	if c.error(err); len(c.Take()) == 0 {
		t.Error("the canary is deaf")
	}
}
