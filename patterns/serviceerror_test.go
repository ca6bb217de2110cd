package patterns_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/patterns"
)

// TestServiceError: the statuses of the queue and the blob service have one translation.
func TestServiceError(t *testing.T) {
	kinds := []error{patterns.ErrNotFound, patterns.ErrConflict, patterns.ErrDenied, patterns.ErrTooLarge, patterns.ErrInvalid, patterns.ErrUnavailable}
	for status, want := range map[int]error{
		http.StatusNotFound: patterns.ErrNotFound, http.StatusConflict: patterns.ErrConflict, http.StatusPreconditionFailed: patterns.ErrConflict,
		http.StatusUnauthorized: patterns.ErrDenied, http.StatusForbidden: patterns.ErrDenied, http.StatusBadRequest: patterns.ErrInvalid,
		http.StatusRequestEntityTooLarge: patterns.ErrTooLarge, http.StatusTooManyRequests: patterns.ErrUnavailable,
		http.StatusInternalServerError: patterns.ErrUnavailable, http.StatusServiceUnavailable: patterns.ErrUnavailable, http.StatusGone: nil,
		http.StatusNotImplemented: patterns.ErrInvalid, http.StatusMethodNotAllowed: patterns.ErrInvalid, http.StatusUnsupportedMediaType: patterns.ErrInvalid,
		http.StatusRequestTimeout: patterns.ErrUnavailable, http.StatusGatewayTimeout: patterns.ErrUnavailable,
	} {
		answer := &azcore.ResponseError{StatusCode: status, ErrorCode: "Code"}
		err := patterns.ServiceError("Get", "photos", answer)
		if err.Op != "Get" || err.Table != "photos" || err.Change != 0 || err.Code != "Code" || !errors.Is(err, answer) {
			t.Errorf("%d: %+v", status, err)
		}
		for _, kind := range kinds {
			if errors.Is(err, kind) != (kind == want) {
				t.Errorf("%d: %v, want kind %v", status, err, want)
			}
		}
	}
	if err := patterns.ServiceError("Get", "photos", &azcore.ResponseError{StatusCode: 400, ErrorCode: "InvalidAuthenticationInfo"}); !errors.Is(err, patterns.ErrDenied) || errors.Is(err, patterns.ErrInvalid) {
		t.Errorf("%v", err)
	}
	if err := patterns.ServiceError("Get", "photos", errors.New("no connection")); err.Kind != nil || err.Code != "" {
		t.Errorf("%+v", err)
	}
}
