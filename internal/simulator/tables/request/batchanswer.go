package request

import (
	"net/http"
	"strconv"

	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/entity"
)

// RefuseOperation returns the response to a transaction that failed because of one operation. The message
// begins with the index of that operation, unless the transaction has only one operation.
func (c *Call) RefuseOperation(b *Batch, index int, f *protocol.Fault) *protocol.Answer {
	told := *f
	if len(b.Parts) > 1 {
		told.Message = strconv.Itoa(index) + ":" + f.Message
	}
	failed := &b.Parts[min(index, len(b.Parts)-1)]
	level, _ := metadataOf(protocol.Header(failed.Header, "Accept"), failed.format())
	part := c.faultPart(&told, level)
	if prefer := preferenceOf(failed.Header); prefer != "" && failed.Method == http.MethodPost {
		part.Header["Preference-Applied"] = []string{prefer}
	}
	if id := failed.Header.Get("Content-ID"); id != "" {
		part.Header["Content-Id"] = []string{id}
	}
	return c.AnswerBatch([]*protocol.Answer{part})
}

// RefuseBatch returns the response to a transaction that failed because the service is overloaded or timed out.
func (c *Call) RefuseBatch(f *protocol.Fault) *protocol.Answer {
	return c.AnswerBatch([]*protocol.Answer{c.faultPart(f, entity.Minimal)})
}

// faultPart returns a fault as a part of a response.
func (c *Call) faultPart(f *protocol.Fault, level entity.Metadata) *protocol.Answer {
	part := protocol.NewAnswer(f.Status)
	part.Header["Content-Type"] = []string{level.ContentType()}
	part.Header["Dataserviceversion"] = []string{"3.0;"}
	part.Body = c.faultBody(f)
	return part
}

// AnswerQuery wraps the response to a query.
func (c *Call) AnswerQuery(part *protocol.Answer) *protocol.Answer {
	boundary := "batchresponse_" + c.requestID
	out := c.Begin(http.StatusAccepted)
	out.Header["Content-Type"] = []string{"multipart/mixed; boundary=" + boundary}
	out.Body = append(appendPart([]byte("--"+boundary+"\r\n"), part), "--"+boundary+"--\r\n"...)
	return out
}

// AnswerBatch wraps the responses to the operations.
func (c *Call) AnswerBatch(parts []*protocol.Answer) *protocol.Answer {
	outer, inner := "batchresponse_"+c.requestID, "changesetresponse_"+c.requestID
	out := c.Begin(http.StatusAccepted)
	out.Header["Content-Type"] = []string{"multipart/mixed; boundary=" + outer}
	body := append(make([]byte, 0, 512*len(parts)+256), "--"+outer+"\r\nContent-Type: multipart/mixed; boundary="+inner+"\r\n\r\n"...)
	for _, part := range parts {
		body = appendPart(append(body, "--"+inner+"\r\n"...), part)
	}
	out.Body = append(body, "--"+inner+"--\r\n--"+outer+"--\r\n"...)
	return out
}

// partHeaders returns the headers of a part, in the order and spelling of the service.
func partHeaders() [13]string {
	return [...]string{"Content-ID", "X-Content-Type-Options", "Cache-Control", "Preference-Applied", "DataServiceVersion", "Content-Type",
		"Location", "DataServiceId", "ETag", "x-ms-continuation-NextPartitionKey", "x-ms-continuation-NextRowKey", "x-ms-continuation-NextTableName", "Allow"}
}

// appendPart appends the response as a part.
func appendPart(dst []byte, a *protocol.Answer) []byte {
	dst = append(dst, "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(a.Status), 10)
	dst = append(append(append(dst, ' '), http.StatusText(a.Status)...), "\r\n"...)
	a.Header["X-Content-Type-Options"] = []string{"nosniff"}
	a.Header["Cache-Control"] = []string{"no-cache"}
	for _, name := range partHeaders() {
		if value := a.Header.Get(name); value != "" {
			dst = append(append(append(append(dst, name...), ": "...), value...), "\r\n"...)
		}
	}
	dst = append(dst, "\r\n"...)
	return append(append(dst, a.Body...), "\r\n"...)
}
