package tables_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// refusalBody is the service's error body with this code.
func refusalBody(code string) string {
	return `{"odata.error":{"code":"` + code + `","message":{"lang":"en-US","value":"no"}}}`
}

// TestErrorKinds: what status and code of an answer mean, for a read, a single write, a transaction that is refused inside its
// answer, and the creation of a table. A kind for reads is never ErrUnknownOutcome.
func TestErrorKinds(t *testing.T) {
	kinds := []error{tables.ErrNotFound, tables.ErrExists, tables.ErrConflict, tables.ErrDuplicate, tables.ErrTooLarge, tables.ErrInvalid,
		tables.ErrUnknownOutcome, tables.ErrMissingResource, tables.ErrBeingDeleted, tables.ErrRefused, tables.ErrDenied, tables.ErrUnavailable, tables.ErrGarbled}
	for _, c := range []struct {
		status      int
		code        string
		read, write error
	}{
		{501, "NotImplemented", tables.ErrInvalid, tables.ErrInvalid}, {501, "", tables.ErrInvalid, tables.ErrInvalid},
		{405, "MethodNotAllowed", tables.ErrInvalid, tables.ErrInvalid}, {415, "AtomFormatNotSupported", tables.ErrInvalid, tables.ErrInvalid},
		{400, "InvalidInput", tables.ErrInvalid, tables.ErrInvalid}, {400, "InvalidAuthenticationInfo", tables.ErrDenied, tables.ErrDenied},
		{401, "InvalidAuthenticationInfo", tables.ErrDenied, tables.ErrDenied}, {403, "AuthenticationFailed", tables.ErrDenied, tables.ErrDenied},
		{409, "EntityAlreadyExists", tables.ErrExists, tables.ErrExists}, {409, "OperationInProgress", tables.ErrRefused, tables.ErrRefused},
		{412, "UpdateConditionNotSatisfied", tables.ErrConflict, tables.ErrConflict}, {412, "OfANewerVersion", tables.ErrRefused, tables.ErrRefused},
		{409, "AccountBeingCreated", tables.ErrUnavailable, tables.ErrUnavailable}, {403, "AccountIsDisabled", tables.ErrRefused, tables.ErrRefused},
		{409, "TableBeingDeleted", tables.ErrBeingDeleted, tables.ErrBeingDeleted}, {404, "OfANewerVersion", tables.ErrRefused, tables.ErrRefused},
		{404, "", tables.ErrUnavailable, tables.ErrUnavailable}, {412, "", tables.ErrUnavailable, tables.ErrUnavailable},
		{409, "", tables.ErrUnavailable, tables.ErrUnavailable}, {413, "RequestBodyTooLarge", tables.ErrTooLarge, tables.ErrTooLarge},
		{503, "ServerBusy", tables.ErrUnavailable, tables.ErrUnavailable}, {429, "TooManyRequests", tables.ErrUnavailable, tables.ErrUnavailable},
		{429, "", tables.ErrUnavailable, tables.ErrUnavailable}, {503, "", tables.ErrUnavailable, tables.ErrUnknownOutcome},
		{503, "OperationTimedOut", tables.ErrUnavailable, tables.ErrUnknownOutcome}, {500, "OperationTimedOut", tables.ErrUnavailable, tables.ErrUnknownOutcome},
		{500, "", tables.ErrUnavailable, tables.ErrUnknownOutcome}, {408, "", tables.ErrUnavailable, tables.ErrUnknownOutcome},
		{502, "", tables.ErrUnavailable, tables.ErrUnknownOutcome}, {504, "", tables.ErrUnavailable, tables.ErrUnknownOutcome},
		{406, "", tables.ErrGarbled, tables.ErrGarbled}, {410, "Gone", tables.ErrGarbled, tables.ErrGarbled}, {411, "MissingContentLengthHeader", tables.ErrGarbled, tables.ErrGarbled},
	} {
		table := harness.InProcess(t, refusingAll(c.status, c.code)).Table("Contoso")
		x := table.NewTransaction()
		x.Insert(harness.Bag("p", "r", "ours"))
		x.Insert(harness.Bag("p", "s", "ours"))
		calls := map[string]error{"Insert": table.Entities().Insert(context.Background(), harness.Bag("p", "r", "ours")), "Create": table.Create(context.Background())}
		_, calls["Commit"] = x.Commit(context.Background())
		_, calls["Get"] = table.Entities().Get(context.Background(), tables.Key{Partition: "p", Row: "r"})
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
func refusingAll(status int, code string) harness.Transport {
	return func(req *http.Request) (*http.Response, error) {
		if !strings.HasSuffix(req.URL.Path, "/$batch") {
			return harness.Reply(req, status, refusalBody(code), "Content-Type", "application/json"), nil
		}
		return harness.Reply(req, http.StatusAccepted, fmt.Sprintf("--a\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: application/http\r\n\r\n"+
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
		{503, 409, [2]string{"ServerBusy", "EntityAlreadyExists"}, tables.ErrExists, false, 2},
		{429, 409, [2]string{"", "EntityAlreadyExists"}, tables.ErrExists, false, 2},
		{503, 409, [2]string{"", "EntityAlreadyExists"}, tables.ErrUnknownOutcome, true, 3},
		{500, 400, [2]string{"", "InvalidInput"}, tables.ErrInvalid, false, 2},
		{503, 400, [2]string{"", ""}, tables.ErrUnknownOutcome, true, 3},
		{500, 501, [2]string{"", ""}, tables.ErrUnknownOutcome, true, 3},
		{500, 413, [2]string{"", ""}, tables.ErrUnknownOutcome, true, 3},
		{503, 400, [2]string{"ServerBusy", ""}, tables.ErrInvalid, false, 2},
	} {
		n := 0
		a := harness.InProcessRetrying(t, func(req *http.Request) (*http.Response, error) {
			n++
			switch {
			case req.Method == http.MethodGet:
				return harness.Reply(req, 200, `{"PartitionKey":"p","RowKey":"r","Text":"concurrent writer's"}`, "Content-Type", "application/json", "ETag", `W/"1"`), nil
			case n == 1:
				return refusingAll(c.first, c.codes[0])(req)
			}
			return refusingAll(c.second, c.codes[1])(req)
		})
		err := a.Table("Contoso").Entities().Insert(context.Background(), harness.Bag("p", "r", "ours"))
		if !errors.Is(err, c.kind) || errors.Is(err, tables.ErrUnknownOutcome) != c.unknown || n != c.requests {
			t.Errorf("%d %q, then %d %q: %v after %d requests", c.first, c.codes[0], c.second, c.codes[1], err, n)
		}
	}
}

// TestOneErrorOneKind: whatever the causes of an Error are, it matches its own kind alone, and its causes in all else.
func TestOneErrorOneKind(t *testing.T) {
	all := []error{tables.ErrUnknownOutcome, tables.ErrNotFound, tables.ErrMissingReference, tables.ErrExists, tables.ErrConflict, tables.ErrDuplicate, tables.ErrTooLarge,
		tables.ErrInvalid, tables.ErrWiring, tables.ErrTableScan, tables.ErrMissingResource, tables.ErrBeingDeleted, tables.ErrRefused, tables.ErrDenied, tables.ErrUnavailable, tables.ErrGarbled}
	wrapped := func(err error) error {
		return fmt.Errorf("of %w: %w", context.Canceled, &tables.Error{Op: "Get", Err: err})
	}
	for _, kind := range append(all, nil) {
		for _, cause := range all {
			for name, of := range map[string]error{"itself": cause, "wrapped": wrapped(cause), "of its kind": &tables.Error{Kind: cause, Err: wrapped(tables.ErrConflict)},
				"joined": errors.Join(context.Canceled, cause, &tables.Error{Kind: cause})} {
				err := fmt.Errorf("outer: %w", &tables.Error{Op: "Insert", Kind: kind, Err: of})
				want := kind
				if kind == nil {
					want = cause
				}
				harness.OneKind(t, err)
				if !errors.Is(err, want) || tables.KindOf(err) != want || errors.Is(err, context.Canceled) != errors.Is(of, context.Canceled) {
					t.Errorf("Kind %v, cause %v %s: %v is of the kind %v", kind, cause, name, err, tables.KindOf(err))
				}
			}
		}
	}
	several := errors.Join(&tables.Error{Kind: tables.ErrDenied}, &tables.Error{Kind: tables.ErrUnknownOutcome})
	if harness.OneKind(t, several); tables.KindOf(several) != tables.ErrUnknownOutcome || tables.KindOf(&tables.Error{Err: several}) != tables.ErrUnknownOutcome {
		t.Errorf("KindOf joined errors is %v", tables.KindOf(several))
	}
	if err := (&tables.Error{}); tables.KindOf(err) != nil || tables.KindOf(nil) != nil || errors.Unwrap(err) != nil {
		t.Error("an error without a kind has one")
	}
}

// counting is an error that counts how often it is compared.
type counting struct{ n int }

func (c *counting) Error() string { return "counting" }

func (c *counting) Is(error) bool {
	c.n++
	return false
}

// TestNestedErrorsAreComparedOnce: errors.Is on errors without a kind of their own, one in the other, asks the innermost cause a bounded
// number of times, and not a power of the depth.
func TestNestedErrorsAreComparedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		wrap func(error) error
		most int
	}{
		"plain":   {func(err error) error { return err }, 1},
		"wrapped": {func(err error) error { return fmt.Errorf("outer: %w", err) }, 1},
		"joined":  {func(err error) error { return errors.Join(context.Canceled, err) }, 20 << 6},
	} {
		leaf := &counting{}
		err := error(leaf)
		for range 6 {
			err = &tables.Error{Op: "Get", Err: c.wrap(err)}
		}
		leaf.n = 0 // the text of an error compares its cause
		if errors.Is(err, tables.ErrConflict) || leaf.n == 0 || leaf.n > c.most {
			t.Errorf("%s: the innermost cause was compared %d times, want at most %d", name, leaf.n, c.most)
		}
	}
}

// TestAzuriteRefusesVersions: an Azurite that refuses the SDK's version of a service is an error that says how to start it.
func TestAzuriteRefusesVersions(t *testing.T) {
	a := harness.InProcess(t, refusingAll(400, "InvalidHeaderValue"))
	err := a.Table("Contoso").Create(t.Context())
	if harness.WantKind(t, err, tables.ErrInvalid); !strings.Contains(err.Error(), "--skipApiVersionCheck") {
		t.Error(err)
	}
}
