package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestReady: each missing resource is named, with what to do; nothing is missing after Create.
func TestReady(t *testing.T) {
	s := storagetest.Open(t)
	var requests storagetest.RequestCounter
	counted := *s
	counted.ClientOptions.PerRetryPolicies = append(slices.Clip(counted.ClientOptions.PerRetryPolicies), &requests)
	store := assert.Must[*patterns.Store](t)(patterns.Open("contoso", &patterns.StoreOptions{Account: storeAccount(t, &counted), Prefix: s.TableName(t)[max(0, len(s.TableName(t))-20):]}))
	container := blobstorage.Open(store, "photos").URL()
	repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(store.Table("Persons"), personSchema()))
	letters := assert.Must[interface{ Name() string }](t)(eventual.OpenQueue(store, "letters", nil))
	var names []string
	for _, r := range store.Resources() {
		names = append(names, r.Name)
		if want := map[string]string{"table": "Table", "queue": "Queue", "container": "Blob"}[r.Kind]; r.Role != "Storage "+want+" Data Contributor" {
			t.Errorf("%+v", r)
		}
	}
	want := []string{container, repo.Table().Name(), letters.Name(), letters.Name() + "-poison", letters.Name() + "-claims"}
	if !slices.Equal(names, want) {
		t.Fatalf("resources are %q, want %q", names, want)
	}
	if n := requests.Count(); n != 0 {
		t.Errorf("%d requests before Ready", n)
	}
	err := store.Ready(t.Context())
	if !errors.Is(err, tables.ErrMissingResource) {
		t.Fatal(err)
	}
	for _, name := range want {
		if !strings.Contains(err.Error(), name+" does not exist; call Store.Create") {
			t.Errorf("%s is not named in: %v", name, err)
		}
	}
	if n := requests.Count(); n != 5 {
		t.Errorf("%d requests for %d resources", n, len(want))
	}
	assert.Check(t, store.Create(t.Context()), store.Ready(t.Context()))
	assert.Check(t, repo.Table().Drop(t.Context()))
	err = store.Ready(t.Context())
	if e := harness.WantKind(t, err, tables.ErrMissingResource); e.Table != repo.Table().Name() || strings.Contains(err.Error(), "letters") {
		t.Errorf("%v", err)
	}
}

// TestReadyDenied: a resource that the credential may not read is named with the role that is missing.
func TestReadyDenied(t *testing.T) {
	endpoints := tables.AccountEndpoints("contoso")
	options := &tables.AccountOptions{ClientOptions: azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}, Transport: harness.Transport(func(req *http.Request) (*http.Response, error) {
		return harness.Reply(req, http.StatusForbidden, `{"odata.error":{"code":"AuthorizationPermissionMismatch","message":{"lang":"en-US","value":"no"}}}`, "Content-Type", "application/json"), nil
	})}}
	for want, account := range map[string]*tables.Account{
		"give the program the role Storage Table Data Contributor": assert.Must[*tables.Account](t)(tables.NewAccount(endpoints, readyToken{}, options)),
		"a role does not help a key":                               assert.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(endpoints, "contoso", "c29tZSBrZXk=", options)),
		"a role does not help a signature":                         assert.Must[*tables.Account](t)(tables.NewAccountWithSAS(endpoints, "sv=2019-02-02&sig=x", options)),
	} {
		store := assert.Must[*patterns.Store](t)(patterns.Open("contoso", &patterns.StoreOptions{Account: account}))
		store.Table("Persons")
		err := store.Ready(t.Context())
		if !errors.Is(err, tables.ErrDenied) || !strings.Contains(err.Error(), "table Persons cannot be read; ") || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
}

// readyToken is a credential of tokens that the service refuses.
type readyToken struct{}

func (readyToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "x", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// twoTeams is a store with two repositories whose index has lost a row each.
func twoTeams(t *testing.T) *patterns.Store {
	t.Helper()
	store := assert.Must[*patterns.Store](t)(patterns.Open("contoso", &patterns.StoreOptions{Account: storeAccount(t, storagetest.Simulator(t, nil))}))
	for _, name := range []string{"Second", "First"} {
		byEmail := intrapartition.NewUnique("email", func(p *person) string { return p.Email }, nil)
		repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(store.Table(name), personSchema(), byEmail))
		assert.Check(t, store.Create(t.Context()))
		for id := range 4 {
			p := ann()
			p.ID, p.Email = id, fmt.Sprintf("p%d", id)
			assert.Check(t, repo.Insert(t.Context(), p))
		}
		rows := repo.Table().Entities()
		assert.Check(t, rows.DeleteUnconditional(t.Context(), tables.Key{Partition: "red", Row: "email_p1"}))
	}
	return store
}

