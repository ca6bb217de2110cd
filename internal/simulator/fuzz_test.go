package simulator_test

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
)

// FuzzRequest: whatever its owner sends to a small account, a service answers: with a status, with a body as long as its header
// says, and not with an error of its own. headers are lines of the form name: value.
func FuzzRequest(f *testing.F) {
	for _, seed := range [...][5]string{
		{"table", "GET", "/Staff()?$top=1&$filter=A%20eq%201&$select=A", "Accept: application/json;odata=fullmetadata", ""},
		{"table", "PATCH", "/Staff(PartitionKey='p',RowKey='r')", "If-Match: *", `{"A":1}`},
		{"table", "PUT", "/Staff?comp=acl", "", "<SignedIdentifiers><SignedIdentifier><Id>1</Id></SignedIdentifier></SignedIdentifiers>"},
		{"table", "POST", "/$batch", "Content-Type: multipart/mixed; boundary=b", probe.Batch(probe.Part("PUT", "(PartitionKey='p',RowKey='r')", `{"A":1}`))},
		{"queue", "POST", "/work/messages?visibilitytimeout=1&messagettl=-1", "", "<QueueMessage><MessageText>x</MessageText></QueueMessage>"},
		{"queue", "GET", "/work/messages?numofmessages=32&visibilitytimeout=1", "", ""},
		{"queue", "DELETE", "/work/messages/x?popreceipt=AAAA", "", ""},
		{"queue", "GET", "/?comp=list&maxresults=1&marker=2!eA&include=metadata", "x-ms-meta-a: b", ""},
		{"blob", "PUT", "/photos/b?comp=block&blockid=AAAA", "Content-MD5: x", "data"},
		{"blob", "PUT", "/photos/a?comp=blocklist", "If-None-Match: *", "<BlockList><Latest>AAAA</Latest></BlockList>"},
		{"blob", "PUT", "/photos/c", "x-ms-blob-type: AppendBlob\nx-ms-copy-source: http://contoso.blob.sim.test/photos/a", ""},
		{"blob", "PUT", "/photos/log?comp=appendblock", "x-ms-blob-condition-appendpos: 1\nx-ms-content-crc64: AAAA", "data"},
		{"blob", "GET", "/photos/a", "x-ms-range: bytes=1-2\nx-ms-range-get-content-md5: true\nIf-Modified-Since: x", ""},
		{"blob", "GET", "/photos?restype=container&comp=list&delimiter=/&prefix=a&marker=2!YQ", "", ""},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3], []byte(seed[4]))
	}
	f.Fuzz(func(t *testing.T, service, method, target, headers string, body []byte) {
		s := fuzzAccount(t)
		u, err := url.Parse("http://contoso." + service + ".sim.test" + target)
		if err != nil || u.Host != "contoso."+service+".sim.test" {
			return
		}
		if service != "table" && service != "queue" && service != "blob" {
			return
		}
		resp := assert.Must[*http.Response](t)(s.Do(fuzzRequest(method, u, headers, body)))
		got, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode < 200 || resp.StatusCode > 599 || resp.StatusCode == 500 || resp.StatusCode >= 400 && resp.Header.Get("Date") == "" {
			t.Fatalf("%d %v %v", resp.StatusCode, resp.Header, err)
		}
		if method != http.MethodHead && resp.ContentLength != int64(len(got)) {
			t.Fatalf("%d bytes, of %d", len(got), resp.ContentLength)
		}
	})
}

const fuzzToken = "token"

// fuzzAccount has a table, a queue and a container, each with something in it.
func fuzzAccount(t *testing.T) *simulator.Simulator {
	s := assert.Must[*simulator.Simulator](t)(simulator.New(simulator.Options{BearerToken: fuzzToken}))
	for _, made := range [...][5]string{
		{"table", "POST", "/Tables", "", `{"TableName":"Staff"}`},
		{"table", "PUT", "/Staff(PartitionKey='p',RowKey='r')", "", probe.EveryType},
		{"queue", "PUT", "/work", "", ""},
		{"queue", "POST", "/work/messages", "", "<QueueMessage><MessageText>x</MessageText></QueueMessage>"},
		{"blob", "PUT", "/photos?restype=container", "", ""},
		{"blob", "PUT", "/photos/a", "x-ms-blob-type: BlockBlob", "data"},
		{"blob", "PUT", "/photos/log", "x-ms-blob-type: AppendBlob", ""},
	} {
		u := assert.Must[*url.URL](t)(url.Parse("http://contoso." + made[0] + ".sim.test" + made[2]))
		resp, err := s.Do(fuzzRequest(made[1], u, made[3], []byte(made[4])))
		if err != nil || resp.StatusCode >= 300 {
			t.Fatalf("%s %s: %v %v", made[1], made[2], resp, err)
		}
	}
	return s
}

func fuzzRequest(method string, u *url.URL, headers string, body []byte) *http.Request {
	h := http.Header{"Authorization": {"Bearer " + fuzzToken}}
	for line := range strings.SplitSeq(headers, "\n") {
		if name, value, ok := strings.Cut(line, ":"); ok && !strings.EqualFold(name, "Authorization") {
			h.Add(name, strings.TrimSpace(value))
		}
	}
	return &http.Request{Method: method, URL: u, Host: u.Host, Header: h, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body))}
}
