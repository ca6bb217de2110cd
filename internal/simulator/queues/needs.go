package queues

import (
	"net/http"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/simulator/authorization"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// needs returns the permission that a request needs.
func needs(req *http.Request) authorization.Need {
	query := protocol.Query(req.URL)
	name, rest, _ := strings.Cut(strings.Trim(req.URL.Path, "/"), "/")
	read := req.Method == http.MethodGet || req.Method == http.MethodHead
	switch {
	case name == "" && read:
		return "s l"
	case name == "":
		return "s w"
	case query.Get("comp") == "acl":
		return ""
	case rest == "" && read:
		return "C r"
	case rest == "" && req.Method == http.MethodDelete:
		return "c d"
	case rest == "" && query.Get("comp") == "":
		return "c c|w"
	case rest == "":
		return "c w"
	case req.Method == http.MethodPost:
		return "O a"
	case req.Method == http.MethodPut:
		return "O u"
	case req.Method == http.MethodDelete && rest == "messages": // clears the queue
		return "o d"
	case req.Method != http.MethodDelete && query.Get("peekonly") == "true":
		return "O r"
	}
	return "O p"
}
