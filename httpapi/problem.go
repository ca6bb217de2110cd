package httpapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Problem is a problem detail of RFC 9457. Its texts are fixed: no key, value, secret or text of an error.
type Problem struct {
	// Type is "about:blank", or the address of your documentation.
	Type string `json:"type"`
	// Title is the standard text of the status, such as "Not Found".
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail says what happened and what the caller can do.
	Detail string `json:"detail"`
	// Code identifies the problem for programs, such as "conflict". It never changes.
	Code string `json:"code"`
	// Pattern names the index whose key is taken, or the pattern that requires another entity.
	Pattern string `json:"pattern,omitempty"`

	// RetryAfter is the wait before a repetition, 0 if that does not help.
	RetryAfter time.Duration `json:"-"`
}

// The delays of Problem.RetryAfter without a Retry-After header of the service; maxDelay limits that header's.
const (
	unavailableDelay  = 2 * time.Second
	beingDeletedDelay = 40 * time.Second
	maxDelay          = 5 * time.Minute
)

// The causes that this package adds to errors.
var (
	// ErrPreconditionFailed: the entity is in another version. The kind is tables.ErrConflict, the status 412.
	ErrPreconditionFailed = errors.New("the entity is not in the version that the request requires")
	// ErrPreconditionRequired: the request has no If-Match header, or "If-Match: *". The kind is tables.ErrInvalid, the status 428.
	ErrPreconditionRequired = errors.New("the request has no If-Match header with an ETag; send the ETag of the version that it is based on")
	// ErrPageToken: the page token is damaged, forged, of another list, or sealed with a key that NewPageTokens did not get. The kind is
	// tables.ErrInvalid.
	ErrPageToken = errors.New("the page token is not one of this list; begin again without it")
	// ErrPageTokenExpired: the page token is older than PageTokenOptions.Lifetime. The kind is tables.ErrInvalid.
	ErrPageTokenExpired = errors.New("the page token has expired; begin the list again without it")
)

type meaning struct {
	status       int
	code, detail string
	delay        time.Duration
}

// meaningOf treats a conflict as a failed precondition if the request has one.
func meaningOf(err error, conditional bool) meaning {
	switch {
	case errors.Is(err, ErrPreconditionRequired):
		return meaning{428, "precondition-required", "The request must have an If-Match header with the ETag of the version that it is based on.", 0}
	case errors.Is(err, ErrPageTokenExpired):
		return meaning{400, "page-token-expired", "The page token has expired. Begin the list again without it.", 0}
	case errors.Is(err, ErrPageToken):
		return meaning{400, "page-token", "The page token is not one of this list. Begin the list again without it.", 0}
	case errors.Is(err, ErrPreconditionFailed):
		return meaning{412, "precondition-failed", "The resource is not in the version that the request requires. Read it again.", 0}
	}
	kind := tables.KindOf(err)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok && (kind == nil || kind == tables.ErrInvalid) {
		kind = tables.ErrTooLarge
	}
	switch kind {
	case tables.ErrConflict, tables.ErrExists, tables.ErrNotFound:
		return meaningOfState(kind, conditional)
	case tables.ErrDuplicate:
		return meaning{409, "duplicate", "Another resource has a value that must be unique. Choose another value.", 0}
	case tables.ErrMissingReference:
		return meaning{422, "missing-reference", "The resource refers to another one that does not exist. Create that one first.", 0}
	case tables.ErrTooLarge:
		return meaning{413, "too-large", "The request exceeds a limit. Make it smaller.", 0}
	case tables.ErrInvalid:
		return meaning{400, "invalid", "The request breaks a rule. Correct it; a repetition fails in the same way.", 0}
	case tables.ErrUnknownOutcome:
		return meaning{504, "unknown-outcome", "The change may or may not have been made, or may still be. Read the resource before you repeat the request.", 0}
	case tables.ErrUnavailable:
		return meaning{503, "unavailable", "The storage is busy or down. The request was not completed. Repeat it later.", unavailableDelay}
	case tables.ErrBeingDeleted:
		return meaning{503, "being-deleted", "The storage is being replaced. The request was not completed. Repeat it later.", beingDeletedDelay}
	case nil:
		switch {
		case isInterrupted(err):
			return meaning{503, "interrupted", "The request was not completed. Repeat it later.", unavailableDelay}
		case wire.HasEnded(err):
			return meaning{503, "interrupted", "The request was not completed. Read the resource before you repeat it.", 0}
		}
	}
	return meaning{500, "internal", "The service has failed, and a repetition may not help.", 0} // in its configuration, its credential or its stored data
}

