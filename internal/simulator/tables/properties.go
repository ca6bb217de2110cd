package tables

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"strconv"

	"github.com/tablepatterns/tablepatterns/internal/simulator/authorization"
	"github.com/tablepatterns/tablepatterns/internal/simulator/document"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/request"
)

// serveService serves requests on the service's own properties, which are stored as they are sent.
func (s *Service) serveService(c *request.Call, g *authorization.Grant) (*protocol.Answer, *protocol.Fault) {
	query := protocol.Query(c.Req.URL)
	if query.Get("restype") != "service" {
		return nil, protocol.InvalidQueryValue()
	}
	need := authorization.Need("s r")
	if c.Req.Method == http.MethodPut {
		need = "s w"
	}
	if !g.Allows(need) {
		return nil, authorization.PermissionMismatch()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := c.Begin(http.StatusOK)
	switch comp := query.Get("comp"); {
	case comp == "stats" && c.Req.Method == http.MethodGet:
		// Only a secondary location returns statistics of its replication, and the simulator has none.
		return nil, protocol.InvalidQueryValue()
	case comp == "properties" && c.Req.Method == http.MethodPut:
		if fault := checkServiceProperties(c.Body); fault != nil {
			return nil, fault
		}
		s.state.properties = c.Body
		out.Status = http.StatusAccepted
		return out, nil
	case comp == "properties" && c.Req.Method == http.MethodGet && s.state.properties != nil:
		out.Header["Content-Type"] = []string{"application/xml"}
		out.Body = s.state.properties
		return out, nil
	case comp == "properties" && c.Req.Method == http.MethodGet:
		return defaultProperties().Answer(out), nil
	}
	return nil, protocol.MethodNotAllowed()
}

// Limits of the properties of a service.
const (
	maxCorsRules     = 5
	maxRetentionDays = 365
)

// retentionPolicy says whether and for how many days logs or metrics are kept.
type retentionPolicy struct {
	Enabled bool `xml:"RetentionPolicy>Enabled"`
	Days    int  `xml:"RetentionPolicy>Days"`
}

// checkServiceProperties checks the documented limits of the properties of a service.
func checkServiceProperties(body []byte) *protocol.Fault {
	var sent struct {
		XMLName       xml.Name        `xml:"StorageServiceProperties"`
		Logging       retentionPolicy `xml:"Logging"`
		HourMetrics   retentionPolicy `xml:"HourMetrics"`
		MinuteMetrics retentionPolicy `xml:"MinuteMetrics"`
		Rules         []struct{}      `xml:"Cors>CorsRule"`
	}
	if err := document.Parse(body, &sent); err != nil {
		return err
	}
	if n := len(sent.Rules); n > maxCorsRules {
		return document.Invalid(fmt.Sprintf("%d CORS rules, at most %d", n, maxCorsRules))
	}
	for _, policy := range [...]retentionPolicy{sent.Logging, sent.HourMetrics, sent.MinuteMetrics} {
		if policy.Enabled && (policy.Days < 1 || policy.Days > maxRetentionDays) {
			return document.InvalidNode("Days", strconv.Itoa(policy.Days))
		}
	}
	return nil
}

// defaultProperties returns the properties of a service before any are set.
func defaultProperties() *document.Writer {
	w := document.New("StorageServiceProperties")
	off := func() {
		w.Begin("RetentionPolicy")
		w.Element("Enabled", strconv.FormatBool(false))
		w.End()
	}
	w.Begin("Logging")
	for _, pair := range [][2]string{{"Version", "1.0"}, {"Read", "false"}, {"Write", "false"}, {"Delete", "false"}} {
		w.Element(pair[0], pair[1])
	}
	off()
	w.End()
	for _, name := range []string{"HourMetrics", "MinuteMetrics"} {
		w.Begin(name)
		w.Element("Version", "1.0")
		w.Element("Enabled", "false")
		off()
		w.End()
	}
	w.Element("Cors", "")
	return w
}
