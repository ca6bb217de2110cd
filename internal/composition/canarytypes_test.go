package composition

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azkeys"

	"github.com/tablepatterns/tablepatterns/access"
	"github.com/tablepatterns/tablepatterns/backup"
	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/dataseries"
	"github.com/tablepatterns/tablepatterns/denormalization"
	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/eventual/archive"
	"github.com/tablepatterns/tablepatterns/heterogeneous"
	"github.com/tablepatterns/tablepatterns/highvolumedelete"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/inspect"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/logdata"
	"github.com/tablepatterns/tablepatterns/logtail"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/relationships"
	"github.com/tablepatterns/tablepatterns/scatter"
	"github.com/tablepatterns/tablepatterns/tables"
	"github.com/tablepatterns/tablepatterns/widentities"
)

// harmlessTypes are exported types that hold no secret and lead to none: interfaces and functions, and what is made of numbers, times,
// names, keys and callbacks of the caller alone. A type that holds a client, a credential, a registry, a repository or a table is not one of
// them, nor is one that holds what the program has stored.
const harmlessTypes = `
driver.Host driver.Layout driver.Authentication patterns.Pattern
eventual.Handler archive.Destination archive.Files archive.Part dataseries.Number heterogeneous.AnyType relationships.Source encryption.KeyWrapper largeentities.Sealer
entity.BulkVerb driver.RowVerb driver.Stage driver.Protection driver.ChangeKind entity.Type tables.QueryClass entity.FindingKind patterns.RewriteJob
backup.Existing backup.DifferenceKind access.Permission highvolumedelete.Unit highvolumedelete.RowOrder
compoundkey.Enum compoundkey.Error compoundkey.Span compoundkey.Target compoundkey.Part compoundkey.Key compoundkey.Folded compoundkey.Newest compoundkey.Interval heterogeneous.VersionError`

// valueTypes are exported types whose purpose is to carry the program's own values, as they are: their texts show them, as those of a
// string do. They hold no key.
const valueTypes = `
entity.Entity entity.Value entity.Property entity.Properties entity.Condition tables.Page driver.Change driver.ChangeState driver.Copy driver.RowOperation driver.Beside
driver.ApplyOptions driver.OutsideCopy driver.Reading driver.LaidOut driver.FurtherRow driver.Reconciliation heterogeneous.Page heterogeneous.Step dataseries.Slot dataseries.Values
relationships.Joined logdata.Record eventual.Message eventual.PoisonMessage`

