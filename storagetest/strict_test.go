package storagetest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// lenient is a service that accepts everything, as Azurite does much, and counts what reaches it.
type lenient struct {
	reached int
	body    string
}

func (l *lenient) Do(req *http.Request) (*http.Response, error) {
	l.reached++
	if req.Body != nil {
		b, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		l.body = string(b)
	}
	status, body := http.StatusNoContent, ""
	switch {
	case strings.HasSuffix(req.URL.Path, "/$batch"):
		status, body = http.StatusAccepted, "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n\r\n--c--\r\n--b--\r\n"
	case req.Method == http.MethodGet:
		status, body = http.StatusOK, `{"value":[]}`
	case strings.HasSuffix(req.URL.Path, "/Tables"):
		status, body = http.StatusCreated, `{"TableName":"x"}`
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"multipart/mixed; boundary=b"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
}

func strictTables(t *testing.T, inner policy.Transporter, address string) *aztables.ServiceClient {
	t.Helper()
	options := &aztables.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: storagetest.Strict(inner), Retry: policy.RetryOptions{MaxRetries: -1}}}
	client, err := aztables.NewServiceClientFromConnectionString(
		"DefaultEndpointsProtocol=http;AccountName=contoso;AccountKey=a2V5;TableEndpoint="+address, options)
	check(t, err)
	return client
}

func entityOf(pk, rk, properties string) []byte {
	if properties != "" {
		properties = "," + properties
	}
	return fmt.Appendf(nil, `{"PartitionKey":%q,"RowKey":%q%s}`, pk, rk, properties)
}

// manyProperties makes n properties of size characters each.
func manyProperties(n, size int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`"P%d":"%s"`, i, strings.Repeat("x", size))
	}
	return strings.Join(all, ",")
}

// Each is a request that Azure refuses. Most of them Azurite accepts.
var refusals = []struct {
	name string
	code string
	do   func(ctx context.Context, s *aztables.ServiceClient, table *aztables.Client) error
}{
	{"253 properties", "TooManyProperties", insertOf("p", "r", manyProperties(253, 1))},
	{"more than 1 MiB", "EntityTooLarge", insertOf("p", "r", manyProperties(20, 30_000))},
	{"a string of 32,769 characters", "PropertyValueTooLarge", insertOf("p", "r", manyProperties(1, 32_769))},
	{"a hyphen in a property's name", "PropertyNameInvalid", insertOf("p", "r", `"a-b":"x"`)},
	{"a long property name", "PropertyNameTooLong", insertOf("p", "r", `"`+strings.Repeat("a", 256)+`":"x"`)},
	{"letters as an Int64", "InvalidInput", insertOf("p", "r", `"N@odata.type":"Edm.Int64","N":"abc"`)},
	{"the year 1500", "OutOfRangeInput", insertOf("p", "r", `"D@odata.type":"Edm.DateTime","D":"1500-01-01T00:00:00Z"`)},
	{"no DateTime at all", "InvalidInput", insertOf("p", "r", `"D@odata.type":"Edm.DateTime","D":"not a date"`)},
	{"a slash in a key", "OutOfRangeInput", insertOf("a/b", "r", "")},
	{"a key of 513 characters", "KeyValueTooLarge", insertOf("p", strings.Repeat("k", 513), "")},
	{"a short table name", "OutOfRangeInput", func(ctx context.Context, s *aztables.ServiceClient, _ *aztables.Client) error {
		_, err := s.CreateTable(ctx, "ab", nil)
		return err
	}},
	{"a table name with a hyphen", "InvalidResourceName", func(ctx context.Context, s *aztables.ServiceClient, _ *aztables.Client) error {
		_, err := s.CreateTable(ctx, "a-bc", nil)
		return err
	}},
	{"$top of 1001", "InvalidInput", func(ctx context.Context, _ *aztables.ServiceClient, table *aztables.Client) error {
		top := int32(1001)
		_, err := table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Top: &top}).NextPage(ctx)
		return err
	}},
	{"16 comparisons", "InvalidInput", func(ctx context.Context, _ *aztables.ServiceClient, table *aztables.Client) error {
		filter := strings.TrimSuffix(strings.Repeat("A eq 1 or ", 16), " or ")
		_, err := table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &filter}).NextPage(ctx)
		return err
	}},
	{"an invalid filter", "InvalidInput", func(ctx context.Context, _ *aztables.ServiceClient, table *aztables.Client) error {
		filter := "A eq"
		_, err := table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &filter}).NextPage(ctx)
		return err
	}},
}

