package access

import (
	"bufio"
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tablepatterns/tablepatterns/tables"
)

// bodyOf returns a request's body, and rewinds it; nil if that is not possible.
func bodyOf(req *policy.Request) []byte {
	if req.Body() == nil || req.RewindBody() != nil {
		return nil
	}
	body, err := io.ReadAll(req.Body())
	if req.RewindBody() != nil || err != nil {
		return nil
	}
	return body
}

// splitPath parses Table, Table() or Table(PartitionKey='...',RowKey='...'); a quote inside a key is doubled.
func splitPath(path string) (table string, key tables.Key, one bool) {
	table, rest, _ := strings.Cut(path, "(")
	rest, ok := strings.CutPrefix(rest, "PartitionKey=")
	if !ok {
		return table, key, false
	}
	if key.Partition, rest, ok = cutQuoted(rest); !ok {
		return table, key, false
	}
	if rest, ok = strings.CutPrefix(rest, ",RowKey="); !ok {
		return table, key, false
	}
	key.Row, rest, ok = cutQuoted(rest)
	return table, key, ok && rest == ")"
}

// cutQuoted parses a quoted text at the beginning of s, and returns the text and the rest of s.
func cutQuoted(s string) (text, rest string, ok bool) {
	s, ok = strings.CutPrefix(s, "'")
	var b strings.Builder
	for ok {
		var part string
		if part, s, ok = strings.Cut(s, "'"); !ok {
			break
		}
		b.WriteString(part)
		doubled := false
		if s, doubled = strings.CutPrefix(s, "'"); !doubled {
			return b.String(), s, true
		}
		b.WriteByte('\'')
	}
	return "", "", false
}

// keyOfBody finds the key in an entity's JSON, and reads no further.
func keyOfBody(body []byte) (key tables.Key, ok bool) {
	d := jsontext.NewDecoder(bytes.NewReader(body))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return key, false
	}
	found := 0
	for found < 2 {
		name, err := d.ReadToken()
		if err != nil || name.Kind() != '"' {
			return key, false
		}
		var into *string
		switch name.String() {
		case "PartitionKey":
			into = &key.Partition
		case "RowKey":
			into = &key.Row
		default:
			if d.SkipValue() != nil {
				return key, false
			}
			continue
		}
		value, err := d.ReadToken()
		if err != nil || value.Kind() != '"' {
			return key, false
		}
		*into = value.String()
		found++
	}
	return key, true
}

// checkBatch checks every operation of a transaction.
func (g *guard) checkBatch(body []byte, contentType string) *refusal {
	for part := range parts(bytes.NewReader(body), contentType) {
		for inner := range parts(part, part.Header.Get("Content-Type")) {
			if o, ok := readOperation(inner, g.prefix); ok {
				if r := g.checkOperation(&o); r != nil {
					return r
				}
			}
		}
	}
	return nil
}

// parts yields the parts of a multipart body, up to the first error.
func parts(body io.Reader, contentType string) func(yield func(*multipart.Part) bool) {
	return func(yield func(*multipart.Part) bool) {
		kind, parameters, err := mime.ParseMediaType(contentType)
		if err != nil || !strings.HasPrefix(kind, "multipart/") || parameters["boundary"] == "" {
			return
		}
		for r := multipart.NewReader(body, parameters["boundary"]); ; {
			part, err := r.NextRawPart()
			if err != nil || !yield(part) {
				return
			}
		}
	}
}

// readOperation reads one operation of a transaction: a request in a part.
func readOperation(part io.Reader, prefix string) (operation, bool) {
	r := bufio.NewReader(part)
	line, err := r.ReadString('\n')
	if err != nil {
		return operation{}, false
	}
	method, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	address, _, _ := strings.Cut(rest, " HTTP/")
	u, err := url.Parse(address)
	if err != nil {
		return operation{}, false
	}
	o := operation{method: method, filter: u.Query().Get("$filter")}
	if o.path, _ = strings.CutPrefix(u.Path, prefix); o.path == u.Path {
		return operation{}, false
	}
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return operation{}, false
		}
		name, value, header := strings.Cut(strings.TrimSpace(line), ":")
		if !header {
			break // the empty line before the body
		}
		switch http.CanonicalHeaderKey(name) {
		case "If-Match":
			o.conditional = true
		case "X-Http-Method":
			o.method = strings.TrimSpace(value)
		}
	}
	o.body, err = io.ReadAll(r)
	return o, err == nil
}
