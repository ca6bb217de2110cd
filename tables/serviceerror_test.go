package tables_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestServiceError: a response of the queue and the blob service has the kind of its code, and only where neither a 404, 409 nor 412 is
// concerned that of its status.
func TestServiceError(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		want   error
		advice string // a part of the text
	}{
		{404, "BlobNotFound", tables.ErrNotFound, ""}, {404, "MessageNotFound", tables.ErrNotFound, ""}, {404, "ContainerNotFound", tables.ErrMissingResource, ""},
		{404, "QueueNotFound", tables.ErrMissingResource, "create the queue"}, {404, "Code", tables.ErrRefused, "look up the code"}, {404, "", tables.ErrUnavailable, ""},
		{412, "ConditionNotMet", tables.ErrConflict, ""}, {409, "BlobAlreadyExists", tables.ErrConflict, ""}, {412, "AppendPositionConditionNotMet", tables.ErrConflict, ""},
		{400, "PopReceiptMismatch", tables.ErrConflict, ""}, {409, "ContainerAlreadyExists", tables.ErrExists, ""}, {409, "QueueAlreadyExists", tables.ErrExists, ""},
		{409, "Code", tables.ErrRefused, "look up the code"}, {412, "Code", tables.ErrRefused, "look up the code"}, {409, "", tables.ErrUnavailable, ""}, {412, "", tables.ErrUnavailable, ""},
		{409, "BlobArchived", tables.ErrRefused, "rehydrate it"}, {409, "BlobBeingRehydrated", tables.ErrUnavailable, "rehydrated"},
		{412, "LeaseIdMissing", tables.ErrRefused, "lease"}, {409, "LeaseAlreadyPresent", tables.ErrRefused, "lease"},
		{409, "BlobImmutableDueToPolicy", tables.ErrRefused, "immutability policy"}, {409, "ContainerHasLegalHold", tables.ErrRefused, "legal hold"},
		{409, "SnapshotsPresent", tables.ErrRefused, "snapshots"}, {409, "ContainerBeingDeleted", tables.ErrBeingDeleted, ""},
		{409, "QueueBeingDeleted", tables.ErrBeingDeleted, ""}, {409, "ContainerDisabled", tables.ErrRefused, "disabled"}, {403, "AccountIsDisabled", tables.ErrRefused, "disabled"},
		{409, "AccountBeingCreated", tables.ErrUnavailable, "repeat the operation later"}, {409, "InvalidBlobType", tables.ErrRefused, "another type"},
		{401, "Code", tables.ErrDenied, ""}, {403, "Code", tables.ErrDenied, ""}, {400, "Code", tables.ErrInvalid, ""}, {400, "InvalidAuthenticationInfo", tables.ErrDenied, ""},
		{413, "Code", tables.ErrTooLarge, ""}, {400, "MessageTooLarge", tables.ErrTooLarge, ""}, {429, "Code", tables.ErrUnavailable, ""}, {500, "Code", tables.ErrUnavailable, ""},
		{503, "Code", tables.ErrUnavailable, ""}, {410, "Code", tables.ErrGarbled, ""}, {501, "Code", tables.ErrInvalid, ""}, {405, "Code", tables.ErrInvalid, ""},
		{415, "Code", tables.ErrInvalid, ""}, {408, "Code", tables.ErrUnavailable, ""}, {504, "", tables.ErrUnavailable, ""},
	} {
		answer := &azcore.ResponseError{StatusCode: c.status, ErrorCode: c.code, RawResponse: &http.Response{StatusCode: c.status}}
		err := tables.ServiceError("Get", "photos", answer)
		harness.OneKind(t, err)
		if err.Op != "Get" || err.Table != "photos" || err.Change != 0 || err.Code != c.code || !errors.Is(err, answer) || !errors.Is(err, c.want) ||
			!strings.Contains(err.Error(), c.advice) || !strings.Contains(err.Error(), c.code) {
			t.Errorf("%d %q: %v, want kind %v", c.status, c.code, err, c.want)
		}
	}
	if err := tables.ServiceError("Get", "photos", errors.New("no connection")); err.Kind != nil || err.Code != "" {
		t.Errorf("%+v", err)
	}
}