func insertOf(pk, rk, properties string) func(context.Context, *aztables.ServiceClient, *aztables.Client) error {
	return func(ctx context.Context, _ *aztables.ServiceClient, table *aztables.Client) error {
		_, err := table.AddEntity(ctx, entityOf(pk, rk, properties), nil)
		return err
	}
}

// The addresses of an account, and of an emulator, where the account is a part of the path.
var strictAddresses = []string{"http://contoso.table.core.windows.net", "http://127.0.0.1:10002/contoso"}

func TestStrictRefusesWhatAzureRefuses(t *testing.T) {
	for _, address := range strictAddresses {
		for _, c := range refusals {
			t.Run(c.name+" "+address, func(t *testing.T) {
				inner := &lenient{}
				s := strictTables(t, inner, address)
				err := c.do(t.Context(), s, s.NewClient("Employees"))
				var answer *azcore.ResponseError
				if !errors.As(err, &answer) || answer.StatusCode != http.StatusBadRequest || answer.ErrorCode != c.code {
					t.Errorf("answered %v, want 400 %s", err, c.code)
				}
				assert.Equal(t, inner.reached, 0, "the service saw the request")
			})
		}
	}
}

// A refused transaction is a success with a refusal inside, which names the operation.
func TestStrictRefusesTransactions(t *testing.T) {
	add := func(pk, rk, properties string) aztables.TransactionAction {
		return aztables.TransactionAction{ActionType: aztables.TransactionTypeAdd, Entity: entityOf(pk, rk, properties)}
	}
	var many []aztables.TransactionAction
	for i := range 101 {
		many = append(many, add("p", fmt.Sprint(i), ""))
	}
	for name, c := range map[string]struct {
		actions []aztables.TransactionAction
		want    string
	}{
		"two partitions":  {[]aztables.TransactionAction{add("p", "r", ""), add("q", "r", "")}, "CommandsInBatchActOnDifferentPartitions"},
		"a row twice":     {[]aztables.TransactionAction{add("p", "r", ""), add("p", "r", "")}, "InvalidDuplicateRow"},
		"101 operations":  {many, "InvalidInput"},
		"a bad property":  {[]aztables.TransactionAction{add("p", "r", ""), add("p", "s", `"a-b":1`)}, "PropertyNameInvalid"},
		"too many of all": {[]aztables.TransactionAction{add("p", "r", manyProperties(253, 1))}, "TooManyProperties"},
	} {
		for _, address := range strictAddresses {
			inner := &lenient{}
			_, err := strictTables(t, inner, address).NewClient("Employees").SubmitTransaction(t.Context(), c.actions, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) || inner.reached != 0 {
				t.Errorf("%s at %s: %v, want %s; %d requests reached the service", name, address, err, c.want, inner.reached)
			}
		}
	}
}

