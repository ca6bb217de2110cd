package blobs

import (
	"net/http"
	"net/url"

	"github.com/tablepatterns/tablepatterns/internal/simulator/authorization"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// needs returns the permission that a request needs.
func needs(req *http.Request) authorization.Need {
	container, blob := cutPath(req.URL.Path)
	read := req.Method == http.MethodGet || req.Method == http.MethodHead
	comp := protocol.Query(req.URL).Get("comp")
	switch {
	case container == "" && read:
		return "s l"
	case container == "":
		return "s w"
	case blob == "" && comp == "acl":
		return ""
	case blob == "" && comp == "list":
		return "C l"
	case blob == "" && read:
		return "c r"
	case blob == "" && req.Method == http.MethodDelete:
		return "c d"
	case blob == "" && comp == "":
		return "c c|w"
	case blob == "":
		return "c w"
	case read:
		return "O r"
	case req.Method == http.MethodDelete:
		return "O d"
	case comp == "appendblock":
		return "O a|w"
	case comp == "" || comp == "block" || comp == "blocklist":
		return "O c|w"
	}
	if comp == "legalhold" || comp == "immutabilityPolicies" {
		return "O i"
	}
	return "O w"
}

// permit checks that the sender may make a request. The permission to create does not allow overwriting.
func (s *Service) permit(req *http.Request, g *authorization.Grant) *protocol.Fault {
	switch {
	case g.Owner:
		return nil
	case !g.Allows(needs(req)) || !g.Holds("w") && s.overwrites(req):
		return authorization.PermissionMismatch()
	}
	return s.permitCopy(req)
}

// overwrites reports whether a request would overwrite an existing blob.
func (s *Service) overwrites(req *http.Request) bool {
	comp := protocol.Query(req.URL).Get("comp")
	if req.Method != http.MethodPut || comp != "" && comp != "blocklist" {
		return false
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	container, name := cutPath(req.URL.Path)
	k := s.containers[container]
	return k != nil && k.blobs[name] != nil && k.blobs[name].committed
}

// permitCopy checks that the URL of a copy's source allows reading it. The copy itself checks whether the URL
// names a blob.
func (s *Service) permitCopy(req *http.Request) *protocol.Fault {
	text := protocol.Header(req.Header, "x-ms-copy-source")
	source, err := url.Parse(text)
	if text == "" || err != nil || source.Host != req.URL.Host {
		return nil
	}
	read := &http.Request{Method: http.MethodGet, URL: source, Header: http.Header{}}
	g, fault := s.authority.Check(protocol.Blob, s.Policy, read)
	if fault != nil || !g.Allows(needs(read)) {
		return protocol.Refuse(http.StatusForbidden, "CannotVerifyCopySource", "This request is not authorized to perform this operation.")
	}
	return nil
}
