package tables_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestServiceError: the statuses of the queue and the blob service have one translation.
func TestServiceError(t *testing.T) {
	kinds := []error{tables.ErrNotFound, tables.ErrConflict, tables.ErrDenied, tables.ErrTooLarge, tables.ErrInvalid, tables.ErrUnavailable}
	for status, want := range map[int]error{
		http.StatusNotFound: tables.ErrNotFound, http.StatusConflict: tables.ErrConflict, http.StatusPreconditionFailed: tables.ErrConflict,
		http.StatusUnauthorized: tables.ErrDenied, http.StatusForbidden: tables.ErrDenied, http.StatusBadRequest: tables.ErrInvalid,
		http.StatusRequestEntityTooLarge: tables.ErrTooLarge, http.StatusTooManyRequests: tables.ErrUnavailable,
		http.StatusInternalServerError: tables.ErrUnavailable, http.StatusServiceUnavailable: tables.ErrUnavailable, http.StatusGone: nil,
		http.StatusNotImplemented: tables.ErrInvalid, http.StatusMethodNotAllowed: tables.ErrInvalid, http.StatusUnsupportedMediaType: tables.ErrInvalid,
		http.StatusRequestTimeout: tables.ErrUnavailable, http.StatusGatewayTimeout: tables.ErrUnavailable,
	} {
		answer := &azcore.ResponseError{StatusCode: status, ErrorCode: "Code"}
		err := core.ServiceError("Get", "photos", answer)
		if err.Op != "Get" || err.Table != "photos" || err.Change != 0 || err.Code != "Code" || !errors.Is(err, answer) {
			t.Errorf("%d: %+v", status, err)
		}
		for _, kind := range kinds {
			if errors.Is(err, kind) != (kind == want) {
				t.Errorf("%d: %v, want kind %v", status, err, want)
			}
		}
	}
	if err := core.ServiceError("Get", "photos", &azcore.ResponseError{StatusCode: 400, ErrorCode: "InvalidAuthenticationInfo"}); !errors.Is(err, tables.ErrDenied) || errors.Is(err, tables.ErrInvalid) {
		t.Errorf("%v", err)
	}
	if err := core.ServiceError("Get", "photos", errors.New("no connection")); err.Kind != nil || err.Code != "" {
		t.Errorf("%+v", err)
	}
}