// everyValue makes a value of each exported type that can hold or reach a secret, most of them after it was used.
func (x *sensitive) everyValue(t *testing.T) []any {
	t.Helper()
	ctx, d := t.Context(), x.desk
	account := d.account
	sasAccount := assert.Must[*tables.Account](t)(tables.NewAccountWithSAS(account.Endpoints(), x.sas(), nil))
	read := assert.Must[*item](t)(d.items.Get(ctx, plainKey(x.item(1))))
	keys := assert.Must[*eventual.SigningKeys](t)(eventual.NewSigningKeys([]byte(canarySigning)))
	queueOptions := eventual.QueueOptions{SigningKeys: keys}
	queue := assert.Must[*eventual.Queue](t)(eventual.NewQueue(account, "signed", &queueOptions))
	worker := assert.Must[*eventual.Worker](t)(eventual.NewWorker(queue, nil, nil))
	mover := assert.Must[*archive.Mover[site]](t)(archive.New(queue, "m", d.sites, archive.ToContainer(d.photos, func(v *site) string { return v.Name }), nil))
	signer := assert.Must[*access.Signer](t)(access.NewSigner(account, x.s.AccountKey, nil))
	grant := access.Grant{Table: d.table.Name(), Range: access.WholeTable(), Permissions: access.Query, InsecureHTTP: true}
	token := assert.Must[access.Token](t)(signer.Sign(grant))
	x.birds.keys = append(x.birds.keys, formsOf(strings.Split(strings.Split(token.RevealQuery(), "sig=")[1], "&")[0])...)
	issuer := assert.Must[*access.Issuer](t)(access.NewIssuer(signer, func(context.Context, string) (access.Grant, error) { return grant, nil }, nil))
	issued := assert.Must[access.Token](t)(issuer.Token(ctx, "june"))
	x.birds.keys = append(x.birds.keys, formsOf(strings.Split(strings.Split(issued.RevealQuery(), "sig=")[1], "&")[0])...)
	beacon := x.office.beacon
	near, far := intrapartition.NewIndex("near", byName, nil), interpartition.NewIndex("far", byName, nil)
	stream := assert.Must[encryption.Stream](t)(encryption.NewStream(d.registry, nil))
	vault := assert.Must[*azkeys.Client](t)(azkeys.NewClient("https://contoso.vault.azure.net", nil, nil))
	cache := assert.Must[*relationships.Cache[item]](t)(relationships.NewCache(d.items, d.items.Query().Partition(theSite), nil))
	assert.Must[map[tables.Key]*item](t)(cache.Lookup(ctx, []tables.Key{plainKey(read)}))
	transaction := d.table.NewTransaction()
	explained := assert.Must[*patterns.Explanation](t)(d.items.Explain(ctx, driver.ChangeReplace, read))
	log := assert.Must[*logdata.Log](t)(logdata.New(d.photos, "web", nil))
	writer := assert.Must[*logdata.Writer](t)(log.NewWriter(nil))
	assert.Check(t, writer.Write(ctx, logdata.Record{Time: time.Now(), Data: []byte("x")}))
	t.Cleanup(func() { assert.Check(t, writer.Close(context.WithoutCancel(ctx))) })
	largeOptions := largeentities.Options{Account: account, Sealer: stream}
	codec := assert.Must[*tables.Codec[item]](t)(tables.NewCodec[item]())
	storeOptions := patterns.StoreOptions{Account: account, Intents: eventual.IntentQueue(&queueOptions, nil)}
	store := assert.Must[*patterns.Store](t)(patterns.Open("canary", &storeOptions))
	values := []any{account, store, storeOptions, storeOptions.Intents, blobstorage.Resource(d.photos), sasAccount, tables.AccountOptions{Logger: account.Logger()}, account.Endpoints(), d.table, transaction, d.table.Entities(), d.items, d.items.Query(),
		patterns.Schema[item]{Key: plainKey}, codec, (*core.Codec)(codec), (*core.Table)(d.table), core.Source{Table: (*core.Table)(d.table)}, *core.StateOf(&read.Meta), &read.Meta, explained, explained.Rows[0],
		queue, queue.Poison(), worker, mover, keys, queueOptions, eventual.WorkerOptions{}, worker.Stats(), eventual.Step{Name: "x"},
		signer, token, issuer, grant, grant.Range, assert.Must[*access.Client](t)(access.Open(token, &tables.AccountOptions{ClientOptions: x.s.ClientOptions})), assert.Must[*access.Policies](t)(access.NewPolicies(d.table, nil)),
		beacon, d.registry, stream, x.wrapper, encryption.NewChain(x.wrapper, x.wrapper), encryption.Options{Legacy: x.wrapper}, encryption.New[item]("e", d.registry, &encryption.Options{Legacy: x.wrapper}),
		assert.Must[encryption.VaultKey](t)(encryption.NewVaultKey(vault, "https://contoso.vault.azure.net/keys/tables", nil)), assert.Must[encryption.LocalRSAKey](t)(x.rsaKey()),
		d.photo, largeOptions, read.Clip, d.team, d.teams, d.name, d.name.In("Sales"), near, near.In("Sales"), far, d.badge, d.count, d.lengths, relationships.SummaryOptions[item]{}, relationships.GroupAggregate{}, relationships.Aggregate{}, d.counted, d.members, d.typ, cache,
		log, writer, widentities.New[item](nil), assert.Must[*heterogeneous.Registry](t)(heterogeneous.NewRegistry(d.table, d.typ)),
		assert.Must[*relationships.Pair[site, site]](t)(relationships.NewPair(d.sites, d.sites, func(k tables.Key) tables.Key { return siteKey(k.Partition, "partner") })),
		relationships.Reference[item, site]{}, d.link(0, nil), denormalization.New("c", d.link(0, nil), nil),
		assert.Must[*dataseries.Counter[int64]](t)(dataseries.NewCounter[int64](d.table, "n", 4, nil)), assert.Must[*dataseries.Series[int64]](t)(dataseries.New[int64](d.table, "s", 4, nil)),
	}
	values = append(values, patterns.HostOf(d.items).Query())
	for _, p := range patterns.HostOf(d.items).Patterns() {
		values = append(values, p, p.Binding, p.Effect)
		if p.Outside != nil {
			values = append(values, *p.Outside)
		}
		if p.Transform != nil {
			values = append(values, *p.Transform)
		}
		if p.Totals != nil {
			values = append(values, *p.Totals)
		}
	}
	return append(values, x.reports(t)...)
}

