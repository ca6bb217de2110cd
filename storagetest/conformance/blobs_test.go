package conformance

import (
	"fmt"
	"net/url"
	"strings"
)

func blobCases() []script {
	return []script{
		{"a container's life", containerLife},
		{"a blob's life", blobLife},
		{"conditions of a blob", blobConditions},
		{"ranges of a blob", blobRanges},
		{"an append blob", appending},
		{"blocks", blocks},
		{"listing blobs", listing},
		{"metadata of a blob", blobMetadata},
		{"what keeps a blob from being changed", keptBlob},
	}
}

var blockBlob = []string{"x-ms-blob-type", "BlockBlob"}

func containerLife(w *world) {
	name := w.named("{container}", w.ContainerName(w))
	at := "/" + name + "?restype=container"
	w.do(blobs, "blob before", "404 ContainerNotFound", "GET", "/"+name+"/b", "")
	w.do(blobs, "drop before", "404 ContainerNotFound", "DELETE", at, "")
	w.do(blobs, "create", "201", "PUT", at, "", "x-ms-meta-team", "hr")
	w.do(blobs, "create again", "409 ContainerAlreadyExists", "PUT", at, "")
	w.do(blobs, "properties", "200", "GET", at, "")
	w.do(blobs, "list", "200", "GET", at+"&comp=list", "")
	w.do(blobs, "drop", "202", "DELETE", at, "")
	w.do(blobs, "drop again", "404 ContainerNotFound", "DELETE", at, "")
	w.do(blobs, "put after", "404 ContainerNotFound", "PUT", "/"+name+"/b", "x", blockBlob...)
	w.do(blobs, "a short name", "400 OutOfRangeInput", "PUT", "/ab?restype=container", "")
	w.do(blobs, "a name in capitals", "400 InvalidResourceName", "PUT", "/ABC?restype=container", "")
}

func blobLife(w *world) {
	at := "/" + w.newContainer() + "/folder/photo.jpg"
	w.do(blobs, "get before", "404 BlobNotFound", "GET", at, "")
	w.do(blobs, "head before", "404 BlobNotFound", "HEAD", at, "")
	w.do(blobs, "delete before", "404 BlobNotFound", "DELETE", at, "")
	w.do(blobs, "put", "201", "PUT", at, "hello", append(blockBlob, "x-ms-blob-content-type", "image/jpeg")...)
	w.do(blobs, "get", "200", "GET", at, "")
	w.do(blobs, "head", "200", "HEAD", at, "")
	w.do(blobs, "put again", "201", "PUT", at, "hello, world", blockBlob...)
	w.do(blobs, "get again", "200", "GET", at, "")
	w.do(blobs, "put of nothing", "201", "PUT", at, "", blockBlob...)
	w.do(blobs, "get of nothing", "200", "GET", at, "")
	w.do(blobs, "another type", "409 InvalidBlobType", "PUT", at, "", "x-ms-blob-type", "AppendBlob")
	w.do(blobs, "no type", "400 MissingRequiredHeader", "PUT", at, "x")
	w.do(blobs, "no such type", "400 InvalidHeaderValue", "PUT", at, "x", "x-ms-blob-type", "RockBlob")
	w.do(blobs, "another hash", "400 Md5Mismatch", "PUT", at, "x", append(blockBlob, "Content-MD5", "XrY7u+Ae7tCTyyK7j1rNww==")...)
	w.do(blobs, "delete", "202", "DELETE", at, "")
	w.do(blobs, "delete again", "404 BlobNotFound", "DELETE", at, "")
	w.do(blobs, "get after", "404 BlobNotFound", "GET", at, "")
}

