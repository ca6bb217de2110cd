// Package refusal maps a failed request to a kind of error: by the error code of the service's response or, if there was no response,
// by the reason for that. A status alone decides nothing about stored data: 404, 409 and 412 each have many causes, and a gateway that
// has never asked the service sends them, too.
package refusal

import (
	"errors"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/kinds"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// meaning is what an error code says.
type meaning struct {
	kind   error
	advice string // what the code means and what to do; "" if the kind says it
}

// What the codes of one cause have in common.
var (
	gone         = meaning{kinds.ErrNotFound, ""}
	missing      = meaning{kinds.ErrMissingResource, ""}
	exists       = meaning{kinds.ErrExists, ""}
	changed      = meaning{kinds.ErrConflict, ""}
	tooLarge     = meaning{kinds.ErrTooLarge, ""}
	beingDeleted = meaning{kinds.ErrBeingDeleted, ""}
	archived     = meaning{kinds.ErrRefused, "the blob is in the archive tier; rehydrate it to the hot, cool or cold tier, which can take 15 hours, then repeat the operation"}
	rehydrating  = meaning{kinds.ErrUnavailable, "the blob is being rehydrated from the archive tier, which can take 15 hours; repeat the operation later"}
	tier         = meaning{kinds.ErrRefused, "the blob's access tier does not allow the request; move the blob to another tier"}
	leased       = meaning{kinds.ErrRefused, "another program holds or has held a lease on the blob or its container; repeat the operation after the lease has ended, or break the lease"}
	immutable    = meaning{kinds.ErrRefused, "an immutability policy or a legal hold protects the blob or its container; repeat the operation after its end"}
	snapshots    = meaning{kinds.ErrRefused, "the blob has snapshots; delete them, then repeat the operation"}
	disabled     = meaning{kinds.ErrRefused, "the account, container or queue is disabled; its administrator can enable it"}
	otherType    = meaning{kinds.ErrRefused, "a resource of another type has this name; choose another name, or check the endpoint"}
	passing      = meaning{kinds.ErrUnavailable, "the service has not finished other work on the account, container or blob; repeat the operation later"}
)

// otherRefusal is the advice for a code that is not listed.
const otherRefusal = "look up the code in the service's documentation; no other writer is to blame, so a repetition helps only after the cause has ended"

// meanings lists the codes of blobs, queues and tables of which the status does not say enough. A code that another writer's change
// does not cause must never become ErrConflict, and one that does not prove that something is gone never ErrNotFound.
var meanings = map[string]meaning{
	"BlobNotFound": gone, "MessageNotFound": gone, "EntityNotFound": gone, "EntityDoesNotExist": gone, "ResourceNotFound": gone,

	"TableNotFound": missing, "QueueNotFound": missing, "ContainerNotFound": missing,

	"TableAlreadyExists": exists, "EntityAlreadyExists": exists, "QueueAlreadyExists": exists, "ContainerAlreadyExists": exists,

	// BlobAlreadyExists answers a condition, since the library creates blobs only under If-None-Match. PreconditionFailed is Cosmos DB's.
	"ConditionNotMet": changed, "UpdateConditionNotSatisfied": changed, "BlobAlreadyExists": changed, "AppendPositionConditionNotMet": changed,
	"SequenceNumberConditionNotMet": changed, "SourceConditionNotMet": changed, "TargetConditionNotMet": changed, "PopReceiptMismatch": changed,
	"PreconditionFailed": changed,

	"EntityTooLarge": tooLarge, "PropertyValueTooLarge": tooLarge, "RequestBodyTooLarge": tooLarge, "TooManyProperties": tooLarge,
	"ContentLengthExceeded": tooLarge, "KeyValueTooLarge": tooLarge, "MessageTooLarge": tooLarge, "MetadataTooLarge": tooLarge,

	"TableBeingDeleted": beingDeleted, "QueueBeingDeleted": beingDeleted, "ContainerBeingDeleted": beingDeleted,

	"BlobArchived": archived, "BlobBeingRehydrated": rehydrating,
	"BlobNotArchived": tier, "BlobTierInadequateForContentLength": tier, "CannotChangeToLowerTier": tier, "ContentLengthLargerThanTierLimit": tier,
	"InvalidBlobTier": tier, "AccessTierNotSupportedForBlobType": tier, "BlobAccessTierNotSupportedForAccountType": tier,

	"LeaseAlreadyBroken": leased, "LeaseAlreadyPresent": leased, "LeaseIdMismatchWithBlobOperation": leased,
	"LeaseIdMismatchWithContainerOperation": leased, "LeaseIdMismatchWithLeaseOperation": leased, "LeaseIdMissing": leased,
	"LeaseIsBreakingAndCannotBeAcquired": leased, "LeaseIsBreakingAndCannotBeChanged": leased, "LeaseIsBrokenAndCannotBeRenewed": leased,
	"LeaseLost": leased, "LeaseNotPresentWithBlobOperation": leased, "LeaseNotPresentWithContainerOperation": leased,
	"LeaseNotPresentWithLeaseOperation": leased, "InfiniteLeaseDurationRequired": leased,

	"BlobImmutableDueToPolicy": immutable, "BlobImmutableDueToLegalHold": immutable, "ContainerHasLegalHold": immutable,
	"ContainerImmutabilityPolicyLocked": immutable, "ContainerProtectedFromDeletion": immutable, "AccountProtectedFromDeletion": immutable,
	"ImmutabilityPolicyDeleteOnLockedPolicy": immutable,

	"SnapshotsPresent": snapshots, "SnapshotCountExceeded": snapshots,

	"AccountIsDisabled": disabled, "ContainerDisabled": disabled, "QueueDisabled": disabled,

	"ResourceTypeMismatch": otherType, "InvalidBlobType": otherType,

	"AccountBeingCreated": passing, "PendingCopyOperation": passing, "SystemInUse": passing, "SnapshotOperationRateExceeded": passing,
}

// Of returns the kind for status and code of a response of the table, queue or blob service.
func Of(status int, code string) error {
	if m, ok := meanings[code]; ok {
		return m.kind
	}
	switch {
	case inWrongState(status) && code != "":
		return kinds.ErrRefused
	case inWrongState(status):
		return kinds.ErrUnavailable // a gateway has answered in place of the service, or the code was cut off
	case status == http.StatusUnauthorized, status == http.StatusForbidden, code == "InvalidAuthenticationInfo":
		return kinds.ErrDenied
	case status == http.StatusRequestEntityTooLarge:
		return kinds.ErrTooLarge
	case status == http.StatusBadRequest, status == http.StatusMethodNotAllowed, status == http.StatusUnsupportedMediaType,
		status == http.StatusNotImplemented:
		return kinds.ErrInvalid
	case status == http.StatusRequestTimeout, status == http.StatusTooManyRequests, status >= http.StatusInternalServerError:
		return kinds.ErrUnavailable
	}
	return kinds.ErrGarbled // the services send no other status: a proxy did, or the endpoint is not a storage service
}

// inWrongState reports whether the service uses the status for resources that are missing, or in a state that excludes the request.
func inWrongState(status int) bool {
	return status == http.StatusNotFound || status == http.StatusConflict || status == http.StatusPreconditionFailed
}

// Advice returns what a code means and what to do, for the end of an error's text; "" if kind, the error's kind, says enough.
func Advice(kind error, code string) string {
	if m, ok := meanings[code]; ok {
		return m.advice
	}
	if kind == kinds.ErrRefused && code != "" {
		return otherRefusal
	}
	return ""
}

// WithoutResponse returns the kind of an error that contains no response of a service. It returns nil if the caller's context has ended,
// or a policy of the caller failed. For a write that may have been applied, the caller of WithoutResponse must replace ErrUnavailable by
// ErrUnknownOutcome.
func WithoutResponse(err error) error {
	switch {
	case errors.Is(err, wire.ErrGarbled):
		return kinds.ErrGarbled
	case wire.NoToken(err):
		return kinds.ErrDenied
	case wire.Unreachable(err):
		return kinds.ErrUnavailable
	}
	return nil
}

// OfResponse reports whether a response is the cause of err: a refusal, or one that cannot be understood. If such an error has the kind
// ErrGarbled, nothing is known about the stored data.
func OfResponse(err error) bool {
	_, answered := errors.AsType[*azcore.ResponseError](err)
	return answered || errors.Is(err, wire.ErrGarbled)
}

// IsChanged reports whether the service has refused a request because another writer came first: a condition does not hold, or the
// blob to create exists.
func IsChanged(err error) bool { return is(err, kinds.ErrConflict) }

// IsNotHeld reports whether the service has refused a pop receipt because another process holds the message, or because the message or
// its queue no longer exists.
func IsNotHeld(err error) bool {
	return is(err, kinds.ErrConflict) || is(err, kinds.ErrNotFound) || is(err, kinds.ErrMissingResource)
}

// is reports whether err is a response of the service whose code has this kind.
func is(err, kind error) bool {
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	return ok && meanings[answer.ErrorCode].kind == kind && kind != nil
}
