package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/patterns"
)

// refusalBody is the service's error body with this code.
func refusalBody(code string) string {
	return `{"odata.error":{"code":"` + code + `","message":{"lang":"en-US","value":"no"}}}`
}

// TestErrorKinds: what status and code of an answer mean, for a read, a single write, a transaction that is refused inside its
// answer, and the creation of a table. A kind for reads is never ErrUnknownOutcome.
func TestErrorKinds(t *testing.T) {
	kinds := []error{patterns.ErrNotFound, patterns.ErrExists, patterns.ErrConflict, patterns.ErrDuplicate, patterns.ErrTooLarge, patterns.ErrInvalid,
		patterns.ErrUnknownOutcome, patterns.ErrTableNotFound, patterns.ErrTableBeingDeleted, patterns.ErrDenied, patterns.ErrUnavailable, patterns.ErrGarbled}
	for _, c := range []struct {
		status      int
		code        string
		read, write error
	}{
		{501, "NotImplemented", patterns.ErrInvalid, patterns.ErrInvalid}, {501, "", patterns.ErrInvalid, patterns.ErrInvalid},
		{405, "MethodNotAllowed", patterns.ErrInvalid, patterns.ErrInvalid}, {415, "AtomFormatNotSupported", patterns.ErrInvalid, patterns.ErrInvalid},
		{400, "InvalidInput", patterns.ErrInvalid, patterns.ErrInvalid}, {400, "InvalidAuthenticationInfo", patterns.ErrDenied, patterns.ErrDenied},
		{401, "InvalidAuthenticationInfo", patterns.ErrDenied, patterns.ErrDenied}, {403, "AuthenticationFailed", patterns.ErrDenied, patterns.ErrDenied},
		{409, "EntityAlreadyExists", patterns.ErrExists, patterns.ErrExists}, {409, "OperationInProgress", patterns.ErrGarbled, patterns.ErrGarbled},
		{409, "", patterns.ErrGarbled, patterns.ErrGarbled}, {413, "RequestBodyTooLarge", patterns.ErrTooLarge, patterns.ErrTooLarge},
		{503, "ServerBusy", patterns.ErrUnavailable, patterns.ErrUnavailable}, {429, "TooManyRequests", patterns.ErrUnavailable, patterns.ErrUnavailable},
		{429, "", patterns.ErrUnavailable, patterns.ErrUnavailable}, {503, "", patterns.ErrUnavailable, patterns.ErrUnknownOutcome},
		{503, "OperationTimedOut", patterns.ErrUnavailable, patterns.ErrUnknownOutcome}, {500, "OperationTimedOut", patterns.ErrUnavailable, patterns.ErrUnknownOutcome},
		{500, "", patterns.ErrUnavailable, patterns.ErrUnknownOutcome}, {408, "", patterns.ErrUnavailable, patterns.ErrUnknownOutcome},
		{502, "", patterns.ErrUnavailable, patterns.ErrUnknownOutcome}, {504, "", patterns.ErrUnavailable, patterns.ErrUnknownOutcome},
	} {
		table := inProcess(t, refusingAll(c.status, c.code)).Table("Contoso")
		x := table.NewTransaction()
		x.Insert(bag("p", "r", "ours"))
		x.Insert(bag("p", "s", "ours"))
		calls := map[string]error{"Insert": table.Entities().Insert(context.Background(), bag("p", "r", "ours")), "Create": table.Create(context.Background())}
		_, calls["Commit"] = x.Commit(context.Background())
		_, calls["Get"] = table.Entities().Get(context.Background(), patterns.Key{Partition: "p", Row: "r"})
		for name, err := range calls {
			want := c.write
			if name == "Get" {
				want = c.read
			}
			for _, kind := range kinds {
				if errors.Is(err, kind) != (kind == want) {
					t.Errorf("%d %q: %s: %v is %v: %v, want the kind %v alone", c.status, c.code, name, err, kind, errors.Is(err, kind), want)
				}
			}
		}
	}
}

// refusingAll answers everything with this refusal, and transactions with a refusal inside.
func refusingAll(status int, code string) transport {
	return func(req *http.Request) (*http.Response, error) {
		if !strings.HasSuffix(req.URL.Path, "/$batch") {
			return reply(req, status, refusalBody(code), "Content-Type", "application/json"), nil
		}
		return reply(req, http.StatusAccepted, fmt.Sprintf("--a\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: application/http\r\n\r\n"+
			"HTTP/1.1 %d x\r\nContent-Type: application/json\r\n\r\n%s\r\n--b--\r\n--a--\r\n", status, refusalBody(code)), "Content-Type", "multipart/mixed; boundary=a"), nil
	}
}

// TestRefusalsAfterBusy: what the service says after it was too busy is the truth, since it did nothing before; after a 503 of
// which nobody knows who sent it, it is not.
func TestRefusalsAfterBusy(t *testing.T) {
	for _, c := range []struct {
		first, second int
		codes         [2]string
		kind          error
		unknown       bool
		requests      int
	}{
		{503, 409, [2]string{"ServerBusy", "EntityAlreadyExists"}, patterns.ErrExists, false, 2},
		{429, 409, [2]string{"", "EntityAlreadyExists"}, patterns.ErrExists, false, 2},
		{503, 409, [2]string{"", "EntityAlreadyExists"}, patterns.ErrExists, true, 3},
		{500, 400, [2]string{"", "InvalidInput"}, patterns.ErrInvalid, false, 2},
		{503, 400, [2]string{"", ""}, patterns.ErrUnknownOutcome, true, 3},
		{500, 501, [2]string{"", ""}, patterns.ErrUnknownOutcome, true, 3},
		{500, 413, [2]string{"", ""}, patterns.ErrUnknownOutcome, true, 3},
		{503, 400, [2]string{"ServerBusy", ""}, patterns.ErrInvalid, false, 2},
	} {
		n := 0
		a := inProcessRetrying(t, func(req *http.Request) (*http.Response, error) {
			n++
			switch {
			case req.Method == http.MethodGet:
				return reply(req, 200, `{"PartitionKey":"p","RowKey":"r","Text":"rival's"}`, "Content-Type", "application/json", "ETag", `W/"1"`), nil
			case n == 1:
				return refusingAll(c.first, c.codes[0])(req)
			}
			return refusingAll(c.second, c.codes[1])(req)
		})
		err := a.Table("Contoso").Entities().Insert(context.Background(), bag("p", "r", "ours"))
		if !errors.Is(err, c.kind) || errors.Is(err, patterns.ErrUnknownOutcome) != c.unknown || n != c.requests {
			t.Errorf("%d %q, then %d %q: %v after %d requests", c.first, c.codes[0], c.second, c.codes[1], err, n)
		}
	}
}
