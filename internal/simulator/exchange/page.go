package exchange

import (
	"encoding/base64"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/simulator/document"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// maxPage is the maximum number of entries of a page, even if a request asks for more.
const maxPage = 5000

// markerMark is the beginning of every marker; it distinguishes markers from names.
const markerMark = "2!"

// Page is one page of a listing: the parameters of the request, and the position of the page.
type Page struct {
	Prefix  string
	Most    int // entries
	marker  string
	from    string // the first name of the page
	asked   int    // maxresults; 0 if the request has none
	service *Service
}

// Page reads the parameters that all listings have.
func (s *Service) Page(c *Call) (*Page, *protocol.Fault) {
	most, err := c.Number("maxresults", 0, 1, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	p := &Page{Prefix: c.Query.Get("prefix"), marker: c.Query.Get("marker"), Most: maxPage, service: s}
	p.asked = int(most)
	if most > 0 {
		p.Most = int(min(most, maxPage))
	}
	if p.marker != "" {
		text, ok := strings.CutPrefix(p.marker, markerMark)
		name, err := base64.RawURLEncoding.DecodeString(text)
		if !ok || err != nil || len(name) == 0 {
			return nil, InvalidQuery("marker", p.marker, "The marker is none that a listing returned.")
		}
		p.from = string(name)
	}
	return p, nil
}

// Start returns the index of the page's first name in sorted names.
func (p *Page) Start(names []string) int {
	i, _ := slices.BinarySearch(names, max(p.from, p.Prefix))
	return i
}

// take returns the names of the page, from sorted names, and the marker of the next page.
func (p *Page) take(names []string) (page []string, next string) {
	for i := p.Start(names); i < len(names) && strings.HasPrefix(names[i], p.Prefix); i++ {
		page = append(page, names[i])
		if len(page) > p.Most {
			break
		}
	}
	if n := p.Keep(len(page)); n < len(page) {
		return page[:n], NewMarker(page[n])
	}
	return page, ""
}

// Keep returns how many of the n entries at the beginning of the page the response contains. A service may
// end a page anywhere, even before its first entry.
func (p *Page) Keep(n int) int {
	n = min(n, p.Most)
	switch {
	case p.service.Dice.Chance(p.service.Chaos.EmptyPages):
		return 0
	case p.service.Dice.Chance(p.service.Chaos.ShortPages):
		return min(n, 1+p.service.Dice.Below(n))
	}
	return n
}

// NewMarker returns the marker of a page that begins at a name.
func NewMarker(name string) string {
	return markerMark + base64.RawURLEncoding.EncodeToString([]byte(name))
}

// Begin begins the response, which repeats the request's parameters; attributes are alternating names and values.
func (p *Page) Begin(c *Call, attributes ...string) *document.Writer {
	w := document.New("EnumerationResults", append([]string{"ServiceEndpoint", c.Endpoint() + "/"}, attributes...)...)
	w.Optional("Prefix", p.Prefix)
	w.Optional("Marker", p.marker)
	if p.asked > 0 {
		w.Element("MaxResults", strconv.Itoa(p.asked))
	}
	return w
}

// List returns a page of a listing of queues or containers, from their sorted names. of is the element of one entry. write
// writes what the entry contains besides its name, and returns its metadata.
func (s *Service) List(c *Call, of string, names []string, write func(w *document.Writer, name string) map[string]string) (*protocol.Answer, *protocol.Fault) {
	p, err := s.Page(c)
	if err != nil {
		return nil, err
	}
	found, next := p.take(names)
	w := p.Begin(c)
	w.Begin(of + "s")
	for _, name := range found {
		w.Begin(of)
		w.Element("Name", name)
		metadata := write(w, name)
		if c.Includes("metadata") {
			w.Metadata(metadata)
		}
		w.End()
	}
	w.End()
	w.Element("NextMarker", next)
	return w.Answer(protocol.NewAnswer(http.StatusOK)), nil
}
