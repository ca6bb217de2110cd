package logdata

import (
	"errors"
	"fmt"

	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

// The service codes on which the writer's next step depends.
const (
	codeBlobExists   = "BlobAlreadyExists"
	codePosition     = "AppendPositionConditionNotMet"
	codeBlobNotFound = "BlobNotFound"
	codeTooMany      = "BlockCountExceedsLimit"
	codeOtherType    = "InvalidBlobType"
	codeSealed       = "BlobIsSealed"
	codeInvalidRange = "InvalidRange"
	// codeConditionNotMet is also the code if a blob to create already exists.
	codeConditionNotMet = "ConditionNotMet"
)

// failure makes a tables.Error of a failed request. unknown says that this request, or an earlier attempt at it, may
// have been applied.
func failure(op, blob string, err error, unknown bool) error {
	if err == nil {
		return nil
	}
	e := tables.ServiceError(op, blob, err)
	if unknown {
		e.Kind = tables.ErrUnknownOutcome
	}
	return e
}

// because adds cause, which ended the writer's requests, to err: without cause, the caller would only see
// that the writer's own context was cancelled.
func because(err, cause error) error {
	var e *tables.Error
	if !errors.As(err, &e) {
		return err
	}
	told := *e
	told.Err = fmt.Errorf("%w: %w", cause, e.Err)
	return &told
}

// unsure reports whether the failed write, or an earlier attempt by the SDK, may have been applied. It is
// always true with a client that Account.Container did not make, since such a client records no attempts.
func unsure(ex *wire.Exchange) bool {
	return ex.Last == wire.OutcomeNone || ex.Lost() || ex.EarlierUnknown()
}
