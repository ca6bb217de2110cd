package conformance

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// fields is what an answer says, one value a name: outcome, the headers that clients read, and each leaf of the body by
// its path. What differs from run to run is replaced by what it is: {time}, {etag}, {id}.
type fields map[string]string

// The headers that are compared. Others say nothing that a client acts on.
var comparedHeaders = []string{
	"Content-Type", "Location", "DataServiceId", "Preference-Applied", "Cache-Control", "X-Content-Type-Options",
	"x-ms-error-code", "x-ms-continuation-NextPartitionKey", "x-ms-continuation-NextRowKey", "x-ms-continuation-NextTableName",
	"ETag", "Last-Modified", "Content-Range", "Accept-Ranges", "Content-MD5", "x-ms-blob-content-md5", "x-ms-blob-type", "x-ms-blob-append-offset",
	"x-ms-blob-committed-block-count", "x-ms-creation-time", "x-ms-popreceipt", "x-ms-time-next-visible", "x-ms-approximate-messages-count",
	"x-ms-request-id", "x-ms-version", "Date", "x-ms-client-request-id",
}

// fieldsOf reads an answer. names are the names that the case made up, with what stands for them.
func fieldsOf(resp *http.Response, body string, names *strings.Replacer) fields {
	f := fields{}
	for _, name := range comparedHeaders {
		if values := resp.Header.Values(name); len(values) > 0 {
			f["header "+name] = volatile(name, names.Replace(strings.Join(values, ",")))
		}
	}
	for name, values := range resp.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-ms-meta-") {
			f["header "+name] = strings.Join(values, ",")
		}
	}
	if resp.Request.Method == http.MethodHead {
		f["header Content-Length"] = resp.Header.Get("Content-Length")
	}
	f["outcome"] = strings.TrimSpace(strconv.Itoa(resp.StatusCode) + " " + resp.Header.Get("x-ms-error-code"))
	contentType := resp.Header.Get("Content-Type")
	switch {
	case body == "":
		f["body"] = "none"
	case strings.HasPrefix(contentType, "multipart/mixed"):
		f["header Content-Type"] = "multipart/mixed"
		f.readBatch(body, names)
	case strings.HasPrefix(contentType, "application/json"):
		f.readJSON("json", body, names)
		f.addCode()
	case strings.HasPrefix(contentType, "application/xml"):
		f.readXML(body, names)
		f.addCode()
	default:
		f["body"] = names.Replace(body)
	}
	return f
}

// addCode puts an error's code behind the status.
func (f fields) addCode() {
	for _, name := range []string{"json odata.error.code", "xml Error.Code"} {
		if code := f[name]; code != "" && !strings.HasSuffix(f["outcome"], " "+code) {
			f["outcome"] += " " + code
		}
	}
}

