package simulator

import (
	"net/http"
	"strconv"
)

// batchFault answers a transaction that failed, which has one part. The operation's index stands before the message, but
// not where there is only one.
func (c *tableCall) batchFault(b *batch, index int, f *Fault) *answer {
	told := *f
	if len(b.parts) > 1 {
		told.Message = strconv.Itoa(index) + ":" + f.Message
	}
	failed := &b.parts[min(index, len(b.parts)-1)]
	level, _ := metadataOf(Header(failed.header, "Accept"), failed.format())
	part := c.faultPart(&told, level)
	if prefer := preferenceOf(failed.header); prefer != "" && failed.method == http.MethodPost {
		part.header["Preference-Applied"] = []string{prefer}
	}
	if id := failed.header.Get("Content-ID"); id != "" {
		part.header["Content-Id"] = []string{id}
	}
	return c.batchAnswer([]*answer{part})
}

// batchRefusal answers a transaction that failed for no fault of any operation: the service is too busy, or too slow.
func (c *tableCall) batchRefusal(f *Fault) *answer {
	return c.batchAnswer([]*answer{c.faultPart(f, minimalMetadata)})
}

// faultPart is a fault as a part of an answer.
func (c *tableCall) faultPart(f *Fault, level metadata) *answer {
	part := newAnswer(f.Status)
	part.header["Content-Type"] = []string{level.contentType()}
	part.header["Dataserviceversion"] = []string{"3.0;"}
	part.body = c.faultBody(f)
	return part
}

// queryAnswer wraps the answer to a query.
func (c *tableCall) queryAnswer(part *answer) *answer {
	boundary := "batchresponse_" + c.requestID
	out := c.answer(http.StatusAccepted)
	out.header["Content-Type"] = []string{"multipart/mixed; boundary=" + boundary}
	out.body = append(appendPart([]byte("--"+boundary+"\r\n"), part), "--"+boundary+"--\r\n"...)
	return out
}

// batchAnswer wraps the answers to the operations.
func (c *tableCall) batchAnswer(parts []*answer) *answer {
	outer, inner := "batchresponse_"+c.requestID, "changesetresponse_"+c.requestID
	out := c.answer(http.StatusAccepted)
	out.header["Content-Type"] = []string{"multipart/mixed; boundary=" + outer}
	body := append(make([]byte, 0, 512*len(parts)+256), "--"+outer+"\r\nContent-Type: multipart/mixed; boundary="+inner+"\r\n\r\n"...)
	for _, part := range parts {
		body = appendPart(append(body, "--"+inner+"\r\n"...), part)
	}
	out.body = append(body, "--"+inner+"--\r\n--"+outer+"--\r\n"...)
	return out
}

// partHeaders are the headers of a part in the order in which the service writes them, in the spelling that it has.
func partHeaders() [13]string {
	return [...]string{"Content-ID", "X-Content-Type-Options", "Cache-Control", "Preference-Applied", "DataServiceVersion", "Content-Type",
		"Location", "DataServiceId", "ETag", "x-ms-continuation-NextPartitionKey", "x-ms-continuation-NextRowKey", "x-ms-continuation-NextTableName", "Allow"}
}

// appendPart appends the answer as a part.
func appendPart(dst []byte, a *answer) []byte {
	dst = append(dst, "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(a.status), 10)
	dst = append(append(append(dst, ' '), http.StatusText(a.status)...), "\r\n"...)
	a.header["X-Content-Type-Options"] = []string{"nosniff"}
	a.header["Cache-Control"] = []string{"no-cache"}
	for _, name := range partHeaders() {
		if value := a.header.Get(name); value != "" {
			dst = append(append(append(append(dst, name...), ": "...), value...), "\r\n"...)
		}
	}
	dst = append(dst, "\r\n"...)
	return append(append(dst, a.body...), "\r\n"...)
}
