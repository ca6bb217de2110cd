package blobs

import (
	"net/http"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/simulator/authorization"
	"github.com/tablepatterns/tablepatterns/internal/simulator/environment"
	"github.com/tablepatterns/tablepatterns/internal/simulator/exchange"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// rights are the letters of the permissions that a policy of a container may contain.
const rights = "racwdxyltmeopi"

// deleteDelay is how long the name of a deleted container cannot be used again.
const deleteDelay = 30 * time.Second

// Service is the blob service of one account. Stored contents are never changed, only appended to or
// replaced, so the content that a request has read remains valid.
type Service struct {
	exchange.Service
	authority   *authorization.Authority // authenticates the requests that read the sources of copies
	containers  map[string]*storedContainer
	deleted     map[string]time.Time // when each deleted container was deleted, by name
	deleteDelay time.Duration
}

// storedContainer is a container with its blobs.
type storedContainer struct {
	metadata map[string]string
	policies authorization.Policies
	etag     string
	modified time.Time
	blobs    map[string]*stored
	names    []string             // the names of blobs, sorted
	graves   map[string]time.Time // the last stamp of each deleted blob, for a still clock
}

// touch sets the container's time of change and ETag. A change of one of its blobs does not count as a change
// of the container.
func (k *storedContainer) touch(clock *environment.Clock) {
	k.modified = clock.After(k.modified)
	k.etag = newETag(k.modified)
}

// New returns a service without containers. authority decides whether the source of a copy may be read.
func New(authority *authorization.Authority, clock *environment.Clock, d *environment.Dice, chaos *environment.Chaos) *Service {
	return &Service{Service: exchange.Service{Clock: clock, Dice: d, Chaos: chaos}, authority: authority, containers: map[string]*storedContainer{},
		deleted: map[string]time.Time{}, deleteDelay: deleteDelay}
}

// Serve serves one request of a sender with this grant. The path begins with the container's name. The service keeps the body
// as the blob's content, so the caller must not change it afterwards.
func (s *Service) Serve(c *protocol.Call, g *authorization.Grant) *protocol.Answer {
	if fault := s.permit(c.Req, g); fault != nil {
		return s.Refuse(c, fault)
	}
	return s.Answer(c, s.dispatch)
}

// Policy returns the stored access policy that a signature names.
func (s *Service) Policy(container, id string) (authorization.Policy, bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	k := s.containers[container]
	if k == nil {
		return authorization.Policy{}, false
	}
	return k.policies.Find(id)
}

func (s *Service) dispatch(c *exchange.Call) (*protocol.Answer, *protocol.Fault) {
	if err := unsupported(c); err != nil {
		return nil, err
	}
	container, name := cutPath(c.Req.URL.Path)
	if container == "" {
		if c.Req.Method != http.MethodGet || c.Query.Get("comp") != "list" {
			return nil, exchange.InvalidQuery("comp", c.Query.Get("comp"), "The account has no such resource.")
		}
		return s.listContainers(c)
	}
	if err := checkContainerName(container); err != nil {
		return nil, err
	}
	if name == "" {
		return s.container(c, container)
	}
	if edm.Units(name) > 1024 { // the service counts UTF-16 units
		return nil, protocol.Refuse(http.StatusBadRequest, "OutOfRangeInput",
			"The specified resource name length is not within the permissible limits.")
	}
	k := s.containers[container]
	if k == nil {
		return nil, containerNotFound()
	}
	t := &target{service: s, container: k, name: name}
	return t.dispatch(c)
}

// cutPath splits a path into the names of container and blob; the name of a blob may contain slashes.
func cutPath(path string) (container, name string) {
	container, name, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return container, name
}

func checkContainerName(name string) *protocol.Fault {
	if name == "$root" || name == "$web" || name == "$logs" {
		return nil
	}
	return exchange.CheckName(name)
}

func containerNotFound() *protocol.Fault {
	return protocol.Refuse(http.StatusNotFound, "ContainerNotFound", "The specified container does not exist.")
}

// unsupported refuses requests that use features which the simulator does not implement, so that a test does not pass by
// ignoring them.
func unsupported(c *exchange.Call) *protocol.Fault {
	for _, name := range [...]string{"x-ms-tags", "x-ms-if-tags", "x-ms-structured-body", "x-ms-encryption-key",
		"x-ms-encryption-scope", "x-ms-copy-source-authorization"} {
		if c.Header.Get(name) != "" {
			return exchange.UnsupportedHeader(name)
		}
	}
	for name, used := range map[string]bool{"versionid": c.Query.Has("versionid"), "include": c.Includes("snapshots")} {
		if used {
			return protocol.Refuse(http.StatusBadRequest, "UnsupportedQueryParameter",
				"One of the query parameters specified in the request URI is not supported.").With("QueryParameterName", name)
		}
	}
	return nil
}

// target is the name of a blob in a container; the blob may not exist.
type target struct {
	service   *Service
	container *storedContainer
	name      string
}

// find returns the committed blob, or nil.
func (t *target) find() *stored {
	if b := t.container.blobs[t.name]; b != nil && b.committed {
		return b
	}
	return nil
}

// dispatch serves the requests on one blob.
func (t *target) dispatch(c *exchange.Call) (*protocol.Answer, *protocol.Fault) {
	comp := c.Query.Get("comp")
	switch c.Req.Method + " " + comp {
	case "PUT ":
		if c.Header.Get("x-ms-copy-source") != "" && c.Header.Get("x-ms-blob-type") == "" {
			return t.copy(c)
		}
		return t.put(c)
	case "PUT block":
		return t.putBlock(c)
	case "PUT blocklist":
		return t.putBlockList(c)
	case "GET blocklist":
		return t.getBlockList(c)
	case "PUT appendblock":
		return t.appendBlock(c)
	}
	b := t.find()
	if b == nil {
		return nil, notFound()
	}
	if c.Query.Has("snapshot") {
		return b.serveSnapshot(c, comp)
	}
	switch c.Req.Method + " " + comp {
	case "GET ":
		return b.get(c)
	case "HEAD ", "HEAD metadata", "GET metadata":
		return b.properties(c)
	case "PUT properties", "PUT metadata":
		return t.set(c, b, comp)
	case "DELETE ":
		return t.delete(c, b)
	case "PUT lease":
		return t.lease(c, b)
	case "PUT snapshot":
		return t.snapshot(c, b)
	case "PUT tier":
		return b.setTier(c)
	case "PUT legalhold", "PUT immutabilityPolicies", "DELETE immutabilityPolicies":
		return b.setHold(c, comp)
	}
	if comp == "" {
		return nil, exchange.UnsupportedVerb(c.Req.Method)
	}
	return nil, exchange.InvalidQuery("comp", comp, "A blob has no such resource.")
}

func notFound() *protocol.Fault {
	return protocol.Refuse(http.StatusNotFound, "BlobNotFound", "The specified blob does not exist.")
}
