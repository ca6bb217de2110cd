package request

import (
	"bytes"
	"mime"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// Part is one operation in a transaction's body; its headers and body are not interpreted yet.
type Part struct {
	Method string
	Target string // path and query, without scheme and host
	Header http.Header
	body   []byte
}

// Batch is the parsed body of a transaction. It has either the operations of one change set, or a single query.
type Batch struct {
	Parts []Part
	Query bool
}

// parseBatch parses a body of one change set, or one query. Lines end in CRLF or LF.
func parseBatch(contentType string, body []byte) (*Batch, *protocol.Fault) {
	boundary, ok := boundaryOf(contentType)
	if !ok {
		return nil, faultBatch()
	}
	outer, ok := splitMultipart(body, boundary)
	if !ok || len(outer) != 1 {
		return nil, faultBatch()
	}
	header, content, ok := cutHeader(outer[0])
	if !ok {
		return nil, faultBatch()
	}
	if isHTTP(header) {
		part, ok := parsePart(content)
		if !ok || part.Method != http.MethodGet {
			return nil, faultBatch()
		}
		return &Batch{Parts: []Part{part}, Query: true}, nil
	}
	if boundary, ok = boundaryOf(header.Get("Content-Type")); !ok {
		return nil, faultBatch()
	}
	inner, ok := splitMultipart(content, boundary)
	if !ok {
		return nil, faultBatch()
	}
	b := &Batch{Parts: make([]Part, len(inner))} // has no parts for an empty change set, which the service accepts
	for i := range inner {
		header, content, ok := cutHeader(inner[i])
		if !ok || !isHTTP(header) {
			return nil, faultBatch()
		}
		if b.Parts[i], ok = parsePart(content); !ok || b.Parts[i].Method == http.MethodGet {
			return nil, faultBatch()
		}
	}
	return b, nil
}

func faultBatch() *protocol.Fault {
	return protocol.InvalidInput("One of the request inputs is not valid.")
}

// boundaryOf returns the boundary of a multipart/mixed content type.
func boundaryOf(contentType string) (string, bool) {
	media, parameters, err := mime.ParseMediaType(contentType)
	boundary := parameters["boundary"]
	return boundary, err == nil && media == "multipart/mixed" && boundary != ""
}

func isHTTP(h http.Header) bool {
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && media == "application/http"
}

// splitMultipart returns the parts between the delimiter lines. The body must end with the closing delimiter. The line ending
// before a delimiter belongs to the delimiter.
func splitMultipart(body []byte, boundary string) (parts [][]byte, ok bool) {
	delimiter := []byte("--" + boundary)
	start := -1 // start of the current part
	for at := 0; at < len(body); {
		line, next := body[at:], len(body)
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line, next = line[:end], at+end+1
		}
		if rest, is := bytes.CutPrefix(line, delimiter); is {
			rest = bytes.TrimRight(rest, " \t\r")
			last := string(rest) == "--"
			if last || len(rest) == 0 {
				if start >= 0 {
					parts = append(parts, trimNewline(body[start:max(start, at)]))
				}
				if last {
					return parts, len(bytes.TrimSpace(body[next:])) == 0
				}
				start = next
			}
		}
		at = next
	}
	return nil, false
}

// trimNewline removes one line ending from the end.
func trimNewline(b []byte) []byte {
	b, cut := bytes.CutSuffix(b, []byte("\n"))
	if cut {
		b = bytes.TrimSuffix(b, []byte("\r"))
	}
	return b
}

// cutHeader parses header lines up to an empty line.
func cutHeader(text []byte) (http.Header, []byte, bool) {
	h := http.Header{}
	for {
		line, rest, found := bytes.Cut(text, []byte("\n"))
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 {
			return h, rest, found || len(h) > 0
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || len(name) == 0 || bytes.ContainsAny(name, " \t") {
			return nil, nil, false
		}
		key := textproto.CanonicalMIMEHeaderKey(string(name))
		h[key] = append(h[key], string(bytes.TrimSpace(value)))
		if text = rest; !found {
			return h, nil, true
		}
	}
}

// parsePart parses the request in a part.
func parsePart(text []byte) (Part, bool) {
	line, rest, _ := bytes.Cut(text, []byte("\n"))
	words := strings.Split(string(bytes.TrimSuffix(line, []byte("\r"))), " ")
	if len(words) != 3 || words[0] == "" || !strings.HasPrefix(words[2], "HTTP/1.") {
		return Part{}, false
	}
	p := Part{Method: words[0]}
	var ok bool
	if p.Target, ok = cutHost(words[1]); !ok {
		return Part{}, false
	}
	if p.Header, p.body, ok = cutHeader(rest); !ok {
		return Part{}, false
	}
	if length := p.Header.Get("Content-Length"); length != "" {
		n, err := strconv.Atoi(length)
		if err != nil || n < 0 || n > len(p.body) || len(bytes.TrimSpace(p.body[n:])) > 0 {
			return Part{}, false
		}
		p.body = p.body[:n]
	}
	return p, true
}

// cutHost removes scheme and host, if there are any, from a URL.
func cutHost(target string) (string, bool) {
	for _, scheme := range []string{"http://", "https://"} {
		if rest, ok := strings.CutPrefix(target, scheme); ok {
			slash := strings.IndexByte(rest, '/')
			if slash < 0 {
				return "", false
			}
			return rest[slash:], true
		}
	}
	return target, strings.HasPrefix(target, "/")
}

// Address parses the part's URL path. prefix is the text before the resource in paths that contain the account's name.
func (p *Part) Address(prefix string) (Address, *protocol.Fault) {
	path, _, _ := strings.Cut(p.Target, "?")
	path, err := url.PathUnescape(strings.TrimPrefix(path, prefix))
	if err != nil {
		return Address{}, protocol.InvalidSyntax()
	}
	return ParseAddress(path)
}

// format returns the part's $format.
func (p *Part) format() string {
	_, query, _ := strings.Cut(p.Target, "?")
	return formatOf(query)
}

// operation parses the part's operation and checks the rules for it.
func (p *Part) operation(prefix string) (*Operation, *protocol.Fault) {
	a, fault := p.Address(prefix)
	if fault != nil {
		return nil, fault
	}
	op, fault := parseOperation(p.Method, a, p.Header, p.format(), p.body)
	if fault == nil {
		op.ContentID = p.Header.Get("Content-ID")
	}
	return op, fault
}
