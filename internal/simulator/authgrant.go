package simulator

import (
	"net/http"
	"strings"
)

// grant is what the sender of a request may do.
type grant struct {
	owner bool // everything

	permissions string // letters
	// resources are the letters of the resource types that an account signature covers; "" is a service signature's.
	resources string

	table            string // of a service signature for a table
	from, to         rowKey
	hasFrom, hasTo   bool
	hasFromR, hasToR bool
}

// rowKey is the key of an entity.
type rowKey struct{ pk, rk string }

// The types of resources that account signatures tell apart.
const (
	resourceService   = 's'
	resourceContainer = 'c' // a table, a queue, a container
	resourceObject    = 'o' // an entity, a message, a blob
)

// need is what a request asks for.
type need struct {
	resource byte
	// service says whether a service signature can allow it at all.
	service bool
	// letters are sets of permissions, one of which is enough.
	letters []string
}

// allows tells whether the grant covers a need.
func (g *grant) allows(n need) bool {
	if g.owner {
		return true
	}
	if g.resources != "" && strings.IndexByte(g.resources, n.resource) < 0 || g.resources == "" && !n.service {
		return false
	}
	for _, set := range n.letters {
		if g.holds(set) {
			return true
		}
	}
	return false
}

func (g *grant) holds(set string) bool {
	for i := range len(set) {
		if strings.IndexByte(g.permissions, set[i]) < 0 {
			return false
		}
	}
	return true
}

// entities checks access to entities of a table.
func (g *grant) entities(table, letters string) *Fault {
	if g.owner {
		return nil
	}
	if g.resources == "" && !sameTable(g.table, table) {
		return faultAuthorization()
	}
	if !g.allows(need{resourceObject, true, []string{letters}}) {
		return faultPermission()
	}
	return nil
}

// change checks access for one operation. What inserts if there is nothing to update needs both permissions.
func (g *grant) change(op *operation) *Fault {
	letters := "u"
	switch {
	case op.verb == verbInsert:
		letters = "a"
	case op.verb == verbDelete:
		letters = "d"
	case op.ifMatch == "":
		letters = "au"
	}
	if fault := g.entities(op.table, letters); fault != nil {
		return fault
	}
	if !g.covers(op.pk, op.rk) {
		return faultAuthorization()
	}
	return nil
}

// covers tells whether a key is within the range of a table's signature. The range is one of whole keys: a bound on rows
// counts only in the partition that the bound names.
func (g *grant) covers(pk, rk string) bool {
	if g.hasFrom {
		if order := compareKeys(pk, "", g.from.pk, ""); order < 0 || order == 0 && g.hasFromR && compareKeys("", rk, "", g.from.rk) < 0 {
			return false
		}
	}
	if g.hasTo {
		if order := compareKeys(pk, "", g.to.pk, ""); order > 0 || order == 0 && g.hasToR && compareKeys("", rk, "", g.to.rk) > 0 {
			return false
		}
	}
	return true
}

// queueNeeds says what a request to the queue service asks for.
func queueNeeds(req *http.Request) need {
	query := queryOf(req.URL)
	name, rest, _ := strings.Cut(strings.Trim(req.URL.Path, "/"), "/")
	read := req.Method == http.MethodGet || req.Method == http.MethodHead
	switch {
	case name == "":
		return need{resourceService, false, letters(read, "l", "w")}
	case query.Get("comp") == "acl":
		return need{} // by the account's key only
	case rest == "":
		if read {
			return need{resourceContainer, true, []string{"r"}}
		}
		if req.Method == http.MethodDelete {
			return need{resourceContainer, false, []string{"d"}}
		}
		return need{resourceContainer, false, letters(query.Get("comp") == "", "c|w", "w")}
	}
	switch req.Method {
	case http.MethodPost:
		return need{resourceObject, true, []string{"a"}}
	case http.MethodPut:
		return need{resourceObject, true, []string{"u"}}
	case http.MethodDelete:
		if rest == "messages" { // all of them
			return need{resourceObject, false, []string{"d"}}
		}
		return need{resourceObject, true, []string{"p"}}
	}
	if query.Get("peekonly") == "true" {
		return need{resourceObject, true, []string{"r"}}
	}
	return need{resourceObject, true, []string{"p"}}
}

// letters are the alternatives, joined by a bar, of one case or the other.
func letters(first bool, yes, no string) []string {
	if first {
		return strings.Split(yes, "|")
	}
	return strings.Split(no, "|")
}

// blobNeeds says what a request to the blob service asks for.
func blobNeeds(req *http.Request) need {
	query := queryOf(req.URL)
	container, blob := blobPath(req.URL.Path)
	read := req.Method == http.MethodGet || req.Method == http.MethodHead
	comp := query.Get("comp")
	switch {
	case container == "":
		return need{resourceService, false, letters(read, "l", "w")}
	case blob == "" && comp == "acl":
		return need{} // by the account's key only
	case blob == "" && comp == "list":
		return need{resourceContainer, true, []string{"l"}}
	case blob == "" && read:
		return need{resourceContainer, false, []string{"r"}}
	case blob == "" && req.Method == http.MethodDelete:
		return need{resourceContainer, false, []string{"d"}}
	case blob == "":
		return need{resourceContainer, false, letters(comp == "", "c|w", "w")}
	case read:
		return need{resourceObject, true, []string{"r"}}
	case req.Method == http.MethodDelete:
		return need{resourceObject, true, []string{"d"}}
	case comp == "appendblock":
		return need{resourceObject, true, []string{"a", "w"}}
	case comp == "" || comp == "block" || comp == "blocklist":
		return need{resourceObject, true, []string{"c", "w"}}
	}
	return need{resourceObject, true, []string{"w"}}
}
