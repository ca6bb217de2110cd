package telemetry

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Instrument adds the policies that emit telemetry to the options of an account's client. Without tracer and meters, these only log a
// queue or container that does not exist. service is "tables", "queues" or "blobs"; path is the beginning of the endpoint's path, before
// the resource.
func (t *Telemetry) Instrument(client azcore.ClientOptions, service, path string) azcore.ClientOptions {
	if t == nil {
		return client
	}
	p := attempts{t, service, strings.Trim(path, "/")}
	if !t.On() {
		client.PerRetryPolicies = append([]policy.Policy{missingOnly(p)}, client.PerRetryPolicies...)
		return client
	}
	client.PerCallPolicies = append([]policy.Policy{calls{}}, client.PerCallPolicies...)
	client.PerRetryPolicies = append([]policy.Policy{p}, client.PerRetryPolicies...)
	return client
}

// call counts the attempts of one request.
type call struct{ attempts int }

// calls is the policy that gives each request its call.
type calls struct{}

func (calls) Do(req *policy.Request) (*http.Response, error) {
	req.SetOperationValue(&call{})
	return req.Next()
}

// attempts is the policy that emits a span and metrics for each attempt of a request.
type attempts struct {
	telemetry *Telemetry
	service   string
	path      string
}

func (p attempts) Do(req *policy.Request) (*http.Response, error) {
	t, raw := p.telemetry, req.Raw()
	resend := 0
	var c *call
	if req.OperationValue(&c) && c != nil {
		resend = c.attempts
		c.attempts++
	}
	ctx, resource := raw.Context(), p.resource(raw.URL.Path)
	ctx, sent := wire.WatchSent(ctx)
	var span trace.Span
	if t.tracer != nil {
		ctx, span = t.tracer.Start(ctx, raw.Method+" "+resource, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
			attribute.String(AttrService, p.service), attribute.String(AttrResource, resource), attribute.String(AttrMethod, raw.Method),
			attribute.String(AttrServer, raw.URL.Hostname())))
		if port, err := strconv.Atoi(raw.URL.Port()); err == nil {
			span.SetAttributes(attribute.Int(AttrPort, port))
		}
		if table := p.table(ctx, resource); table != "" {
			span.SetAttributes(attribute.String(AttrTable, table))
		}
		if resend > 0 {
			span.SetAttributes(attribute.Int(AttrResend, resend))
		}
	}
	began := time.Now()
	resp, err := req.WithContext(ctx).Next()
	status, failure := p.result(resp, err)
	t.Record(ctx, RequestDuration, time.Since(began).Seconds(), AttrService, p.service, AttrMethod, raw.Method, AttrStatus, status, AttrError, failure)
	if resend > 0 {
		t.Count(ctx, RequestRetries, 1, AttrService, p.service)
	}
	if status == "429" || status == "503" {
		t.Count(ctx, RequestThrottled, 1, AttrService, p.service)
	}
	if *sent && raw.Method != http.MethodGet && raw.Method != http.MethodHead && wire.OutcomeOf(resp, err) == wire.OutcomeUnknown {
		t.Count(ctx, RequestUnknown, 1, AttrService, p.service)
	}
	if missing(resp) {
		t.Missing(ctx, p.service, resource)
	}
	if span != nil {
		endAttempt(span, resp, failure)
	}
	return resp, err
}

// result returns the status of the response, "" without a response, and the failure of the attempt. It does
// not count responses 404, 409 and 412 as failures, since only the operation knows whether they are failures.
func (attempts) result(resp *http.Response, err error) (status, failure string) {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "", "cancelled"
	case err != nil || resp == nil:
		return "", "no_response"
	}
	status = strconv.Itoa(resp.StatusCode)
	switch resp.StatusCode {
	case http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed:
		return status, ""
	}
	if resp.StatusCode >= http.StatusBadRequest {
		failure = status
	}
	return status, failure
}

func endAttempt(span trace.Span, resp *http.Response, failure string) {
	if resp != nil {
		span.SetAttributes(attribute.Int(AttrStatus, resp.StatusCode))
		if id := resp.Header.Get("X-Ms-Request-Id"); requestID.MatchString(id) {
			span.SetAttributes(attribute.String(AttrRequest, id))
		}
	}
	if failure != "" {
		span.SetAttributes(attribute.String(AttrError, failure))
		span.SetStatus(codes.Error, failure)
	}
	span.End()
}

// missing reports whether a response says that a queue or a container does not exist. The table service sends no such
// header; the operations report missing tables.
func missing(resp *http.Response) bool {
	if resp == nil || resp.StatusCode != http.StatusNotFound {
		return false
	}
	code := resp.Header.Get("X-Ms-Error-Code")
	return code == "QueueNotFound" || code == "ContainerNotFound"
}

// missingOnly is the policy of an account that has only a logger.
type missingOnly attempts

func (p missingOnly) Do(req *policy.Request) (*http.Response, error) {
	resp, err := req.Next()
	if missing(resp) {
		p.telemetry.Missing(req.Raw().Context(), p.service, attempts(p).resource(req.Raw().URL.Path))
	}
	return resp, err
}

// requestID is the form of a request's ID. A text of another form could contain a key.
var requestID = regexp.MustCompile(`^[0-9A-Fa-f-]{1,64}$`)

// table returns the table of a request, "" for a request about no table. For a transaction the table comes
// from ctx, since the address does not name it.
func (p attempts) table(ctx context.Context, resource string) string {
	switch {
	case p.service != "tables", resource == p.service, resource == "Tables":
		return ""
	case resource == "$batch":
		return wire.TableOf(ctx)
	}
	return resource
}

// resource returns the table, queue or container of a request's path, without keys and names of blobs.
func (p attempts) resource(path string) string {
	path = strings.TrimPrefix(path, "/")
	if p.path != "" {
		path = strings.TrimPrefix(strings.TrimPrefix(path, p.path), "/")
	}
	name, _, _ := strings.Cut(path, "/")
	if name, _, _ = strings.Cut(name, "("); name == "Tables" {
		return "Tables" // requests to Tables and Tables('name') create, list and delete tables
	}
	if name == "" {
		return p.service
	}
	return name
}
