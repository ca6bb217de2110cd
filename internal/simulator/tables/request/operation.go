package simulator

import (
	"mime"
	"net/http"
	"strings"
)

// verb is what an operation does to its entity.
type verb uint8

const (
	verbInsert verb = iota
	verbReplace
	verbMerge
	verbDelete
)

// operation is one change of one entity, alone or as a part of a transaction, read and held against every rule that
// needs no state.
type operation struct {
	verb       verb
	table      string
	pk, rk     string
	ifMatch    string // "" where there is none: then replace and merge insert as well
	properties []property

	prefer    string // return-content, return-no-content or ""
	metadata  metadata
	contentID string // of a part
}

// parseOperation reads a request that changes an entity; format is its $format.
func parseOperation(method string, a address, h http.Header, format string, body []byte) (*operation, *Fault) {
	method, fault := tunnelled(method, h)
	if fault != nil {
		return nil, fault
	}
	op := &operation{table: a.table, pk: a.pk, rk: a.rk, ifMatch: Header(h, "If-Match")}
	switch {
	case method == http.MethodPost && a.kind == addressEntitySet:
		op.verb = verbInsert
	case method == http.MethodPut && a.kind == addressEntity:
		op.verb = verbReplace
	case (method == http.MethodPatch || method == "MERGE") && a.kind == addressEntity:
		op.verb = verbMerge
	case method == http.MethodDelete && a.kind == addressEntity:
		op.verb = verbDelete
	default:
		return nil, faultMethod()
	}
	if op.metadata, fault = metadataOf(Header(h, "Accept"), format); fault != nil {
		return nil, fault
	}
	op.prefer = preferenceOf(h)
	if fault := op.checkConditions(h); fault != nil {
		return nil, fault
	}
	if op.verb == verbDelete {
		return op, nil
	}
	return op, op.readBody(h, body)
}

// tunnelled is the method that a POST stands for.
func tunnelled(method string, h http.Header) (string, *Fault) {
	var values []string
	for name, v := range h {
		if strings.EqualFold(name, "X-HTTP-Method") { // clients spell it in more than one way
			values = append(values, v...)
		}
	}
	switch {
	case len(values) == 0:
		return method, nil
	case len(values) > 1:
		return "", refuse(http.StatusBadRequest, "XMethodIncorrectCount", "More than one X-HTTP-Method is specified.")
	case method != http.MethodPost:
		return "", refuse(http.StatusBadRequest, "XMethodNotUsingPost", "The request uses X-HTTP-Method with a Http Verb other than POST.")
	}
	switch values[0] {
	case "MERGE", http.MethodPut, http.MethodPatch, http.MethodDelete:
		return values[0], nil
	}
	return "", refuse(http.StatusBadRequest, "XMethodIncorrectValue", "The specified X-HTTP-Method is invalid.")
}

// checkConditions holds the rules for If-Match and If-None-Match: writes take no If-None-Match, a delete must have
// If-Match, and what it holds must be the ETag of an entity or an asterisk.
func (op *operation) checkConditions(h http.Header) *Fault {
	if Header(h, "If-None-Match") != "" {
		return faultInput("If-None-Match HTTP header cannot be specified for " + [...]string{"POST", "PUT", "PATCH", "DELETE"}[op.verb] + " operations.")
	}
	switch {
	case op.verb == verbInsert:
		op.ifMatch = ""
	case op.verb == verbDelete && op.ifMatch == "":
		return faultMissingHeader()
	case op.ifMatch != "" && op.ifMatch != "*" && !isETag(op.ifMatch):
		return faultInput("The etag value '" + op.ifMatch + "' specified in one of the request headers is not valid. " +
			"Please make sure only one etag value is specified and is valid.")
	}
	return nil
}

// readBody reads the entity and checks it. What a merge makes of it is checked once more when it is known.
func (op *operation) readBody(h http.Header, body []byte) *Fault {
	if contentType := Header(h, "Content-Type"); contentType != "" {
		if media, _, err := mime.ParseMediaType(contentType); err != nil || media != "application/json" {
			return faultMediaType()
		}
	}
	sent, fault := readEntity(body)
	if fault != nil {
		return fault
	}
	if op.verb == verbInsert {
		if !sent.hasPK || !sent.hasRK {
			return refuse(http.StatusBadRequest, "PropertiesNeedValue", "The values are not specified for all properties in the entity.")
		}
		op.pk, op.rk = sent.pk, sent.rk
	} else if sent.hasPK && sent.pk != op.pk || sent.hasRK && sent.rk != op.rk {
		return faultInput("The keys of the entity in the body are not those of its address.")
	}
	op.properties = sent.properties
	return checkEntity(op.pk, op.rk, op.properties)
}

// preferenceOf reads what an insert is to be answered with: return-content, return-no-content or nothing.
func preferenceOf(h http.Header) string {
	if prefer := Header(h, "Prefer"); prefer == "return-content" || prefer == "return-no-content" {
		return prefer
	}
	return ""
}

func faultMediaType() *Fault {
	return refuse(http.StatusUnsupportedMediaType, "MediaTypeNotSupported", "None of the provided media types are supported")
}

// metadataOf reads Accept, or $format, which goes before it.
func metadataOf(accept, format string) (metadata, *Fault) {
	if format != "" {
		accept = format
	}
	switch {
	case accept == "", strings.Contains(accept, "*/*"):
		return minimalMetadata, nil
	case !strings.Contains(accept, "application/json"):
		return 0, faultMediaType()
	case strings.Contains(accept, "odata=nometadata"):
		return noMetadata, nil
	case strings.Contains(accept, "odata=fullmetadata"):
		return fullMetadata, nil
	}
	return minimalMetadata, nil
}