// TestStoreJobsOfOneName: of two repositories of one name, each token continues in the one whose it is.
func TestStoreJobsOfOneName(t *testing.T) {
	store := assert.Must[*patterns.Store](t)(patterns.Open("contoso", &patterns.StoreOptions{Account: storeAccount(t, storagetest.Simulator(t, nil))}))
	type guest struct {
		tables.Meta
		PartitionKey, RowKey string
	}
	byEmail := intrapartition.NewUnique("email", func(p *person) string { return p.Email }, nil)
	persons := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(store.Table("One"), personSchema(), byEmail))
	guests := assert.Must[*patterns.Repository[guest]](t)(patterns.NewRepository(store.Table("One"), patterns.Schema[guest]{Prefix: "guest"}))
	assert.Check(t, store.Create(t.Context()))
	for id := range 6 {
		p := ann()
		p.ID, p.Email = id, fmt.Sprintf("p%d", id)
		assert.Check(t, persons.Insert(t.Context(), p), guests.Insert(t.Context(), &guest{PartitionKey: "red", RowKey: fmt.Sprint("guest_", id)}))
	}
	var tokens []string
	o := fixed()
	o.SmallPages(2)
	o.Progress = func(r tables.Progress) { tokens = append(tokens, r.Resume) }
	all := assert.Must[patterns.VerifyReport](t)(store.Verify(t.Context(), &o))
	if all.Read != 12 || len(tokens) < 6 {
		t.Fatalf("%+v after %d tokens", all, len(tokens))
	}
	for _, token := range tokens {
		again := fixed()
		again.Resume = token
		if report, err := store.Verify(t.Context(), &again); err != nil || report.Read != 12 {
			t.Errorf("resumed: %+v, %v", report, err)
		}
	}
}

// TestStoreJobs: the jobs of a store are those of all repositories, with one report, and resume between them.
func TestStoreJobs(t *testing.T) {
	store := twoTeams(t)
	var found []string
	options := func() *patterns.JobOptions {
		found = nil
		o := fixed()
		o.Found = func(f patterns.Finding) error { found = append(found, f.Table+" "+f.Location); return nil }
		return &o
	}
	report := assert.Must[patterns.VerifyReport](t)(store.Verify(t.Context(), options()))
	if want := []string{"First email_p1", "Second email_p1"}; !slices.Equal(found, want) || report.Read != 8 || report.Findings != 2 || report.Resume != "" {
		t.Fatalf("%q, %+v", found, report)
	}
	// What was found before a token and what is found after it is everything, from every token of a run.
	type checkpoint struct {
		token string
		found []string
	}
	var checkpoints []checkpoint
	o := options()
	o.Progress = func(r tables.Progress) { checkpoints = append(checkpoints, checkpoint{r.Resume, slices.Clone(found)}) }
	assert.Must[patterns.VerifyReport](t)(store.Verify(t.Context(), o))
	behind := 0
	for _, c := range checkpoints {
		o := options()
		o.Resume = c.token
		again := assert.Must[patterns.VerifyReport](t)(store.Verify(t.Context(), o))
		if !slices.Contains(found, "First email_p1") {
			behind++
		}
		all := append(c.found, found...)
		slices.Sort(all)
		if again.Read != 8 || !slices.Equal(slices.Compact(all), []string{"First email_p1", "Second email_p1"}) {
			t.Errorf("resumed: %+v, found %q after %q", again, found, c.found)
		}
	}
	if behind == 0 {
		t.Errorf("none of %d tokens is behind the first repository's finding", len(checkpoints))
	}
	// An error of Found in the second repository leaves a token from which the run goes on there.
	o = options()
	full := errors.New("full")
	o.Found = func(f patterns.Finding) error {
		if found = append(found, f.Table); f.Table == "Second" {
			return full
		}
		return nil
	}
	broken, err := store.Repair(t.Context(), o)
	if !errors.Is(err, full) || broken.Resume == "" {
		t.Fatal(broken, err)
	}
	o = options()
	o.Resume = broken.Resume
	if _, err := store.Verify(t.Context(), o); !errors.Is(err, tables.ErrInvalid) {
		t.Errorf("the token of Repair resumes Verify: %v", err)
	}
	o = options()
	o.Resume = broken.Resume
	assert.Must[patterns.RepairReport](t)(store.Repair(t.Context(), o))
	assert.Check(t, harness.Clean(t.Context(), store.Verify, options()))
	if report := assert.Must[patterns.RebuildReport](t)(store.Rebuild(t.Context(), nil)); report.Unchanged != 8 || report.Written != 0 {
		t.Errorf("%+v", report)
	}
	for _, bad := range []*patterns.JobOptions{{Partitions: []string{"red"}}, {Patterns: []string{"email"}}, {Rows: 5}, {Resume: "?"}, {Resume: "e30"}} {
		_, err := store.Verify(t.Context(), bad)
		harness.WantKind(t, err, map[bool]error{true: tables.ErrInvalid, false: tables.ErrWiring}[bad.Resume != ""])
	}
}