func meaningOfState(kind error, conditional bool) meaning {
	switch {
	case conditional:
		return meaning{412, "precondition-failed", "The resource is not in the version that the request requires. Read it again.", 0}
	case errors.Is(kind, tables.ErrNotFound):
		return meaning{404, "not-found", "The resource does not exist.", 0}
	case errors.Is(kind, tables.ErrExists):
		return meaning{409, "exists", "A resource of this name exists already.", 0}
	}
	return meaning{409, "conflict", "Another request has changed the resource meanwhile. The request was not completed. Read the resource again, and repeat the request.", 0}
}

// isInterrupted reports whether this library ended with the context and changed nothing. It is false for errors of other packages, such as a
// webhook that failed after a write.
func isInterrupted(err error) bool {
	e, ok := errors.AsType[*tables.Error](err)
	return ok && wire.HasEnded(e.Err)
}

// Status returns the status of an error: 404 for tables.ErrNotFound, 409 for ErrExists, ErrDuplicate and ErrConflict, 422 for
// ErrMissingReference, 413 for ErrTooLarge and *http.MaxBytesError, 400 for ErrInvalid, 504 for ErrUnknownOutcome, 503 for ErrUnavailable,
// ErrBeingDeleted and an ended context, 412 and 428 for the preconditions of this package, and 500 for all
// others: what no caller can correct, such as ErrWiring, ErrDenied (the credential of the service, not of the caller), ErrGarbled and
// errors of other packages. It is 200 for nil.
func Status(err error) int {
	if err == nil {
		return http.StatusOK
	}
	return meaningOf(err, false).status
}

// ProblemOf returns the problem detail of an error. r is the request, or nil: if it has an If-Match or
// If-None-Match header and its method is not GET or HEAD, the status is 412 Precondition Failed for
// ErrConflict, ErrExists and ErrNotFound.
func ProblemOf(r *http.Request, err error) Problem {
	m := meaningOf(err, isConditional(r))
	p := Problem{Type: "about:blank", Title: http.StatusText(m.status), Status: m.status, Detail: m.detail, Code: m.code, RetryAfter: m.delay}
	if e, ok := errors.AsType[*tables.Error](err); ok && (m.code == "duplicate" || m.code == "missing-reference") {
		p.Pattern = e.Pattern
	}
	if response, ok := errors.AsType[*azcore.ResponseError](err); ok && m.delay > 0 && response.RawResponse != nil {
		if s, err := strconv.Atoi(response.RawResponse.Header.Get("Retry-After")); err == nil && s > 0 {
			p.RetryAfter = min(time.Duration(min(s, int(maxDelay/time.Second)))*time.Second, maxDelay)
		}
	}
	return p
}

func isConditional(r *http.Request) bool {
	return r != nil && r.Method != http.MethodGet && r.Method != http.MethodHead && (r.Header.Get(ifMatch) != "" || r.Header.Get(ifNoneMatch) != "")
}

// Write writes the problem detail as application/problem+json. It deletes the headers of another body: ETag, Last-Modified, Content-Length,
// Content-Encoding and Content-Range, replaces Cache-Control by no-store, and deletes or replaces Retry-After. So a middleware that compresses must
// set Content-Encoding when it writes, not before it calls the handler.
func (p Problem) Write(w http.ResponseWriter) {
	h := w.Header()
	for _, name := range []string{"ETag", "Last-Modified", "Content-Length", "Content-Encoding", "Content-Range", "Retry-After"} {
		h.Del(name)
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.RetryAfter.Seconds()))))
	}
	p.Type = cmp.Or(p.Type, "about:blank")
	body, err := json.Marshal(p)
	if err != nil {
		body = []byte(`{"type":"about:blank"}`)
	}
	w.WriteHeader(cmp.Or(p.Status, http.StatusInternalServerError))
	_, _ = w.Write(body) // a failure means that the caller has closed the connection
}
