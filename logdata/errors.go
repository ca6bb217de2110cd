package logdata

import (
	"errors"
	"fmt"

	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

// The service's codes that decide what happens next.
const (
	codeBlobExists   = "BlobAlreadyExists"
	codePosition     = "AppendPositionConditionNotMet"
	codeBlobNotFound = "BlobNotFound"
	codeTooMany      = "BlockCountExceedsLimit"
	codeOtherType    = "InvalidBlobType"
	codeSealed       = "BlobIsSealed"
	codeInvalidRange = "InvalidRange"
	// codeConditionNotMet says of a creation that the blob exists, too.
	codeConditionNotMet = "ConditionNotMet"
)

// invalidf is the error of bad input, before any request.
func invalidf(op, blob, format string, args ...any) error {
	return &tables.Error{Op: op, Table: blob, Kind: tables.ErrInvalid, Err: fmt.Errorf(format, args...)}
}

// failure turns the error of a request into a tables.Error. Unknown says that the request, or an attempt at it before,
// may have been applied.
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

// because says of the error of a writer whose requests were ended by what: that of the writer's own context tells nobody.
func because(err, cause error) error {
	var e *tables.Error
	if !errors.As(err, &e) {
		return err
	}
	told := *e
	told.Err = fmt.Errorf("%w: %w", cause, e.Err)
	return &told
}

// unsure reports whether the failed write, or an attempt at it that the SDK has repeated, may have been applied. Of a
// client that was not made by Account.Container nothing is noted: then it always may.
func unsure(ex *wire.Exchange) bool {
	return ex.Last == wire.OutcomeNone || ex.Lost() || ex.EarlierUnknown()
}
