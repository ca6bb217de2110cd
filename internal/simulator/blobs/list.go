package blobs

import (
	"net/http"
	"sort"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/simulator/document"
	"github.com/tablepatterns/tablepatterns/internal/simulator/exchange"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// entry is an entry of a listing: a blob, or the common prefix of several names.
type entry struct {
	name string
	blob *stored // nil for a prefix
}

// listBlobs lists the blobs in the order of their names, flat or, with a delimiter, one level at a time.
func (s *Service) listBlobs(c *exchange.Call, container string, k *storedContainer) (*protocol.Answer, *protocol.Fault) {
	p, err := s.Page(c)
	if err != nil {
		return nil, err
	}
	delimiter := c.Query.Get("delimiter")
	entries := k.page(p, delimiter, c.Includes("uncommittedblobs"))
	next := ""
	if n := p.Keep(len(entries)); n < len(entries) {
		next = exchange.NewMarker(entries[n].name)
		entries = entries[:n]
	}
	w := p.Begin(c, "ContainerName", container)
	w.Optional("Delimiter", delimiter)
	w.Begin("Blobs")
	for _, e := range entries {
		if e.blob == nil {
			w.Begin("BlobPrefix")
			w.Name(e.name)
			w.End()
			continue
		}
		e.write(w, c)
	}
	w.End()
	w.Element("NextMarker", next)
	return w.Answer(protocol.NewAnswer(http.StatusOK)), nil
}

// page returns the page's entries and the entry after it, if there is one.
func (k *storedContainer) page(p *exchange.Page, delimiter string, uncommitted bool) []entry {
	var entries []entry
	for i := p.Start(k.names); i < len(k.names) && len(entries) <= p.Most; i++ {
		name := k.names[i]
		if !strings.HasPrefix(name, p.Prefix) {
			break
		}
		b := k.blobs[name]
		if !b.committed && !uncommitted {
			continue
		}
		at := -1
		if delimiter != "" {
			at = strings.Index(name[len(p.Prefix):], delimiter)
		}
		if at < 0 {
			entries = append(entries, entry{name: name, blob: b})
			continue
		}
		shared := name[:len(p.Prefix)+at+len(delimiter)]
		entries = append(entries, entry{name: shared})
		// All names with the prefix are adjacent; continue after them.
		i += sort.Search(len(k.names)-i, func(j int) bool { return !strings.HasPrefix(k.names[i+j], shared) }) - 1
	}
	return entries
}

func (e entry) write(w *document.Writer, c *exchange.Call) {
	b := e.blob
	w.Begin("Blob")
	w.Name(e.name)
	w.Begin("Properties")
	if b.committed {
		w.Element("Creation-Time", exchange.Time(b.created))
		w.Element("Last-Modified", exchange.Time(b.modified))
		w.Element("Etag", strings.Trim(b.etag, `"`)) // listings have no quotes around an ETag
	}
	w.Element("Content-Length", itoa(b.size))
	for _, name := range headerNames() {
		w.Optional(name, b.headers[name])
	}
	w.Element("BlobType", b.kind)
	state := http.Header{}
	b.lease.describe(state, c.Now)
	b.tier.describe(state, c.Now)
	w.Optional("AccessTier", state.Get("x-ms-access-tier"))
	w.Optional("ArchiveStatus", state.Get("x-ms-archive-status"))
	w.Element("LeaseStatus", state.Get("x-ms-lease-status"))
	w.Element("LeaseState", state.Get("x-ms-lease-state"))
	w.Element("ServerEncrypted", "true")
	w.End()
	if c.Includes("metadata") {
		w.Metadata(b.metadata)
	}
	w.End()
}