var (
	// An entity's ETag holds its timestamp, escaped; tables are the only ones with a weak one.
	weakETag   = regexp.MustCompile(`W/\\?"datetime'\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d(\.\d{1,7})?Z'\\?"`)
	strongETag = regexp.MustCompile(`^"0x[0-9A-F]{15,16}"$`)
	bareETag   = regexp.MustCompile(`^0x[0-9A-F]{15,16}$`)
	httpTime   = regexp.MustCompile(`^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$`)
	edmTime    = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,7})?Z$`)
	guid       = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	message    = regexp.MustCompile(`^(\d+:)?[^\n]+\nRequestId:[0-9A-Za-z-]+\nTime:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,7}Z$`)
)

// volatile replaces what no two runs have in common, if it has the shape that it should have.
func volatile(name, value string) string {
	name = strings.ToLower(name[strings.LastIndexAny(name, ". ")+1:])
	switch {
	case strings.HasPrefix(name, "x-ms-continuation-") || name == "nextmarker" && value != "":
		return "{token}"
	case weakETag.MatchString(value):
		return weakETag.ReplaceAllString(value, "{etag}")
	case name == "etag" && strongETag.MatchString(value):
		return `"{etag}"`
	case name == "etag" && bareETag.MatchString(value):
		return "{etag}"
	case name == "popreceipt" || name == "x-ms-popreceipt":
		return "{receipt}"
	case httpTime.MatchString(value):
		return "{time}"
	case name == "timestamp" && edmTime.MatchString(value):
		return "{time}"
	case (name == "messageid" || name == "x-ms-request-id") && guid.MatchString(value):
		return "{id}"
	case (name == "message" || name == "value") && message.MatchString(value):
		return "{message}"
	}
	return value
}

// readJSON adds the leaves of a JSON body. Objects' order is no field: the fixtures of the simulator pin that.
func (f fields) readJSON(prefix, body string, names *strings.Replacer) {
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber() // 3.0 is not 3
	var v any
	if err := d.Decode(&v); err != nil {
		f[prefix] = "not JSON: " + err.Error()
		return
	}
	f.addJSON(prefix+" ", v, names)
}

func (f fields) addJSON(path string, v any, names *strings.Replacer) {
	under := func(name string) string { return strings.TrimPrefix(path+"."+name, ".") }
	if strings.HasSuffix(path, " ") {
		under = func(name string) string { return path + name }
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			f.addJSON(under(names.Replace(name)), v[name], names)
		}
	case []any:
		f[path+"[]"] = strconv.Itoa(len(v))
		for i := range v {
			f.addJSON(fmt.Sprintf("%s[%d]", path, i), v[i], names)
		}
	case string:
		text := names.Replace(v)
		if len(text) > 300 {
			text = fmt.Sprintf("%d bytes", len(text))
		}
		f[path] = volatile(path, text)
	default:
		f[path] = fmt.Sprintf("%v (no string)", v)
	}
}

// readXML adds the leaves of an XML body by their paths, elements of one name numbered from the second on.
func (f fields) readXML(body string, names *strings.Replacer) {
	d := xml.NewDecoder(bytes.NewReader(bytes.TrimPrefix([]byte(body), []byte("\ufeff"))))
	var path []string
	seen := map[string]int{}
	text, leaf := "", false
	for {
		token, err := d.Token()
		if err == io.EOF {
			return
		}
		if err != nil {
			f["xml"] = "not XML: " + err.Error()
			return
		}
		switch token := token.(type) {
		case xml.StartElement:
			at := strings.Join(append(path, token.Name.Local), ".")
			seen[at]++
			name := token.Name.Local
			if n := seen[at]; n > 1 {
				name += "[" + strconv.Itoa(n) + "]"
			}
			path = append(path, name)
			text, leaf = "", true
			for _, a := range token.Attr {
				f["xml "+strings.Join(path, ".")+"@"+a.Name.Local] = names.Replace(a.Value)
			}
		case xml.CharData:
			text += string(token)
		case xml.EndElement:
			if leaf {
				f.addXML(strings.Join(path, "."), names.Replace(text))
			}
			leaf, path = false, path[:len(path)-1]
		}
	}
}

// addXML adds a leaf, but not the details of an error beside its code and message, which each service has its own of.
func (f fields) addXML(at, text string) {
	if strings.HasPrefix(at, "Error.") && at != "Error.Code" && at != "Error.Message" {
		return
	}
	f["xml "+at] = volatile(at, text)
}

var (
	innerStatus = regexp.MustCompile(`^HTTP/1\.1 (\d{3}) `)
	opIndex     = regexp.MustCompile(`^(\d+):`)
	errorValue  = regexp.MustCompile(`"value":"([^"]*)"`)
)

// readBatch adds the parts of a transaction's answer. The outcome names the parts' own, those that repeat once.
func (f fields) readBatch(body string, names *strings.Replacer) {
	parts := regexp.MustCompile(`(?m)^--changesetresponse_[^\r\n]*\r?\n`).Split(body, -1)
	if len(parts) < 2 {
		parts = regexp.MustCompile(`(?m)^--batchresponse_[^\r\n]*\r?\n`).Split(body, -1)
	}
	var outcomes []string
	for _, part := range parts[1:] {
		_, inner, ok := strings.Cut(strings.ReplaceAll(part, "\r\n", "\n"), "\n\n")
		if m := innerStatus.FindStringSubmatch(inner); !ok || m == nil {
			continue
		}
		head, content, _ := strings.Cut(inner, "\n\n")
		one := fields{}
		outcome := innerStatus.FindStringSubmatch(inner)[1]
		for line := range strings.SplitSeq(head, "\n") {
			if name, value, ok := strings.Cut(line, ": "); ok {
				one["header "+name] = volatile(name, names.Replace(value))
			}
		}
		if content = strings.TrimSpace(content); strings.HasPrefix(content, "{") {
			one.readJSON("json", content, names)
			if code := one["json odata.error.code"]; code != "" {
				outcome += " " + code
				if m := errorValue.FindStringSubmatch(content); m != nil {
					if index := opIndex.FindStringSubmatch(m[1]); index != nil {
						outcome += " at " + index[1]
					}
				}
			}
		}
		if len(parts) < 20 {
			for name, value := range one {
				f["part "+strconv.Itoa(len(outcomes))+" "+name] = value
			}
		}
		outcomes = append(outcomes, outcome)
	}
	n := len(outcomes)
	f["parts"] = strconv.Itoa(n)
	f["outcome"] += " [" + strings.Join(slices.Compact(outcomes), ", ") + "]"
}