// reports are options and reports, whose fields are numbers, keys and errors. Those of calls that were made are in TestCanaryErrors.
func (x *sensitive) reports(t *testing.T) []any {
	t.Helper()
	d := x.desk
	meter := assert.Must[*scatter.Meter](t)(scatter.NewMeter(nil))
	spread := assert.Must[*scatter.Spread[site]](t)(scatter.New(d.away, scatter.Schema[site]{Name: "s", Order: scatter.ByTime("x", time.Hour), Row: func(v *site) string { return v.Name }, Partitions: 2}, &scatter.Options{Meter: meter}))
	_ = spread
	return []any{driver.Fact{}, driver.Scope{}, tables.BulkOptions{}, tables.BulkReport{}, tables.Run{}, tables.Progress{}, patterns.VerifyReport{}, patterns.RepairReport{}, patterns.RebuildReport{}, patterns.RewriteReport{}, patterns.RemoveReport{}, patterns.DeleteOptions{}, patterns.DeleteReport{},
		dataseries.SweepReport{}, backup.Report{}, backup.CopyReport{}, backup.CompareReport{}, intents.Intent{}, tables.Key{}, tables.Error{}, tables.ParallelOptions[item]{}, tables.Plan{},
		patterns.JobOptions{}, patterns.Finding{}, patterns.Resource{}, assert.Must[*tables.Rows[tables.Entity]](t)(tables.RowsOf[tables.Entity](d.table)),
		eventual.SweepOptions{}, eventual.SweepReport{}, archive.Options{}, archive.File{}, archive.StoredFile{}, driver.Along{}, eventual.SendOptions{}, eventual.OutboxOptions{}, eventual.Inserts, eventual.EventsOptions{}, &eventual.Events[item]{}, eventual.OnCommit[item]("o", nil, nil), access.IssuerOptions{}, access.Policy{}, access.PoliciesOptions{}, access.SignerOptions{},
		encryption.DataKeyID{1}, encryption.DataKeyInfo{}, encryption.RegistryOptions{}, encryption.StreamOptions{}, encryption.VaultOptions{}, encryption.WrappedKey{},
		largeentities.StreamOptions{}, largeentities.DownloadOptions{}, largeentities.SweepOptions{}, largeentities.SweepReport{}, indexentities.FindOptions{}, indexentities.Value{},
		intrapartition.Options{}, interpartition.Options[item]{Table: d.table}, indexentities.Options[item]{},
		logdata.Options{}, logdata.Blob{}, logdata.QueryOptions{}, logdata.Damage{}, logdata.WriterOptions{}, logdata.Stats{}, denormalization.Options{}, widentities.Options{}, relationships.CacheOptions{},
		logtail.Entry{}, logtail.FollowOptions{}, logtail.Follower[item]{}, logtail.Schema[item]{}, logtail.Log[item]{}, highvolumedelete.DropOptions{}, highvolumedelete.DropReport{}, highvolumedelete.ReadOptions[item]{}, highvolumedelete.Schema[item]{},
		highvolumedelete.Tables[item]{}, backup.Options{}, backup.Target{To: d.table}, backup.RestoreReport{}, backup.Difference{}, backup.Manifest{}, backup.TableSummary{}, backup.BlobSummary{}, backup.BlobSet{Container: d.photos, Table: d.table}, assert.Must[*backup.Vault](t)(backup.OpenContainer(d.photos, "backups")), dataseries.Options{}, dataseries.SweepOptions{}, scatter.Epoch{}, scatter.MeterOptions{}, meter, scatter.Load{}, scatter.NaturalSchema[site]{}, scatter.Order{}, scatter.ReadOptions{},
		scatter.Schema[site]{}, scatter.Options{Meter: meter}, spread, scatter.Writer[site]{}, scatter.Natural[site]{}, heterogeneous.Query{}, heterogeneous.TypeOptions{},
		inspect.Options{}, inspect.Prices{}, assert.Must[*inspect.Report](t)(inspect.Repository(t.Context(), d.items, nil)), inspect.Partitions{}, inspect.Partition{}, inspect.Bucket{}, inspect.LargeRow{}, inspect.Library{},
		inspect.Property{}, inspect.TypeCount{}, inspect.Type{}, inspect.Problem{}, inspect.ZeroField{}, inspect.UnknownProperty{}, inspect.Schema{}, inspect.RefusedEntity{}, inspect.TakenKey{}, inspect.Key{},
		inspect.Cost{}, inspect.Requests{}, inspect.Seconds(1)}
}