// TestStoreProvisioned: Start says what is missing, and creates nothing.
func TestStoreProvisioned(t *testing.T) {
	store := assert.Must[*patterns.Store](t)(patterns.Open("contoso", &patterns.StoreOptions{Account: storeAccount(t, storagetest.Simulator(t, nil)), Provisioned: true}))
	personsIn(t, store)
	outbox := eventual.OnCommit("hired", func(context.Context, eventual.Commit[person]) error { return nil }, nil)
	assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(store.Table("Others"), personSchema(), outbox))
	if _, err := store.Start(t.Context()); !errors.Is(err, tables.ErrMissingResource) || !strings.Contains(err.Error(), "Emails") {
		t.Errorf("Start returned %v", err)
	}
	assert.Check(t, store.Create(t.Context()))
	assert.Check(t, assert.Must[func() error](t)(store.Start(t.Context()))())
}

// TestStoreContainerName: a container whose name cannot be is refused without a request.
func TestStoreContainerName(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	var requests storagetest.RequestCounter
	counted := *s
	counted.ClientOptions.PerRetryPolicies = append(counted.ClientOptions.PerRetryPolicies, &requests)
	store := assert.Must[*patterns.Store](t)(patterns.Open("contoso", &patterns.StoreOptions{Account: storeAccount(t, &counted)}))
	blobstorage.Open(store, "my_photos")
	err := store.Create(t.Context())
	if !errors.Is(err, tables.ErrInvalid) || !strings.Contains(err.Error(), `"my_photos"`) || requests.Count() != 0 {
		t.Errorf("%v after %d requests", err, requests.Count())
	}
}

// TestOrderServiceIsShort: what Example_orderService declares, imports included, has at most 100 lines that are not blank or comments.
func TestOrderServiceIsShort(t *testing.T) {
	text := string(assert.Must[[]byte](t)(os.ReadFile("exampleorders_test.go")))
	declared, _, found := strings.Cut(text, "// An order service:")
	lines := 0
	for line := range strings.Lines(declared) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			lines++
		}
	}
	if !found || lines < 50 || lines > 100 {
		t.Errorf("%d lines", lines)
	}
	t.Logf("%d lines", lines)
}

// A readiness probe asks the store. What is missing is named.
func ExampleStore_Ready() {
	service, err := storagetest.NewSimulator(nil)
	if err != nil {
		log.Fatal(err)
	}
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	store, err := patterns.Open("contoso", &patterns.StoreOptions{Account: account})
	if err != nil {
		log.Fatal(err)
	}
	store.Table("Customers") // NewRepository gets it
	err = store.Ready(context.Background())
	fmt.Println(errors.Is(err, tables.ErrMissingResource), strings.HasPrefix(err.Error(), "table Customers does not exist; call Store.Create"))
	for _, r := range store.Resources() {
		fmt.Println(r.Kind, r.Name, "-", r.Role)
	}
	// Output:
	// true true
	// table Customers - Storage Table Data Contributor
}

// TestResourcesHoldNoSignature: the URL of a container that was opened with a shared access signature is named without it.
func TestResourcesHoldNoSignature(t *testing.T) {
	const signature = "c2VjcmV0"
	account := assert.Must[*tables.Account](t)(tables.NewAccountWithSAS(tables.Endpoints{Table: "https://contoso.table.core.windows.net", Blob: "https://contoso.blob.core.windows.net"}, "sv=2024-11-04&sp=r&sig="+signature, nil))
	store := assert.Must[*patterns.Store](t)(patterns.Open("contoso", &patterns.StoreOptions{Account: account}))
	if url := blobstorage.Open(store, "photos").URL(); !strings.Contains(url, signature) {
		t.Fatalf("%s has no signature", url)
	}
	if got := fmt.Sprint(store.Resources()); got != "[{container https://contoso.blob.core.windows.net/photos Storage Blob Data Contributor}]" {
		t.Error(got)
	}
}
