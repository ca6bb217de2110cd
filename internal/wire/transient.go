package wire

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// isTransient reports whether a later attempt of a request with this response status may succeed.
func isTransient(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests ||
		status >= http.StatusInternalServerError && status != http.StatusNotImplemented
}

// OutcomeOfStatus returns the outcome of an attempt, as far as the status and the error code of its response
// show it. The service sends the code ServerBusy before it does any work, and a gateway never sends that
// code, so such a 503 is a refusal. Any other 503 may come from a gateway that has lost the service's
// response, so the attempt may have been applied.
func OutcomeOfStatus(status int, code string) Outcome {
	switch {
	case status < http.StatusBadRequest:
		return OutcomeSucceeded
	case status == http.StatusServiceUnavailable && code == "ServerBusy", status == http.StatusTooManyRequests, !isTransient(status):
		return OutcomeRefused
	}
	return OutcomeUnknown
}

// codeOf returns the service's error code in a response, or "" if there is none. The table service sends the code only in the
// body, the other services also in a header.
func codeOf(resp *http.Response) string {
	if code := resp.Header.Get(codeHeader); code != "" {
		return code
	}
	body, err := runtime.Payload(resp)
	if err != nil {
		return ""
	}
	if code, _ := ErrorCode(body); code != "" {
		return code
	}
	_, rest, _ := bytes.Cut(body, []byte("<Code>")) // the table service's errors about access policies are XML
	code, _, _ := bytes.Cut(rest, []byte("</Code>"))
	return string(code)
}

const codeHeader = "X-Ms-Error-Code"

// exposeTransient sends the request. If the response to an entity group transaction has status 202 but contains a transient
// failure, it returns that failure as the response. Azure reports throttling and timeouts of a transaction in this way, often
// without an error code, and the SDK's retry policy would not repeat the transaction because it looks only at the status. It
// returns every other response unchanged, for ParseBatchAnswer.
func exposeTransient(req *policy.Request) (*http.Response, error) {
	resp, err := req.Next()
	if err != nil || resp.StatusCode != http.StatusAccepted || !strings.HasSuffix(req.Raw().URL.Path, batchPath) {
		return resp, err
	}
	body, err := runtime.Payload(resp)
	if err != nil {
		return resp, err
	}
	parts, err := changeSetParts(resp.Header.Get("Content-Type"), body)
	if err != nil {
		return resp, nil
	}
	for _, raw := range parts {
		p, err := readPart(raw)
		switch {
		case err != nil:
			return resp, nil
		case isTransient(p.status):
			return p.answer(resp), nil
		case p.status >= http.StatusBadRequest:
			return resp, nil
		}
	}
	return resp, nil
}

// batchPath is the end of the URL path of an entity group transaction.
const batchPath = "/$batch"

// answer returns the part as the response to the whole request. It keeps the headers of the surrounding response, except
// those that describe the body, and adds the part's headers about retries.
func (p *part) answer(around *http.Response) *http.Response {
	resp := *around
	resp.StatusCode, resp.Status = p.status, strconv.Itoa(p.status)+" "+http.StatusText(p.status)
	resp.Header = around.Header.Clone()
	resp.Header.Del("Content-Type")
	for _, name := range [...]string{"Content-Type", codeHeader, "Retry-After", "Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if value := header(p.head, name); len(value) > 0 {
			resp.Header.Set(name, string(value))
		}
	}
	resp.Header.Set("Content-Length", strconv.Itoa(len(p.content)))
	resp.ContentLength = int64(len(p.content))
	resp.Body = io.NopCloser(bytes.NewReader(p.content))
	return &resp
}
