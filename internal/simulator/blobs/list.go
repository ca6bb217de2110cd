package simulator

import (
	"net/http"
	"sort"
	"strings"
)

// blobEntry is one entry of a listing: a blob, or the prefix that several names share.
type blobEntry struct {
	name string
	blob *storedBlob // nil for a prefix
}

// listBlobs lists the blobs in the order of their names, flat or, with a delimiter, one level at a time.
func (s *blobService) listBlobs(c *xmlCall, container string, k *blobContainer) (*answer, *Fault) {
	p, err := newXMLPage(c, s.dice, s.chaos)
	if err != nil {
		return nil, err
	}
	delimiter := c.query.Get("delimiter")
	entries := k.page(p, delimiter, c.includes("uncommittedblobs"))
	next := ""
	if n := p.keep(len(entries)); n < len(entries) {
		next = newMarker(entries[n].name)
		entries = entries[:n]
	}
	w := newXMLWriter("EnumerationResults", "ServiceEndpoint", c.endpoint(), "ContainerName", container)
	p.writeHead(w)
	w.optional("Delimiter", delimiter)
	w.begin("Blobs")
	for _, e := range entries {
		if e.blob == nil {
			w.begin("BlobPrefix")
			w.name(e.name)
			w.end()
			continue
		}
		e.write(w, c.includes("metadata"))
	}
	w.end()
	w.element("NextMarker", next)
	return w.answer(newAnswer(http.StatusOK)), nil
}

// page collects the page's entries and, if there is one, the entry after it.
func (k *blobContainer) page(p *xmlPage, delimiter string, uncommitted bool) []blobEntry {
	var entries []blobEntry
	for i := p.start(k.names); i < len(k.names) && len(entries) <= p.most; i++ {
		name := k.names[i]
		if !strings.HasPrefix(name, p.prefix) {
			break
		}
		b := k.blobs[name]
		if !b.committed && !uncommitted {
			continue
		}
		at := -1
		if delimiter != "" {
			at = strings.Index(name[len(p.prefix):], delimiter)
		}
		if at < 0 {
			entries = append(entries, blobEntry{name: name, blob: b})
			continue
		}
		shared := name[:len(p.prefix)+at+len(delimiter)]
		entries = append(entries, blobEntry{name: shared})
		// All names with the prefix lie together; go on behind them.
		i += sort.Search(len(k.names)-i, func(j int) bool { return !strings.HasPrefix(k.names[i+j], shared) }) - 1
	}
	return entries
}

func (e blobEntry) write(w *xmlWriter, metadata bool) {
	b := e.blob
	w.begin("Blob")
	w.name(e.name)
	w.begin("Properties")
	if b.committed {
		w.element("Creation-Time", xmlTime(b.created))
		w.element("Last-Modified", xmlTime(b.modified))
		w.element("Etag", strings.Trim(b.etag, `"`)) // without quotes here, unlike everywhere else
	}
	w.element("Content-Length", itoa(b.size))
	w.optional("Content-Type", b.headers.contentType)
	w.optional("Content-Encoding", b.headers.encoding)
	w.optional("Content-Language", b.headers.language)
	w.optional("Content-MD5", b.headers.md5)
	w.optional("Content-Disposition", b.headers.disposition)
	w.optional("Cache-Control", b.headers.cacheControl)
	w.element("BlobType", b.kind)
	w.element("LeaseStatus", "unlocked")
	w.element("LeaseState", "available")
	w.element("ServerEncrypted", "true")
	w.end()
	if metadata {
		w.metadata(b.metadata)
	}
	w.end()
}
