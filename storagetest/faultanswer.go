package storagetest

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// errorAnswer makes an error response in the form of the service that the call is for.
func errorAnswer(call Call, req *http.Request, status int, code, message string) *http.Response {
	id := fmt.Sprintf("00000000-0000-4000-8000-%012x", call.Index)
	text := message + "\nRequestId:" + id + "\nTime:" + time.Now().UTC().Format("2006-01-02T15:04:05.0000000Z")
	h := http.Header{"X-Ms-Request-Id": {id}, "X-Ms-Version": {header(req, "x-ms-version")}}
	var body string
	if call.Service == TableService {
		h.Set("Content-Type", "application/json;odata=minimalmetadata;streaming=true;charset=utf-8")
		value, _ := json.Marshal(text) // a string always marshals
		body = `{"odata.error":{"code":"` + code + `","message":{"lang":"en-US","value":` + string(value) + `}}}`
	} else {
		h.Set("Content-Type", "application/xml")
		h.Set("X-Ms-Error-Code", code)
		var escaped strings.Builder
		xml.EscapeText(&escaped, []byte(text))
		body = `<?xml version="1.0" encoding="utf-8"?><Error><Code>` + code + `</Code><Message>` + escaped.String() + `</Message></Error>`
	}
	if req.Method == http.MethodHead {
		body = ""
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	return &http.Response{
		Status: strconv.Itoa(status) + " " + http.StatusText(status), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}
}