// keptBlob compares only statuses and codes: the answers have ids and times of leases and snapshots.
func keptBlob(w *world) {
	at := "/" + w.newContainer() + "/b"
	try := func(name, want, method, query, body string, headers ...string) {
		w.Helper()
		r := w.quiet(blobs, method, at+query, body, headers...)
		w.note(name, want, strings.TrimSpace(fmt.Sprint(r.StatusCode)+" "+r.Header.Get("x-ms-error-code")))
	}
	const lease, id, other = "?comp=lease", "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
	try("put", "201", "PUT", "", "x", blockBlob...)
	try("renew no lease", "409 LeaseIdMismatchWithLeaseOperation", "PUT", lease, "", "x-ms-lease-action", "renew", "x-ms-lease-id", id)
	try("lease", "201", "PUT", lease, "", "x-ms-lease-action", "acquire", "x-ms-lease-duration", "60", "x-ms-proposed-lease-id", id)
	try("lease again", "409 LeaseAlreadyPresent", "PUT", lease, "", "x-ms-lease-action", "acquire", "x-ms-lease-duration", "60", "x-ms-proposed-lease-id", other)
	try("leased: get", "200", "GET", "", "")
	try("leased: put", "412 LeaseIdMissing", "PUT", "", "y", blockBlob...)
	try("leased: put a block", "412 LeaseIdMissing", "PUT", "?comp=block&blockid=AAAA", "y")
	try("leased: set metadata", "412 LeaseIdMissing", "PUT", "?comp=metadata", "")
	try("leased: set tier", "412 LeaseIdMissing", "PUT", "?comp=tier", "", "x-ms-access-tier", "Cool")
	try("leased: delete", "412 LeaseIdMissing", "DELETE", "", "")
	try("leased: delete with another id", "412 LeaseIdMismatchWithBlobOperation", "DELETE", "", "", "x-ms-lease-id", other)
	try("leased: set metadata with the id", "200", "PUT", "?comp=metadata", "", "x-ms-lease-id", id)
	try("release", "200", "PUT", lease, "", "x-ms-lease-action", "release", "x-ms-lease-id", id)
	try("released: set metadata with the id", "412 LeaseNotPresentWithBlobOperation", "PUT", "?comp=metadata", "", "x-ms-lease-id", id)
	try("take a snapshot", "201", "PUT", "?comp=snapshot", "")
	try("delete with a snapshot", "409 SnapshotsPresent", "DELETE", "", "")
	try("delete only snapshots", "202", "DELETE", "", "", "x-ms-delete-snapshots", "only")
	try("set tier", "200", "PUT", "?comp=tier", "", "x-ms-access-tier", "Archive")
	try("archived: head", "200", "HEAD", "", "")
	try("archived: get", "409 BlobArchived", "GET", "", "")
	try("rehydrate", "202", "PUT", "?comp=tier", "", "x-ms-access-tier", "Hot")
	try("delete", "202", "DELETE", "", "")
}

func blobConditions(w *world) {
	at := "/" + w.newContainer() + "/b"
	const other = `"0x8DEADBEEFDEADBE"`
	put := func(step, want, header, value string) reply {
		return w.do(blobs, step, want, "PUT", at, step, append(blockBlob, header, value)...)
	}
	put("put if there, and there is none", "412 ConditionNotMet", "If-Match", other)
	first := put("put if there is none", "201", "If-None-Match", "*")
	put("put if there is none, and there is one", "409 BlobAlreadyExists", "If-None-Match", "*")
	put("put if another", "412 ConditionNotMet", "If-Match", other)
	second := put("put if this", "201", "If-Match", first.Header.Get("ETag"))
	put("put if as it was", "412 ConditionNotMet", "If-Match", first.Header.Get("ETag"))
	put("put if any", "201", "If-Match", "*")
	w.note("ETags differ", "true", first.Header.Get("ETag") != second.Header.Get("ETag"))
	now := w.must(blobs, "HEAD", at, "").Header.Get("ETag")
	w.do(blobs, "get if another", "412 ConditionNotMet", "GET", at, "", "If-Match", other)
	w.do(blobs, "get if this", "200", "GET", at, "", "If-Match", now)
	w.do(blobs, "get if changed, and it is not", "304 ConditionNotMet", "GET", at, "", "If-None-Match", now)
	w.do(blobs, "head if changed, and it is not", "304 ConditionNotMet", "HEAD", at, "", "If-None-Match", now)
	w.do(blobs, "get if changed", "200", "GET", at, "", "If-None-Match", other)
	w.do(blobs, "get if changed since long ago", "200", "GET", at, "", "If-Modified-Since", "Mon, 01 Jan 2001 00:00:00 GMT")
	w.do(blobs, "get if unchanged since long ago", "412 ConditionNotMet", "GET", at, "", "If-Unmodified-Since", "Mon, 01 Jan 2001 00:00:00 GMT")
	w.do(blobs, "delete if another", "412 ConditionNotMet", "DELETE", at, "", "If-Match", other)
	w.do(blobs, "delete if this", "202", "DELETE", at, "", "If-Match", now)
	w.do(blobs, "delete of none if this", "404 BlobNotFound", "DELETE", at, "", "If-Match", now)
}

