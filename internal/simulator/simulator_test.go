package simulator_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe/accounts"
)

func TestNewRefusesAKeyThatIsNone(t *testing.T) {
	if _, err := simulator.New(simulator.Options{Key: "not base64!"}); err == nil || strings.Contains(err.Error(), "not base64!") {
		t.Errorf("error %v, which must be one and must not show the key", err)
	}
}

func TestDoKnowsItsHosts(t *testing.T) {
	a := accounts.New(t, simulator.Options{})
	for _, address := range []string{"http://example.com/", "http://other.table.sim.test/Tables", "http://contoso.file.sim.test/x", "http://contoso.sim.test/"} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		assert.Error(t, assert.Err(a.Do(req)), "%s was answered", address)
	}
}

func TestDoHonoursItsContext(t *testing.T) {
	a := accounts.New(t, simulator.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req := a.Request(http.MethodPost, "/Tables", `{"TableName":"Employees"}`).WithContext(ctx)
	assert.Equal(t, assert.Err(a.Do(req)), context.Canceled)
	assert.Equal(t, len(a.Tables()), 0, "the request was carried out")
}

func TestDoRefusesACutBody(t *testing.T) {
	a := accounts.New(t, simulator.Options{})
	req := a.Request(http.MethodPost, "/Tables", `{"TableName":"Employees"}`)
	req.ContentLength += 5
	assert.Error(t, assert.Err(a.Do(req)), "a body shorter than its header says was served")
}

func TestAnswersCarryTheirHeaders(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	r := a.Want(http.MethodGet, "/Employees()", "", 200, "", "x-ms-version", "2019-02-02", "x-ms-client-request-id", "mine")
	for name, want := range map[string]string{
		"Content-Type": "application/json;odata=minimalmetadata;streaming=true;charset=utf-8", "Cache-Control": "no-cache",
		"X-Content-Type-Options": "nosniff", "x-ms-version": "2019-02-02", "x-ms-client-request-id": "mine",
		"Server": "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0", "Date": a.Clock().Now().Format(http.TimeFormat),
	} {
		assert.Equal(t, r.Header.Get(name), want, name)
	}
	if again := a.Send(http.MethodGet, "/Employees()", ""); again.Header.Get("x-ms-request-id") == r.Header.Get("x-ms-request-id") {
		t.Error("two requests have one id")
	}
}

func TestAllServicesAreThere(t *testing.T) {
	a := accounts.New(t, simulator.Options{})
	for _, endpoint := range []string{a.TableEndpoint(), a.QueueEndpoint(), a.BlobEndpoint()} {
		for _, scheme := range []string{"http", "https"} {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.Replace(endpoint, "http", scheme, 1)+"/", nil)
			a.Answer(req).Check(t, endpoint, 401, "NoAuthenticationInformation")
		}
	}
}
