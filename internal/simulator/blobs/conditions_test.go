package simulator

import (
	"maps"
	"testing"
	"time"
)

// Each way of writing and reading, under each condition: what is answered where the blob exists.
func TestBlobConditions(t *testing.T) {
	const (
		read    = "read"
		change  = "change"  // of a blob that must exist
		replace = "replace" // of a blob that need not
	)
	operations := map[string]struct {
		kind   string
		call   rawCall
		status int
	}{
		"get":        {read, rawCall{method: "GET", target: "/photos/a"}, 200},
		"head":       {read, rawCall{method: "HEAD", target: "/photos/a"}, 200},
		"put":        {replace, rawCall{"PUT", "/photos/a", map[string]string{"x-ms-blob-type": "BlockBlob"}, "y"}, 201},
		"block list": {replace, rawCall{method: "PUT", target: "/photos/a?comp=blocklist", body: "<BlockList></BlockList>"}, 201},
		"copy":       {replace, rawCall{"PUT", "/photos/a", map[string]string{"x-ms-copy-source": "http://contoso.sim.test/photos/source"}, ""}, 202},
		"metadata":   {change, rawCall{method: "PUT", target: "/photos/a?comp=metadata"}, 200},
		"properties": {change, rawCall{method: "PUT", target: "/photos/a?comp=properties"}, 200},
		"delete":     {change, rawCall{method: "DELETE", target: "/photos/a"}, 202},
	}
	at := func(d time.Duration) string { return xmlTime(testStart().Add(d)) }
	const ok = 0
	for name, test := range map[string]struct {
		header, value         string // value "etag" stands for the blob's own
		read, change, replace int
	}{
		"match":                     {"If-Match", "etag", ok, ok, ok},
		"match any":                 {"If-Match", "*", ok, ok, ok},
		"match another":             {"If-Match", `"0x8D0"`, 412, 412, 412},
		"none match":                {"If-None-Match", "etag", 304, 412, 412},
		"none match another":        {"If-None-Match", `"0x8D0"`, ok, ok, ok},
		"none match any":            {"If-None-Match", "*", 400, 412, 409},
		"match a list":              {"If-Match", `"0x8D0", etag`, ok, 400, 400},
		"modified since before":     {"If-Modified-Since", at(-time.Second), ok, ok, ok},
		"modified since then":       {"If-Modified-Since", at(0), 304, 412, 412},
		"unmodified since then":     {"If-Unmodified-Since", at(0), ok, ok, ok},
		"unmodified since before":   {"If-Unmodified-Since", at(-time.Second), 412, 412, 412},
		"unmodified since tomorrow": {"If-Unmodified-Since", at(24 * time.Hour), ok, ok, ok},
	} {
		for opName, op := range operations {
			t.Run(name+" "+opName, func(t *testing.T) {
				b := newTestBlobs(t, 1)
				b.container(t)
				b.putRaw(t, "source", "s")
				etag := b.putRaw(t, "a", "x").header.Get("ETag")
				status := map[string]int{read: test.read, change: test.change, replace: test.replace}[op.kind]
				code := map[int]string{304: "ConditionNotMet", 412: "ConditionNotMet", 409: "BlobAlreadyExists",
					400: "MultipleConditionHeadersNotSupported"}[status]
				if status == 400 && op.kind == read {
					code = "UnsatisfiableCondition"
				}
				if status == ok {
					status = op.status
				}
				call := op.call
				call.header = map[string]string{}
				maps.Copy(call.header, op.call.header)
				call.header[test.header] = map[string]string{"etag": etag, `"0x8D0", etag`: `"0x8D0", ` + etag}[test.value]
				if call.header[test.header] == "" {
					call.header[test.header] = test.value
				}
				b.want(t, call, status, code)
				if code != "" {
					// What was refused changed nothing.
					if now := b.want(t, rawCall{method: "GET", target: "/photos/a"}, 200, ""); now.header.Get("ETag") != etag || string(now.body) != "x" {
						t.Errorf("the blob changed: %s %q", now.header.Get("ETag"), now.body)
					}
				}
			})
		}
	}
}

func TestBlobConditionsOnNothing(t *testing.T) {
	for name, test := range map[string]struct {
		header, value string
		status        int
		code          string
	}{
		"match any":  {"If-Match", "*", 412, "ConditionNotMet"},
		"match":      {"If-Match", `"0x8D0"`, 412, "ConditionNotMet"},
		"none match": {"If-None-Match", "*", 201, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestBlobs(t, 1)
			b.container(t)
			for _, call := range []rawCall{
				{"PUT", "/photos/a", map[string]string{"x-ms-blob-type": "BlockBlob"}, "y"},
				{"PUT", "/photos/b", map[string]string{"x-ms-blob-type": "AppendBlob"}, ""},
				{"PUT", "/photos/c?comp=blocklist", map[string]string{}, "<BlockList/>"},
			} {
				call.header[test.header] = test.value
				b.want(t, call, test.status, test.code)
			}
		})
	}
}

// If-None-Match overrules If-Modified-Since, and If-Match overrules If-Unmodified-Since.
func TestBlobConditionsTogether(t *testing.T) {
	b := newTestBlobs(t, 1)
	b.container(t)
	etag := b.putRaw(t, "a", "x").header.Get("ETag")
	then, before := xmlTime(testStart()), xmlTime(testStart().Add(-time.Second))
	for name, test := range map[string]struct {
		header map[string]string
		status int
	}{
		"changed by ETag":   {map[string]string{"If-None-Match": `"0x8D0"`, "If-Modified-Since": then}, 200},
		"unchanged by ETag": {map[string]string{"If-None-Match": etag, "If-Modified-Since": before}, 304},
		"same by ETag":      {map[string]string{"If-Match": etag, "If-Unmodified-Since": before}, 200},
		"unquoted":          {map[string]string{"If-Match": etag[1 : len(etag)-1]}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			code := map[int]string{304: "ConditionNotMet"}[test.status]
			b.want(t, rawCall{method: "GET", target: "/photos/a", header: test.header}, test.status, code)
		})
	}
}