func blobRanges(w *world) {
	at := "/" + w.newContainer() + "/b"
	w.must(blobs, "PUT", at, "0123456789", blockBlob...)
	for _, r := range []struct{ span, want string }{
		{"bytes=0-3", "206"}, {"bytes=2-", "206"}, {"bytes=9-9", "206"}, {"bytes=5-100", "206"}, {"bytes=10-", "416 InvalidRange"}, {"bytes=10-20", "416 InvalidRange"},
	} {
		w.do(blobs, "x-ms-range "+r.span, r.want, "GET", at, "", "x-ms-range", r.span)
	}
	w.do(blobs, "Range", "206", "GET", at, "", "Range", "bytes=1-2")
	w.do(blobs, "with its hash", "206", "GET", at, "", "x-ms-range", "bytes=0-3", "x-ms-range-get-content-md5", "true")
}

func appending(w *world) {
	at := "/" + w.newContainer() + "/log"
	block := func(step, want, text string, headers ...string) reply {
		return w.do(blobs, step, want, "PUT", at+"?comp=appendblock", text, headers...)
	}
	block("append to none", "404 BlobNotFound", "x")
	w.do(blobs, "create", "201", "PUT", at, "", "x-ms-blob-type", "AppendBlob")
	w.do(blobs, "create if there is none", "409 BlobAlreadyExists", "PUT", at, "", "x-ms-blob-type", "AppendBlob", "If-None-Match", "*")
	block("first", "201", "one\n")
	made := block("second", "201", "two\n", "x-ms-blob-condition-appendpos", "4")
	block("at another position", "412 AppendPositionConditionNotMet", "x", "x-ms-blob-condition-appendpos", "4")
	block("beyond the size allowed", "412 MaxBlobSizeConditionNotMet", "x", "x-ms-blob-condition-maxsize", "8")
	block("within the size allowed", "201", "three\n", "x-ms-blob-condition-maxsize", "14")
	block("for an ETag before", "412 ConditionNotMet", "x", "If-Match", made.Header.Get("ETag"))
	block("nothing", "400 InvalidHeaderValue", "")
	w.do(blobs, "read", "200", "GET", at, "")
	w.do(blobs, "head", "200", "HEAD", at, "")
	w.do(blobs, "range", "206", "GET", at, "", "x-ms-range", "bytes=4-7")
	w.must(blobs, "PUT", at+"2", "x", blockBlob...)
	w.do(blobs, "metadata", "200", "PUT", at+"?comp=metadata", "", "x-ms-meta-last", "3")
	block("at the position after that", "201", "four\n", "x-ms-blob-condition-appendpos", "14")
	w.do(blobs, "both are there", "200", "HEAD", at, "")
	w.do(blobs, "a range beyond the end", "206", "GET", at, "", "x-ms-range", "bytes=14-100")
	w.do(blobs, "a range behind the end", "416 InvalidRange", "GET", at, "", "x-ms-range", "bytes=19-100")
	container, _, _ := strings.Cut(strings.TrimPrefix(at, "/"), "/")
	w.do(blobs, "listed with metadata", "200", "GET", "/"+container+"?restype=container&comp=list&include=metadata&prefix=log", "")
	w.do(blobs, "append to a block blob", "409 InvalidBlobType", "PUT", at+"2?comp=appendblock", "x")
}

