package simulator

import (
	"net/http"
	"strconv"
	"time"
)

// serveService answers for the service itself: its properties, which are kept as they are set, and its statistics.
func (s *tableService) serveService(c *call, g *grant) (*answer, *Fault) {
	query := queryOf(c.req.URL)
	if query.Get("restype") != "service" {
		return nil, refuse(http.StatusBadRequest, "InvalidQueryParameterValue", "Value for one of the query parameters specified in the request URI is invalid.")
	}
	letter := "r"
	if c.req.Method == http.MethodPut {
		letter = "w"
	}
	if !g.allows(need{resourceService, false, []string{letter}}) {
		return nil, faultPermission()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := c.answer(http.StatusOK)
	switch comp := query.Get("comp"); {
	case comp == "stats" && c.req.Method == http.MethodGet:
		w := newXMLWriter("StorageServiceStats")
		w.begin("GeoReplication")
		w.element("Status", "live")
		w.element("LastSyncTime", c.now.Truncate(time.Second).Format(http.TimeFormat))
		return w.answer(out), nil
	case comp == "properties" && c.req.Method == http.MethodPut:
		var any struct{}
		if err := parseXML(c.body, &any); err != nil {
			return nil, refuse(err.status, err.code, err.message)
		}
		s.properties = c.body
		out.status = http.StatusAccepted
		return out, nil
	case comp == "properties" && c.req.Method == http.MethodGet && s.properties != nil:
		out.header["Content-Type"] = []string{"application/xml"}
		out.body = s.properties
		return out, nil
	case comp == "properties" && c.req.Method == http.MethodGet:
		return defaultProperties().answer(out), nil
	}
	return nil, faultMethod()
}

// defaultProperties are the properties of a service that nobody has set.
func defaultProperties() *xmlWriter {
	w := newXMLWriter("StorageServiceProperties")
	off := func() {
		w.begin("RetentionPolicy")
		w.element("Enabled", strconv.FormatBool(false))
		w.end()
	}
	w.begin("Logging")
	for _, pair := range [][2]string{{"Version", "1.0"}, {"Read", "false"}, {"Write", "false"}, {"Delete", "false"}} {
		w.element(pair[0], pair[1])
	}
	off()
	w.end()
	for _, name := range []string{"HourMetrics", "MinuteMetrics"} {
		w.begin(name)
		w.element("Version", "1.0")
		w.element("Enabled", "false")
		off()
		w.end()
	}
	w.element("Cors", "")
	return w
}
