package blobs

import (
	"maps"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator/exchange"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
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
		call   probe.Call
		status int
	}{
		"get":        {read, probe.Call{Method: "GET", Target: "/photos/a"}, 200},
		"head":       {read, probe.Call{Method: "HEAD", Target: "/photos/a"}, 200},
		"put":        {replace, probe.NewCall("PUT", "/photos/a", map[string]string{"x-ms-blob-type": "BlockBlob"}, "y"), 201},
		"block list": {replace, probe.Call{Method: "PUT", Target: "/photos/a?comp=blocklist", Body: "<BlockList></BlockList>"}, 201},
		"copy":       {replace, probe.NewCall("PUT", "/photos/a", map[string]string{"x-ms-copy-source": "http://contoso.sim.test/photos/source"}, ""), 202},
		"metadata":   {change, probe.Call{Method: "PUT", Target: "/photos/a?comp=metadata"}, 200},
		"properties": {change, probe.Call{Method: "PUT", Target: "/photos/a?comp=properties"}, 200},
		"delete":     {change, probe.Call{Method: "DELETE", Target: "/photos/a"}, 202},
	}
	at := func(d time.Duration) string { return exchange.Time(probe.Start().Add(d)) }
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
				etag := b.putRaw(t, "a", "x").Header.Get("ETag")
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
				call.Header = map[string]string{}
				maps.Copy(call.Header, op.call.Header)
				call.Header[test.header] = map[string]string{"etag": etag, `"0x8D0", etag`: `"0x8D0", ` + etag}[test.value]
				if call.Header[test.header] == "" {
					call.Header[test.header] = test.value
				}
				b.Want(t, call, status, code)
				if code != "" {
					// What was refused changed nothing.
					if now := b.Want(t, probe.Call{Method: "GET", Target: "/photos/a"}, 200, ""); now.Header.Get("ETag") != etag || string(now.Body) != "x" {
						t.Errorf("the blob changed: %s %q", now.Header.Get("ETag"), now.Body)
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
			for _, call := range []probe.Call{
				probe.NewCall("PUT", "/photos/a", map[string]string{"x-ms-blob-type": "BlockBlob"}, "y"),
				probe.NewCall("PUT", "/photos/b", map[string]string{"x-ms-blob-type": "AppendBlob"}, ""),
				probe.NewCall("PUT", "/photos/c?comp=blocklist", map[string]string{}, "<BlockList/>"),
			} {
				call.Header[test.header] = test.value
				b.Want(t, call, test.status, test.code)
			}
		})
	}
}

// If-None-Match overrules If-Modified-Since, and If-Match overrules If-Unmodified-Since.
func TestBlobConditionsTogether(t *testing.T) {
	b := newTestBlobs(t, 1)
	b.container(t)
	etag := b.putRaw(t, "a", "x").Header.Get("ETag")
	then, before := exchange.Time(probe.Start()), exchange.Time(probe.Start().Add(-time.Second))
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
			b.Want(t, probe.Call{Method: "GET", Target: "/photos/a", Header: test.header}, test.status, code)
		})
	}
}