// What is right goes on as it came, and what is not a table's is no matter of these rules.
func TestStrictPassesTheRest(t *testing.T) {
	for _, address := range strictAddresses {
		inner := &lenient{}
		s := strictTables(t, inner, address)
		table := s.NewClient("Employees")
		check(t, assert.Err(s.CreateTable(t.Context(), "Employees", nil)))
		entity := entityOf("O'Brien", "", `"N@odata.type":"Edm.Int64","N":"1","Text":"größer"`)
		check(t, assert.Err(table.AddEntity(t.Context(), entity, nil)))
		if !strings.Contains(inner.body, "größer") || !strings.Contains(inner.body, "O'Brien") {
			t.Errorf("%s arrived as %s", entity, inner.body)
		}
		check(t, assert.Err(table.DeleteEntity(t.Context(), "O'Brien", "", nil)))
		check(t, assert.Err(table.NewListEntitiesPager(nil).NextPage(t.Context())))
		_, err := table.SubmitTransaction(t.Context(), []aztables.TransactionAction{{ActionType: aztables.TransactionTypeAdd, Entity: entity}}, nil)
		check(t, err)
		if !strings.Contains(inner.body, "größer") || inner.reached != 5 {
			t.Errorf("%d requests, the last of them %s", inner.reached, inner.body)
		}
	}
	inner := &lenient{}
	body := io.NopCloser(strings.NewReader("unread"))
	req := httptest.NewRequest(http.MethodPut, "http://contoso.blob.core.windows.net/a/b", body)
	if _, err := storagetest.Strict(inner).Do(req); err != nil || inner.body != "unread" {
		t.Errorf("a blob: %v, %q", err, inner.body)
	}
	broken := errors.New("broken")
	req = httptest.NewRequest(http.MethodPost, "http://contoso.table.core.windows.net/T", io.MultiReader(bytes.NewReader(nil), failing{broken}))
	assert.Equal(t, assert.Err(storagetest.Strict(inner).Do(req)), broken)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// A dropped table's name is taken for 40 s; here, 40 s of a time that costs nothing.
func TestStrictKeepsTheNameOfADroppedTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := strictTables(t, &lenient{}, strictAddresses[1])
		create := func(name string) string {
			_, err := s.CreateTable(t.Context(), name, nil)
			var answer *azcore.ResponseError
			if errors.As(err, &answer) {
				return fmt.Sprint(answer.StatusCode, " ", answer.ErrorCode)
			}
			check(t, err)
			return ""
		}
		check(t, assert.Err(s.DeleteTable(t.Context(), "Employees", nil)))
		got := []string{create("Employees"), create("EMPLOYEES"), create("Employees2")}
		time.Sleep(39 * time.Second)
		got = append(got, create("Employees"))
		time.Sleep(time.Second)
		got = append(got, create("Employees"))
		const taken = "409 TableBeingDeleted"
		if want := []string{taken, taken, "", taken, ""}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// Azurite's own ClientOptions hold the rules; without them, it does not, which is why they are there.
func TestAzuriteIsStrict(t *testing.T) {
	s := sharedAzurite(t)
	tables, err := aztables.NewServiceClientFromConnectionString(s.ConnectionString, &aztables.ClientOptions{ClientOptions: s.ClientOptions})
	check(t, err)
	bare := assert.Must[*aztables.ServiceClient](t)(aztables.NewServiceClientFromConnectionString(s.ConnectionString, nil))
	name := s.TableName(t)
	check(t, assert.Err(tables.CreateTable(t.Context(), name, nil)))
	bad := entityOf("p", "bad", `"a-b":"x"`)
	assert.NoError(t, assert.Err(bare.NewClient(name).AddEntity(t.Context(), bad, nil)), "Azurite itself")
	var answer *azcore.ResponseError
	if _, err := tables.NewClient(name).AddEntity(t.Context(), bad, nil); !errors.As(err, &answer) || answer.ErrorCode != "PropertyNameInvalid" {
		t.Errorf("answered %v", err)
	}
	check(t, assert.Err(tables.NewClient(name).AddEntity(t.Context(), entityOf("p", "good", `"ab":"x"`), nil)))
	blobs, err := azblob.NewClientFromConnectionString(s.ConnectionString, &azblob.ClientOptions{ClientOptions: s.ClientOptions})
	check(t, err)
	check(t, assert.Err(blobs.CreateContainer(t.Context(), s.ContainerName(t), nil)))
}
