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

// isTransient reports whether a later attempt at a request answered with this status may succeed.
func isTransient(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests ||
		status >= http.StatusInternalServerError && status != http.StatusNotImplemented
}

// OutcomeOfStatus is what status and error code of an answer say of the attempt. The service sends code ServerBusy before it
// does any work, and a gateway never sends that code: such a 503 is a refusal. Any other 503 can come from a gateway that
// lost the service's answer, so the attempt may have been applied.
func OutcomeOfStatus(status int, code string) Outcome {
	switch {
	case status < http.StatusBadRequest:
		return OutcomeSucceeded
	case status == http.StatusServiceUnavailable && code == "ServerBusy", status == http.StatusTooManyRequests, !isTransient(status):
		return OutcomeRefused
	}
	return OutcomeUnknown
}

// codeOf returns the service's error code in an answer, "" where it has none. The table service puts the code into the body
// alone, the other services also into a header.
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
	_, rest, _ := bytes.Cut(body, []byte("<Code>")) // about a table's access policies, the table service speaks XML
	code, _, _ := bytes.Cut(rest, []byte("</Code>"))
	return string(code)
}

const codeHeader = "X-Ms-Error-Code"

// exposeTransient sends the request, and answers with the failure of an entity group transaction in place of the 202 around
// it where a repetition can help. Azure reports throttling and timeouts of a transaction as a part of an answer with status
// 202, often without an error code. The SDK's retry rule looks at the status of the answer alone and so would never repeat
// the transaction. Every other answer stays as it is, ParseBatchAnswer reads it.
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

// batchPath ends the address of an entity group transaction.
const batchPath = "/$batch"

// answer makes the part the answer to the whole request. It keeps the headers of the answer around it but for those that
// describe the body, and adds what the part says of the next attempt.
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
