package access_test

import (
	"context"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/access"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// timed runs f b.N times and returns the time of one.
func timed(b *testing.B, f func()) float64 {
	began := time.Now()
	for range b.N {
		f()
	}
	return float64(time.Since(began).Nanoseconds()) / float64(b.N)
}

// BenchmarkSign compares with the SDK's Sign, whose token lacks the bounds.
func BenchmarkSign(b *testing.B) {
	o := newOwner(b, storagetest.Simulator(b, nil))
	key := assert.Must[*aztables.SharedKeyCredential](b)(aztables.NewSharedKeyCredential(o.s.AccountName, o.s.AccountKey))
	grant := access.Grant{Range: access.Rows("Sales", compoundkey.Starting("empid", compoundkey.Int(123, 6))), Permissions: access.Query}
	values := aztables.SASSignatureValues{TableName: o.table.Name(), Permissions: "r", ExpiryTime: time.Now().Add(time.Hour).UTC(), StartPartitionKey: "Sales", EndPartitionKey: "Sales"}
	b.ReportAllocs()
	sdk := timed(b, func() { assert.Must[string](b)(values.Sign(key)) })
	b.ResetTimer()
	b.ReportMetric(timed(b, func() { o.sign(grant) })/sdk, "x-SDK")
}

// BenchmarkIssuer compares a kept token with a new one.
func BenchmarkIssuer(b *testing.B) {
	o := newOwner(b, storagetest.Simulator(b, nil))
	grant := access.Grant{Table: o.table.Name(), Range: access.Partition("June"), Permissions: access.Query, InsecureHTTP: true}
	issuer := assert.Must[*access.Issuer](b)(access.NewIssuer(o.signer, func(context.Context, string) (access.Grant, error) { return grant, nil }, nil))
	signed := timed(b, func() { o.sign(grant) })
	b.ReportAllocs()
	b.ResetTimer()
	b.ReportMetric(timed(b, func() { assert.Must[access.Token](b)(issuer.Token(b.Context(), "June")) })/signed, "x-Sign")
}

// BenchmarkGuard compares a read by a client with one by the same token and without the client's checks.
func BenchmarkGuard(b *testing.B) {
	o := newOwner(b, storagetest.Simulator(b, nil))
	o.insert(at("Sales", "r"))
	token := o.sign(access.Grant{Range: access.Partition("Sales"), Permissions: access.Query})
	client, ctx := openToken(b, o.s, token), b.Context()
	unchecked := assert.Must[*tables.Account](b)(tables.NewAccountWithSAS(tables.Endpoints{Table: o.s.TableEndpoint}, token.RevealQuery(),
		&tables.AccountOptions{ClientOptions: o.s.ClientOptions})).Table(o.table.Name())
	bare := timed(b, func() { _, err := unchecked.Entities().Get(ctx, at("Sales", "r")); assert.Check(b, err) })
	b.ReportAllocs()
	b.ResetTimer()
	b.ReportMetric(timed(b, func() { _, err := client.Table().Entities().Get(ctx, at("Sales", "r")); assert.Check(b, err) })/bare, "x-unchecked")
}
