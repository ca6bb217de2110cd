package simulator

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"strconv"
)

// serveService answers for the service itself: its properties, which are kept as they are set.
func (s *tableService) serveService(c *tableCall, g *Grant) (*answer, *Fault) {
	query := Query(c.Req.URL)
	if query.Get("restype") != "service" {
		return nil, faultQueryValue()
	}
	need := Need("s r")
	if c.Req.Method == http.MethodPut {
		need = "s w"
	}
	if !g.Allows(need) {
		return nil, faultPermission()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := c.answer(http.StatusOK)
	switch comp := query.Get("comp"); {
	case comp == "stats" && c.Req.Method == http.MethodGet:
		// Only a secondary location tells how far it is behind, and the simulator has none.
		return nil, faultQueryValue()
	case comp == "properties" && c.Req.Method == http.MethodPut:
		if fault := checkServiceProperties(c.Body); fault != nil {
			return nil, fault
		}
		s.state.properties = c.Body
		out.status = http.StatusAccepted
		return out, nil
	case comp == "properties" && c.Req.Method == http.MethodGet && s.state.properties != nil:
		out.header["Content-Type"] = []string{"application/xml"}
		out.body = s.state.properties
		return out, nil
	case comp == "properties" && c.Req.Method == http.MethodGet:
		return defaultProperties().answer(out), nil
	}
	return nil, faultMethod()
}

// What the properties of a service may say at most.
const (
	maxCorsRules     = 5
	maxRetentionDays = 365
)

// retentionPolicy says how long logs or metrics are kept, if they are.
type retentionPolicy struct {
	Enabled bool `xml:"RetentionPolicy>Enabled"`
	Days    int  `xml:"RetentionPolicy>Days"`
}

// checkServiceProperties holds the documented limits of the properties of a service.
func checkServiceProperties(body []byte) *Fault {
	var sent struct {
		XMLName       xml.Name        `xml:"StorageServiceProperties"`
		Logging       retentionPolicy `xml:"Logging"`
		HourMetrics   retentionPolicy `xml:"HourMetrics"`
		MinuteMetrics retentionPolicy `xml:"MinuteMetrics"`
		Rules         []struct{}      `xml:"Cors>CorsRule"`
	}
	if err := parseXML(body, &sent); err != nil {
		return err
	}
	if n := len(sent.Rules); n > maxCorsRules {
		return xmlInvalidDocument(fmt.Sprintf("%d CORS rules, at most %d", n, maxCorsRules))
	}
	for _, policy := range [...]retentionPolicy{sent.Logging, sent.HourMetrics, sent.MinuteMetrics} {
		if policy.Enabled && (policy.Days < 1 || policy.Days > maxRetentionDays) {
			return xmlInvalidNode("Days", strconv.Itoa(policy.Days))
		}
	}
	return nil
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
