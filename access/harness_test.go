package access_test

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/access"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

func wantIs(t testing.TB, err error, kinds ...error) {
	t.Helper()
	for _, kind := range kinds {
		if !errors.Is(err, kind) {
			t.Errorf("%v is not %v", err, kind)
		}
	}
}

// owner is who has the account's key, and a table.
type owner struct {
	testing.TB
	s      *storagetest.Service
	table  *tables.Table
	signer *access.Signer
}

// nowOf is the service's clock.
func nowOf(s *storagetest.Service) func() time.Time {
	if s.Clock == nil {
		return time.Now
	}
	return s.Clock.Now
}

func accountOf(t testing.TB, s *storagetest.Service) *tables.Account {
	t.Helper()
	return assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
}

func newOwner(t testing.TB, s *storagetest.Service) *owner {
	t.Helper()
	account := accountOf(t, s)
	o := &owner{TB: t, s: s, table: account.Table(s.TableName(t))}
	assert.Check(t, o.table.Create(context.Background()))
	o.signer = assert.Must[*access.Signer](t)(access.NewSigner(account, s.AccountKey, &access.SignerOptions{Now: nowOf(s)}))
	return o
}

// put stores policies, all at once, behind the library's back.
func (o *owner) put(policies ...access.Policy) {
	o.Helper()
	var list []*aztables.SignedIdentifier
	for _, p := range policies {
		permission := p.Permissions.String()
		list = append(list, &aztables.SignedIdentifier{ID: &p.ID, AccessPolicy: &aztables.AccessPolicy{Start: &p.Start, Expiry: &p.Expiry, Permission: &permission}})
	}
	assert.Check(o, assert.Err(o.table.Client().SetAccessPolicy(context.Background(), &aztables.SetAccessPolicyOptions{TableACL: list})))
}

// policies are the table's, with a Settle that is long beside a request: on a busy machine, a change with a shorter one has to begin again
// and again.
func (o *owner) policies() *access.Policies {
	o.Helper()
	if o.s.Clock != nil {
		return policiesOf(o, o.table, quickly)
	}
	began := time.Now()
	assert.Must[[]access.Policy](o)(policiesOf(o, o.table, quickly).List(context.Background()))
	return policiesOf(o, o.table, max(5*quickly, 20*time.Since(began)))
}

// sign makes a token for the owner's table that works without TLS.
func (o *owner) sign(g access.Grant) access.Token {
	o.Helper()
	g.Table, g.InsecureHTTP = o.table.Name(), true
	return assert.Must[access.Token](o)(o.signer.Sign(g))
}

// open is a client of a token for the owner's table.
func (o *owner) open(g access.Grant) *access.Client {
	o.Helper()
	return openToken(o, o.s, o.sign(g))
}

func openToken(t testing.TB, s *storagetest.Service, token access.Token) *access.Client {
	t.Helper()
	return assert.Must[*access.Client](t)(access.Open(token, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
}

func (o *owner) insert(keys ...tables.Key) {
	o.Helper()
	for _, key := range keys {
		assert.Check(o, o.table.Entities().Insert(context.Background(), bag(key)))
	}
}

func bag(key tables.Key) *tables.Entity {
	return &tables.Entity{Key: key, Properties: tables.Properties{{Name: "Text", Value: tables.String("x")}}}
}

func at(partition, row string) tables.Key { return tables.Key{Partition: partition, Row: row} }

// send makes a request of which nothing but its address says who makes it, with nobody in between who would refuse it.
func send(t testing.TB, s *storagetest.Service, method, address, body string, headers ...string) (status int, text string) {
	t.Helper()
	req := assert.Must[*http.Request](t)(http.NewRequestWithContext(context.Background(), method, address, strings.NewReader(body)))
	req.Header.Set("x-ms-version", "2019-02-02")
	req.Header.Set("Accept", "application/json;odata=nometadata")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	var transport policy.Transporter = http.DefaultClient
	if s.ClientOptions.Transport != nil {
		transport = s.ClientOptions.Transport
	}
	resp := assert.Must[*http.Response](t)(transport.Do(req))
	answer := assert.Must[[]byte](t)(io.ReadAll(resp.Body))
	assert.Check(t, resp.Body.Close())
	return resp.StatusCode, string(answer)
}

// counted is a client of a token, and the requests that it makes.
func (o *owner) counted(g access.Grant) (*access.Client, *storagetest.RequestCounter) {
	o.Helper()
	counter := &storagetest.RequestCounter{} // of what is sent: the token guard refuses behind the policies
	faulty, _ := o.s.Faulty(counter)
	return openToken(o, faulty, o.sign(g)), counter
}

func decoded(t testing.TB, key string) []byte {
	t.Helper()
	return assert.Must[[]byte](t)(base64.StdEncoding.DecodeString(key))
}
