package simulator

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// serviceName is the part of a host that tells the services apart.
type serviceName string

const (
	serviceTable serviceName = "table"
	serviceQueue serviceName = "queue"
	serviceBlob  serviceName = "blob"
)

// call is one request on its way through the simulator.
type call struct {
	service   serviceName
	req       *http.Request
	body      []byte
	serial    uint64
	now       time.Time
	requestID string
}

func (s *Simulator) call(name serviceName, req *http.Request, body []byte) *call {
	var serial uint64
	if !s.clock.still {
		serial = s.serial.Add(1)
	}
	return &call{service: name, req: req, body: body, serial: serial, now: s.clock.Now(), requestID: requestID(serial)}
}

// requestID makes an id of the usual shape out of the request's number.
func requestID(serial uint64) string {
	const digits = "0123456789abcdef"
	id := []byte("00000000-0002-0000-0000-000000000000")
	for i := len(id) - 1; serial > 0 && i >= 24; i-- {
		id[i] = digits[serial&15]
		serial >>= 4
	}
	return string(id)
}

// refuse answers with a fault in the service's own form.
func (c *call) refuse(f *Fault) *answer {
	if c.service == serviceTable {
		return c.refuseJSON(f)
	}
	return c.refuseXML(f)
}

func (c *call) refuseJSON(f *Fault) *answer {
	a := c.answer(f.Status)
	// A refusal is written at the level that the request accepts, or at the minimum: a level that is none has no text.
	level, _ := c.level()
	a.header["Content-Type"] = []string{level.contentType()}
	if prefer := preferenceOf(c.req.Header); prefer != "" && c.req.Method == http.MethodPost {
		a.header["Preference-Applied"] = []string{prefer}
	}
	a.body = f.appendJSON(nil, c.requestID, c.now)
	return a
}

func (c *call) refuseXML(f *Fault) *answer {
	x := newXMLCall(c.req, c.body, c.now, c.serial)
	return x.finish(x.refuse(f))
}

// answer begins an answer of the table service, with the headers that all of them have.
func (c *call) answer(status int) *answer {
	values := [...]string{c.requestID, c.now.Format(http.TimeFormat), "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0", "nosniff",
		"no-cache", headerOf(c.req.Header, "x-ms-version"), headerOf(c.req.Header, "x-ms-client-request-id")}
	h := make(http.Header, 12)
	h["X-Ms-Request-Id"] = values[0:1:1]
	h["Date"] = values[1:2:2]
	h["Server"] = values[2:3:3]
	h["X-Content-Type-Options"] = values[3:4:4]
	h["Cache-Control"] = values[4:5:5]
	if values[5] != "" {
		h["X-Ms-Version"] = values[5:6:6]
	}
	if values[6] != "" {
		h["X-Ms-Client-Request-Id"] = values[6:7:7]
	}
	return &answer{status: status, header: h}
}

// level is the level of metadata that the request asks for.
func (c *call) level() (metadata, *Fault) {
	return metadataOf(headerOf(c.req.Header, "Accept"), formatOf(c.req.URL.RawQuery))
}

// endpoint is the service's address as the request has it.
func (c *call) endpoint() string { return c.req.URL.Scheme + "://" + c.req.URL.Host }

// queryOf reads a query. A semicolon is a character like any other, though Go's reader drops what holds one.
func queryOf(u *url.URL) url.Values { return parseQueryText(u.RawQuery) }

// formatOf is the $format of a query.
func formatOf(raw string) string {
	if raw == "" {
		return ""
	}
	return parseQueryText(raw).Get("$format")
}

func parseQueryText(raw string) url.Values {
	if strings.IndexByte(raw, ';') >= 0 {
		raw = strings.ReplaceAll(raw, ";", "%3B")
	}
	// What is malformed is left out, as url.URL.Query leaves it out.
	values, _ := url.ParseQuery(raw)
	return values
}
