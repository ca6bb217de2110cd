package request

import (
	"mime"
	"net/http"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/entity"
)

// Verb is the kind of an operation.
type Verb uint8

// The verbs. Replace and Merge without If-Match insert the entity if it does not exist.
const (
	Insert Verb = iota
	Replace
	Merge
	Delete
)

// Operation is one change of one entity, alone or in a transaction, parsed and checked against every stateless rule.
type Operation struct {
	Verb           Verb
	Table          string
	Partition, Row string
	IfMatch        string // "" if the request has none: then replace and merge may also insert
	Properties     []entity.Property

	Prefer    string // return-content, return-no-content or ""
	Metadata  entity.Metadata
	ContentID string // Content-ID of a part of a transaction
}

// parseOperation parses a request that changes an entity; format is its $format.
func parseOperation(method string, a Address, h http.Header, format string, body []byte) (*Operation, *protocol.Fault) {
	method, fault := tunnelled(method, h)
	if fault != nil {
		return nil, fault
	}
	op := &Operation{Table: a.Table, Partition: a.Partition, Row: a.Row, IfMatch: protocol.Header(h, "If-Match")}
	switch {
	case method == http.MethodPost && a.Kind == ToEntitySet:
		op.Verb = Insert
	case method == http.MethodPut && a.Kind == ToEntity:
		op.Verb = Replace
	case (method == http.MethodPatch || method == "MERGE") && a.Kind == ToEntity:
		op.Verb = Merge
	case method == http.MethodDelete && a.Kind == ToEntity:
		op.Verb = Delete
	default:
		return nil, protocol.MethodNotAllowed()
	}
	if op.Metadata, fault = metadataOf(protocol.Header(h, "Accept"), format); fault != nil {
		return nil, fault
	}
	op.Prefer = preferenceOf(h)
	if fault := op.checkConditions(h); fault != nil {
		return nil, fault
	}
	if op.Verb == Delete {
		return op, nil
	}
	return op, op.readBody(h, body)
}

// tunnelled returns the method for which a POST is used.
func tunnelled(method string, h http.Header) (string, *protocol.Fault) {
	var values []string
	for name, v := range h {
		if strings.EqualFold(name, "X-HTTP-Method") { // clients use different cases
			values = append(values, v...)
		}
	}
	switch {
	case len(values) == 0:
		return method, nil
	case len(values) > 1:
		return "", protocol.Refuse(http.StatusBadRequest, "XMethodIncorrectCount", "More than one X-HTTP-Method is specified.")
	case method != http.MethodPost:
		return "", protocol.Refuse(http.StatusBadRequest, "XMethodNotUsingPost", "The request uses X-HTTP-Method with a Http Verb other than POST.")
	}
	switch values[0] {
	case "MERGE", http.MethodPut, http.MethodPatch, http.MethodDelete:
		return values[0], nil
	}
	return "", protocol.Refuse(http.StatusBadRequest, "XMethodIncorrectValue", "The specified X-HTTP-Method is invalid.")
}

// checkConditions checks If-Match and If-None-Match: a write must not have If-None-Match, a delete must have
// If-Match, and the value of If-Match must be an ETag or an asterisk.
func (op *Operation) checkConditions(h http.Header) *protocol.Fault {
	if protocol.Header(h, "If-None-Match") != "" {
		return protocol.InvalidInput("If-None-Match HTTP header cannot be specified for " + [...]string{"POST", "PUT", "PATCH", "DELETE"}[op.Verb] + " operations.")
	}
	switch {
	case op.Verb == Insert:
		op.IfMatch = ""
	case op.Verb == Delete && op.IfMatch == "":
		return protocol.MissingHeader()
	case op.IfMatch != "" && op.IfMatch != "*" && !entity.IsETag(op.IfMatch):
		return protocol.InvalidInput("The etag value '" + op.IfMatch + "' specified in one of the request headers is not valid. " +
			"Please make sure only one etag value is specified and is valid.")
	}
	return nil
}

// readBody parses and checks the entity. The service checks the result of a merge again when it merges.
func (op *Operation) readBody(h http.Header, body []byte) *protocol.Fault {
	if contentType := protocol.Header(h, "Content-Type"); contentType != "" {
		if media, _, err := mime.ParseMediaType(contentType); err != nil || media != "application/json" {
			return faultMediaType()
		}
	}
	sent, fault := entity.Read(body)
	if fault != nil {
		return fault
	}
	if op.Verb == Insert {
		if !sent.HasPartition || !sent.HasRow {
			return protocol.Refuse(http.StatusBadRequest, "PropertiesNeedValue", "The values are not specified for all properties in the entity.")
		}
		op.Partition, op.Row = sent.Partition, sent.Row
	} else if sent.HasPartition && sent.Partition != op.Partition || sent.HasRow && sent.Row != op.Row {
		return protocol.InvalidInput("The keys of the entity in the body are not those of its address.")
	}
	op.Properties = sent.Properties
	return entity.Check(op.Partition, op.Row, op.Properties)
}

// preferenceOf returns the preference for the response to an insert: return-content, return-no-content or nothing.
func preferenceOf(h http.Header) string {
	if prefer := protocol.Header(h, "Prefer"); prefer == "return-content" || prefer == "return-no-content" {
		return prefer
	}
	return ""
}

func faultMediaType() *protocol.Fault {
	return protocol.Refuse(http.StatusUnsupportedMediaType, "MediaTypeNotSupported", "None of the provided media types are supported")
}

// metadataOf returns the level of metadata that $format or, without one, Accept asks for.
func metadataOf(accept, format string) (entity.Metadata, *protocol.Fault) {
	if format != "" {
		accept = format
	}
	switch {
	case accept == "", strings.Contains(accept, "*/*"):
		return entity.Minimal, nil
	case !strings.Contains(accept, "application/json"):
		return 0, faultMediaType()
	case strings.Contains(accept, "odata=nometadata"):
		return entity.None, nil
	case strings.Contains(accept, "odata=fullmetadata"):
		return entity.Full, nil
	}
	return entity.Minimal, nil
}
