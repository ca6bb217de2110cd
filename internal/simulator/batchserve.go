package simulator

import (
	"net/http"
	"net/url"
	"strconv"
)

// serveBatch carries a transaction out, or the one query that a batch may hold instead.
func (s *tableService) serveBatch(c *call, g *grant) (*answer, *Fault) {
	if c.req.Method != http.MethodPost {
		return nil, faultMethod()
	}
	b, fault := parseBatch(headerOf(c.req.Header, "Content-Type"), c.body)
	if fault != nil {
		return nil, fault
	}
	if b.query {
		return s.serveBatchQuery(c, g, &b.parts[0])
	}
	ops, index, fault := b.operations("")
	if fault != nil {
		return c.batchFault(b, index, fault), nil
	}
	changes, index, fault := s.commit(g, ops)
	switch {
	case fault == nil:
		return c.batchAnswer(s.parts(c, changes)), nil
	case fault.Status >= http.StatusInternalServerError:
		return c.batchRefusal(s.dice.forgetful(fault)), nil
	}
	return c.batchFault(b, index, fault), nil
}

// batchFault answers a transaction that failed, which has one part. The operation's index stands before the message, but
// not where there is only one.
func (c *call) batchFault(b *batch, index int, f *Fault) *answer {
	told := *f
	if len(b.parts) > 1 {
		told.Message = strconv.Itoa(index) + ":" + f.Message
	}
	failed := &b.parts[min(index, len(b.parts)-1)]
	level, _ := metadataOf(headerOf(failed.header, "Accept"), failed.format())
	part := newAnswer(f.Status)
	part.header["Content-Type"] = []string{level.contentType()}
	part.header["Dataserviceversion"] = []string{"3.0;"}
	if prefer := preferenceOf(failed.header); prefer != "" && failed.method == http.MethodPost {
		part.header["Preference-Applied"] = []string{prefer}
	}
	if id := failed.header.Get("Content-ID"); id != "" {
		part.header["Content-Id"] = []string{id}
	}
	part.body = told.appendJSON(nil, c.requestID, c.now)
	return c.batchAnswer([]*answer{part})
}

// batchRefusal answers a transaction that failed for no fault of any operation: the service is too busy, or too slow.
func (c *call) batchRefusal(f *Fault) *answer {
	part := newAnswer(f.Status)
	part.header["Content-Type"] = []string{minimalMetadata.contentType()}
	part.header["Dataserviceversion"] = []string{"3.0;"}
	part.body = f.appendJSON(nil, c.requestID, c.now)
	return c.batchAnswer([]*answer{part})
}

// parts are the answers to a transaction's operations.
func (s *tableService) parts(c *call, changes []change) []*answer {
	parts := make([]*answer, len(changes))
	for i, made := range changes {
		part := newAnswer(http.StatusNoContent)
		part.header["Dataserviceversion"] = []string{"1.0;"}
		if made.op.verb == verbInsert {
			part.header["Dataserviceversion"] = []string{"3.0;"}
		}
		if made.op.contentID != "" {
			part.header["Content-Id"] = []string{made.op.contentID}
		}
		s.describe(c, part, made)
		parts[i] = part
	}
	return parts
}

// serveBatchQuery answers a batch that is one query.
func (s *tableService) serveBatchQuery(c *call, g *grant, p *batchPart) (*answer, *Fault) {
	target, err := url.ParseRequestURI(c.endpoint() + p.target)
	if err != nil {
		return nil, faultSyntax()
	}
	inner := *c
	inner.req = &http.Request{Method: p.method, URL: target, Header: p.header}
	inner.body = nil
	part := s.serve(&inner, g)
	boundary := "batchresponse_" + c.requestID
	out := c.answer(http.StatusAccepted)
	out.header["Content-Type"] = []string{"multipart/mixed; boundary=" + boundary}
	out.body = append(part.appendPart([]byte("--"+boundary+"\r\n")), "--"+boundary+"--\r\n"...)
	return out, nil
}

// batchAnswer wraps the answers to the operations.
func (c *call) batchAnswer(parts []*answer) *answer {
	outer, inner := "batchresponse_"+c.requestID, "changesetresponse_"+c.requestID
	out := c.answer(http.StatusAccepted)
	out.header["Content-Type"] = []string{"multipart/mixed; boundary=" + outer}
	body := append(make([]byte, 0, 512*len(parts)+256), "--"+outer+"\r\nContent-Type: multipart/mixed; boundary="+inner+"\r\n\r\n"...)
	for _, part := range parts {
		body = part.appendPart(append(body, "--"+inner+"\r\n"...))
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
func (a *answer) appendPart(dst []byte) []byte {
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