func blocks(w *world) {
	at := "/" + w.newContainer() + "/big"
	list := func(ids ...string) string {
		all := ""
		for _, id := range ids {
			all += "<Latest>" + id + "</Latest>"
		}
		return `<?xml version="1.0" encoding="utf-8"?><BlockList>` + all + `</BlockList>`
	}
	id := func(id string) string { return at + "?comp=block&blockid=" + url.QueryEscape(id) }
	w.do(blobs, "first", "201", "PUT", id("YWE="), "hello ")
	w.do(blobs, "second", "201", "PUT", id("YmI="), "world")
	w.do(blobs, "not there yet", "404 BlobNotFound", "GET", at, "")
	w.do(blobs, "an id of another length", "400 InvalidBlobOrBlock", "PUT", id("Y2NjY2Nj"), "x")
	w.do(blobs, "an unknown block", "400 InvalidBlockList", "PUT", at+"?comp=blocklist", list("YWE=", "enp6"))
	w.do(blobs, "commit", "201", "PUT", at+"?comp=blocklist", list("YWE=", "YmI="))
	w.do(blobs, "there", "200", "GET", at, "")
	w.do(blobs, "block list", "200", "GET", at+"?comp=blocklist&blocklisttype=all", "")
	w.do(blobs, "commit in another order", "201", "PUT", at+"?comp=blocklist", list("YmI=", "YWE="))
	w.do(blobs, "changed", "200", "GET", at, "")
	w.do(blobs, "commit if there is none", "409 BlobAlreadyExists", "PUT", at+"?comp=blocklist", list("YWE="), "If-None-Match", "*")
}

func listing(w *world) {
	name := w.newContainer()
	for _, b := range []string{"a/1", "a/2", "a/b/3", "b", "c&d", "größer"} {
		w.must(blobs, "PUT", "/"+name+"/"+url.PathEscape(b), "x", append(blockBlob, "x-ms-meta-k", "v")...)
	}
	at := "/" + name + "?restype=container&comp=list"
	w.do(blobs, "all", "200", "GET", at, "")
	w.do(blobs, "prefix", "200", "GET", at+"&prefix=a%2F", "")
	w.do(blobs, "no such prefix", "200", "GET", at+"&prefix=x", "")
	w.do(blobs, "one level", "200", "GET", at+"&delimiter=%2F", "")
	w.do(blobs, "one level under a prefix", "200", "GET", at+"&delimiter=%2F&prefix=a%2F", "")
	w.do(blobs, "with metadata", "200", "GET", at+"&include=metadata&prefix=b", "")
	marker := ""
	for page := 1; page == 1 || marker != "" && page < 10; page++ {
		r := w.do(blobs, fmt.Sprint("page ", page), "200", "GET", at+"&maxresults=4"+marker, "")
		_, rest, _ := strings.Cut(r.body, "<NextMarker>")
		next, _, _ := strings.Cut(rest, "</NextMarker>")
		marker = ""
		if rest != "" && next != "" {
			marker = "&marker=" + url.QueryEscape(next)
		}
	}
}

func blobMetadata(w *world) {
	at := "/" + w.newContainer() + "/b"
	w.do(blobs, "put with", "201", "PUT", at, "x", append(blockBlob, "x-ms-meta-hash", "abc", "x-ms-meta-owner", "hr")...)
	w.do(blobs, "get with", "200", "GET", at, "")
	w.do(blobs, "set", "200", "PUT", at+"?comp=metadata", "", "x-ms-meta-hash", "def")
	w.do(blobs, "head after", "200", "HEAD", at, "")
	w.do(blobs, "read alone", "200", "GET", at+"?comp=metadata", "")
	w.do(blobs, "set none", "200", "PUT", at+"?comp=metadata", "")
	w.do(blobs, "none left", "200", "HEAD", at, "")
	w.do(blobs, "put without", "201", "PUT", at, "x", blockBlob...)
	w.do(blobs, "of none", "404 BlobNotFound", "PUT", at+"x?comp=metadata", "", "x-ms-meta-hash", "def")
}
