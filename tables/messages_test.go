package tables_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

type anyToken struct{}

func (anyToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "x", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// TestMistakesOfConfiguration: what a program says wrongly about its account is ErrWiring before any request, and the text says what to do.
func TestMistakesOfConfiguration(t *testing.T) {
	const plain = "DefaultEndpointsProtocol=https;AccountName=contoso;AccountKey=" + someKey + ";EndpointSuffix=core.windows.net"
	of := func(text string) func() (*tables.Account, error) {
		return func() (*tables.Account, error) { return tables.NewAccountFromConnectionString(text, nil) }
	}
	for name, c := range map[string]struct {
		open func() (*tables.Account, error)
		want string
	}{
		"quoted":        {of(`"` + plain + `"`), "quotation marks"},
		"quoted singly": {of(`'` + plain + `'`), "quotation marks"},
		"half quoted":   {of(`"` + plain), "quotation marks"},
		"an emulator without its account": {of("AccountName=devstoreaccount1;AccountKey=" + someKey + ";TableEndpoint=http://127.0.0.1:10002"),
			"http://127.0.0.1:10002/devstoreaccount1"},
		"an emulator of queues without its account": {of("AccountName=devstoreaccount1;AccountKey=" + someKey + ";TableEndpoint=http://127.0.0.1:10002/devstoreaccount1;QueueEndpoint=http://localhost:10001/"),
			"http://localhost:10001/devstoreaccount1"},
		"a token over http": {func() (*tables.Account, error) {
			return tables.NewAccount(tables.Endpoints{Table: "http://127.0.0.1:10002/devstoreaccount1"}, anyToken{}, nil)
		}, "https"},
		"a token over http for queues": {func() (*tables.Account, error) {
			return tables.NewAccount(tables.Endpoints{Table: "https://contoso.table.core.windows.net", Queue: "http://contoso.queue.core.windows.net"}, anyToken{}, nil)
		}, "https"},
	} {
		_, err := c.open()
		if harness.WantKind(t, err, tables.ErrWiring); !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), someKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDeniedSaysWhy: an error of a refused credential has the service's own detail and says how far the clocks are apart.
func TestDeniedSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		ahead  time.Duration
		detail string
		want   []string
		not    string
	}{
		"behind": {3 * time.Hour, "", []string{"clock of this computer is ", "behind"}, "ahead"},
		"ahead":  {-20 * time.Minute, "", []string{"clock of this computer is ", "ahead"}, "behind"},
		"right":  {0, "", nil, "clock"},
		"detail": {0, "<AuthenticationErrorDetail>Signature not valid in the specified time frame: Start [x] - Expiry [y]\r\n</AuthenticationErrorDetail>",
			[]string{"Signature not valid in the specified time frame: Start [x] - Expiry [y]"}, "clock"},
	} {
		a := harness.InProcess(t, func(req *http.Request) (*http.Response, error) {
			resp := harness.Reply(req, http.StatusForbidden, "<Error><Code>AuthenticationFailed</Code><Message>refused</Message>"+c.detail+"</Error>")
			resp.Header.Set("Date", time.Now().Add(c.ahead).UTC().Format(http.TimeFormat))
			return resp, nil
		})
		_, err := a.Table("Contoso").Entities().Get(t.Context(), tables.Key{Partition: "p", Row: "r"})
		harness.WantKind(t, err, tables.ErrDenied)
		for _, want := range c.want {
			assert.Contains(t, err.Error(), want, name)
		}
		if strings.Contains(err.Error(), c.not) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNoEmulator: if nothing listens at an emulator's address, the error comes at once and says to start it.
func TestNoEmulator(t *testing.T) {
	began, calls := time.Now(), 0
	refusing := harness.Transport(func(*http.Request) (*http.Response, error) {
		calls++
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	})
	account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString("UseDevelopmentStorage=true",
		&tables.AccountOptions{ClientOptions: azcore.ClientOptions{Transport: refusing}}))
	err := account.Table("Contoso").Entities().Insert(t.Context(), harness.Bag("p", "r", "x"))
	if harness.WantKind(t, err, tables.ErrUnavailable); !strings.Contains(err.Error(), "start the emulator") || calls != 1 || time.Since(began) > 2*time.Second {
		t.Errorf("%d calls in %v: %v", calls, time.Since(began), err)
	}
}

// TestTooManyPropertiesSaysWhose: an entity with room for no property of the library says how many are whose.
func TestTooManyPropertiesSaysWhose(t *testing.T) {
	rows := harness.NewTable(t, harness.Account(t)).Entities()
	e := &tables.Entity{Key: tables.Key{Partition: "p", Row: "r"}}
	for i := range tables.MaxProperties + 1 {
		e.Set(fmt.Sprintf("P%d", i), tables.Boolean(true))
	}
	if err := rows.Insert(t.Context(), e); !errors.Is(err, tables.ErrTooLarge) || strings.Contains(err.Error(), "library") {
		t.Errorf("all are the program's: %v", err)
	}
}

// TestNamesOfCosmosTables: Azure Cosmos DB for Table accepts more names than Azure Storage.
func TestNamesOfCosmosTables(t *testing.T) {
	for endpoint, sent := range map[string]bool{"https://contoso.table.cosmos.azure.com:443": true, "https://contoso.table.core.windows.net": false} {
		for _, name := range []string{"To_Do", "To-Do"} {
			asked := false
			a := assert.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(tables.Endpoints{Table: endpoint}, "contoso", someKey,
				&tables.AccountOptions{ClientOptions: azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}, Transport: harness.Transport(func(req *http.Request) (*http.Response, error) {
					asked = true
					return harness.Reply(req, http.StatusNotFound, `{"odata.error":{"code":"ResourceNotFound","message":{"value":"no"}}}`), nil
				})}}))
			_, err := a.Table(name).Entities().Get(t.Context(), tables.Key{Partition: "p", Row: "r"})
			if asked != sent || errors.Is(err, tables.ErrWiring) == sent {
				t.Errorf("%s at %s: asked %v, %v", name, endpoint, asked, err)
			}
		}
	}
}

// TestPrefixOnce: an error that contains another one has the library's prefix once; an empty report says that nothing was done.
func TestPrefixOnce(t *testing.T) {
	err := &tables.Error{Op: "Outer", Kind: tables.ErrInvalid, Err: fmt.Errorf("because: %w", &tables.Error{Op: "Inner", Kind: tables.ErrInvalid, Err: errors.New("x")})}
	assert.Equal(t, strings.Count(err.Error(), "tablepatterns:"), 1, "times: %v", err)
	assert.Equal(t, (tables.BulkReport{}).String(), "nothing in 0s")
}