// TestCanaryTypes: no exported type of the library shows the account's key, a signature, a data key, a signing key, or what an encrypted
// property holds, by any verb, in JSON or in a log; and each exported type is looked at, or listed as one that cannot.
func TestCanaryTypes(t *testing.T) {
	x := newSensitive(t)
	for _, v := range x.everyValue(t) {
		x.value(v, x.birds.keys, x.plain)
	}
	ctx, read := t.Context(), assert.Must[*item](t)(x.desk.items.Get(t.Context(), plainKey(x.item(1))))
	page := assert.Must[tables.Page[item]](t)(x.desk.items.Query().Partition(theSite).Page(ctx, ""))
	for _, v := range []any{read, page, assert.Must[*tables.Entity](t)(x.desk.table.Entities().Get(ctx, plainKey(read))), tables.String(canaryPlaintext), tables.Eq("Name", "x"),
		eventual.Message{Body: []byte(canaryPlaintext)}, eventual.PoisonMessage{}, driver.Change{Entity: read}, driver.Reconciliation{Entity: read}, eventual.Commit[item]{Entity: read}, eventual.Event[item]{Body: *read}, logdata.Record{}} {
		x.value(v, x.birds.keys) // of these, the values are the program's own
	}
	exported := exportedTypes(t)
	listed := strings.Fields(harmlessTypes + valueTypes)
	for _, name := range exported {
		if harmless := slices.Contains(strings.Fields(harmlessTypes), name); x.watched[name] && harmless || !x.watched[name] && !slices.Contains(listed, name) {
			t.Errorf("%s: add a value of the type to everyValue, or list it as harmless; not both", name)
		}
	}
	for _, name := range listed {
		if !slices.Contains(exported, name) {
			t.Errorf("%s is listed, and no package exports it", name)
		}
	}
	if n := len(exported); n < 150 {
		t.Errorf("only %d exported types were found", n)
	}
	x.verdict(t, map[string]int{"value": 4_000})
}

// sas is the query of an account's shared access signature, which no service accepts.
func (x *sensitive) sas() string {
	return "sv=2019-02-02&ss=tqb&srt=sco&sp=rwdlacup&se=2999-01-01T00%3A00%3A00Z&sig=" + url.QueryEscape(canarySignature)
}

func (x *sensitive) rsaKey() (encryption.LocalRSAKey, error) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return encryption.LocalRSAKey{}, err
	}
	x.birds.keys = append(x.birds.keys, private.D.String(), private.D.Text(16), private.Primes[0].String())
	return encryption.NewLocalRSAKey("rsa", private)
}
