package simulator

import (
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"strings"
)

// xmlMaxPage is the most entries of one page, whatever is asked for.
const xmlMaxPage = 5000

// markerMark begins every marker, so that a name is not taken for one.
const markerMark = "2!"

// xmlPage is one page of a listing: what was asked for, and where it begins.
type xmlPage struct {
	prefix, marker string
	from           string // the name at which the page begins
	asked          int    // maxresults, 0 if the request leaves it open
	most           int
	dice           *Dice
	chaos          *Chaos
}

// newXMLPage reads the parameters that all listings share.
func newXMLPage(c *xmlCall, d *Dice, chaos *Chaos) (*xmlPage, *Fault) {
	most, err := c.number("maxresults", 0, 1, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	p := &xmlPage{prefix: c.query.Get("prefix"), marker: c.query.Get("marker"), most: xmlMaxPage, dice: d, chaos: chaos}
	p.asked = int(most)
	if most > 0 {
		p.most = int(min(most, xmlMaxPage))
	}
	if p.marker != "" {
		text, ok := strings.CutPrefix(p.marker, markerMark)
		name, err := base64.RawURLEncoding.DecodeString(text)
		if !ok || err != nil || len(name) == 0 {
			return nil, xmlInvalidQuery("marker", p.marker, "The marker is none that a listing returned.")
		}
		p.from = string(name)
	}
	return p, nil
}

// start finds the page's first name among sorted ones.
func (p *xmlPage) start(names []string) int {
	i, _ := slices.BinarySearch(names, max(p.from, p.prefix))
	return i
}

// take cuts the page out of sorted names, and makes the marker of the next.
func (p *xmlPage) take(names []string) (page []string, next string) {
	for i := p.start(names); i < len(names) && strings.HasPrefix(names[i], p.prefix); i++ {
		page = append(page, names[i])
		if len(page) > p.most {
			break
		}
	}
	if n := p.keep(len(page)); n < len(page) {
		return page[:n], newMarker(page[n])
	}
	return page, ""
}

// keep says how many of n entries the page holds. A service may end a page wherever it likes, even before its first entry.
func (p *xmlPage) keep(n int) int {
	n = min(n, p.most)
	switch {
	case p.dice.chance(p.chaos.EmptyPages):
		return 0
	case p.dice.chance(p.chaos.ShortPages):
		return min(n, 1+p.dice.below(n))
	}
	return n
}

func newMarker(name string) string {
	return markerMark + base64.RawURLEncoding.EncodeToString([]byte(name))
}

// writeHead repeats what was asked for, as answers do.
func (p *xmlPage) writeHead(w *xmlWriter) {
	w.optional("Prefix", p.prefix)
	w.optional("Marker", p.marker)
	if p.asked > 0 {
		w.element("MaxResults", strconv.Itoa(p.asked))
	}
}

// endpoint is the service's address.
func (c *xmlCall) endpoint() string {
	scheme := c.Req.URL.Scheme
	if scheme == "" {
		scheme = "https"
	}
	host := c.Req.URL.Host
	if host == "" {
		host = c.Req.Host
	}
	return scheme + "://" + host + "/"
}
