package storagetest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// Inside is a failure of an entity group transaction that Azure reports inside its response: the response has status
// 202, and its one part says that the service is too busy (503, 429) or ran out of time (500), often without an error
// code. Inside is also an [Injector], which injects itself into every call of kind [Batch].
//
// Azure sends 429, and 503 with code ServerBusy, before it applies anything. So a test that combines one of
// these with Applied tests a case that never occurs on the service.
type Inside struct {
	// Status is the part's status.
	Status int
	// Code is the part's error code; it may be empty.
	Code string
	// Applied makes the service apply the transaction first.
	Applied bool
}

// String names status and code: "Inside(503 ServerBusy)", "Inside(500 applied)".
func (f Inside) String() string {
	text := strconv.Itoa(f.Status)
	if f.Code != "" {
		text += " " + f.Code
	}
	if f.Applied {
		text += " applied"
	}
	return "Inside(" + text + ")"
}

// Inject injects the fault into transactions.
func (f Inside) Inject(call Call) Fault {
	if call.Kind != Batch {
		return nil
	}
	return f
}

// Meet returns the failure as the response to the transaction.
func (f Inside) Meet(call Call, req *http.Request, send Send) (*http.Response, error) {
	if call.Kind != Batch {
		return send()
	}
	if f.Applied {
		resp, err := send()
		if err != nil {
			return nil, err
		}
		discard(resp)
	} else {
		closeBody(req)
	}
	return f.answer(call, req)
}

// answer makes the response to a transaction that contains the failure: a multipart body in a multipart body.
func (f Inside) answer(call Call, req *http.Request) (*http.Response, error) {
	resp := errorAnswer(call, req, f.Status, f.Code, insideText(f.Status))
	refusal, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	id := resp.Header.Get("X-Ms-Request-Id")
	body := fmt.Appendf(nil, "--batchresponse_%[1]s\r\nContent-Type: multipart/mixed; boundary=changesetresponse_%[1]s\r\n\r\n"+
		"--changesetresponse_%[1]s\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"+
		"HTTP/1.1 %[2]d %[3]s\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\nDataServiceVersion: 3.0;\r\nContent-Type: %[4]s\r\n\r\n%[5]s\r\n"+
		"--changesetresponse_%[1]s--\r\n--batchresponse_%[1]s--\r\n", id, f.Status, http.StatusText(f.Status), resp.Header.Get("Content-Type"), refusal)
	resp.StatusCode, resp.Status = http.StatusAccepted, "202 Accepted"
	resp.Header.Set("Content-Type", "multipart/mixed; boundary=batchresponse_"+id)
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	resp.ContentLength, resp.Body = int64(len(body)), io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

func insideText(status int) string {
	switch status {
	case http.StatusServiceUnavailable:
		return "The server is busy."
	case http.StatusTooManyRequests:
		return "The request rate is too large."
	}
	return "Operation could not be completed within the specified time."
}
