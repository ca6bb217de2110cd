package blobs

import (
	"maps"
	"net/http"
	"slices"

	"github.com/tablepatterns/tablepatterns/internal/simulator/authorization"
	"github.com/tablepatterns/tablepatterns/internal/simulator/document"
	"github.com/tablepatterns/tablepatterns/internal/simulator/exchange"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// container serves the requests on a container as a whole.
func (s *Service) container(c *exchange.Call, name string) (*protocol.Answer, *protocol.Fault) {
	comp := c.Query.Get("comp")
	if c.Query.Get("restype") != "container" {
		return nil, exchange.InvalidQuery("restype", c.Query.Get("restype"), "The resource is a container.")
	}
	if c.Req.Method == http.MethodPut && comp == "" {
		return s.createContainer(c, name)
	}
	k := s.containers[name]
	if k == nil {
		return nil, containerNotFound()
	}
	read := c.Req.Method == http.MethodGet || c.Req.Method == http.MethodHead
	switch {
	case comp == "list" && c.Req.Method == http.MethodGet:
		return s.listBlobs(c, name, k)
	case read && (comp == "" || comp == "metadata"):
		return k.describe(protocol.NewAnswer(http.StatusOK), true), nil
	case read && comp == "acl":
		return k.policies.Answer(k.describe(protocol.NewAnswer(http.StatusOK), false)), nil
	case c.Req.Method == http.MethodDelete && comp == "":
		if err := k.check(c); err != nil {
			return nil, err
		}
		delete(s.containers, name)
		s.deleted[name] = c.Now
		return protocol.NewAnswer(http.StatusAccepted), nil
	case c.Req.Method == http.MethodPut && (comp == "metadata" || comp == "acl"):
		return s.setContainer(c, k, comp)
	case comp == "":
		return nil, exchange.UnsupportedVerb(c.Req.Method)
	}
	return nil, exchange.InvalidQuery("comp", comp, "A container has no such resource.")
}

func (s *Service) createContainer(c *exchange.Call, name string) (*protocol.Answer, *protocol.Fault) {
	if err := c.CheckMetadata(); err != nil {
		return nil, err
	}
	if s.containers[name] != nil {
		return nil, protocol.Refuse(http.StatusConflict, "ContainerAlreadyExists", "The specified container already exists.")
	}
	if gone, ok := s.deleted[name]; ok && c.Now.Before(gone.Add(s.deleteDelay)) {
		return nil, protocol.Refuse(http.StatusConflict, "ContainerBeingDeleted",
			"The specified container is being deleted. Try operation later.")
	}
	delete(s.deleted, name)
	k := &storedContainer{metadata: c.Metadata, blobs: map[string]*stored{}}
	k.touch(s.Clock)
	s.containers[name] = k
	return k.describe(protocol.NewAnswer(http.StatusCreated), false), nil
}

func (s *Service) setContainer(c *exchange.Call, k *storedContainer, comp string) (*protocol.Answer, *protocol.Fault) {
	if err := k.check(c); err != nil {
		return nil, err
	}
	if comp == "metadata" {
		if err := c.CheckMetadata(); err != nil {
			return nil, err
		}
		k.metadata = c.Metadata
	} else {
		policies, err := authorization.ReadPolicies(c.Body, rights)
		if err != nil {
			return nil, err
		}
		k.policies = policies
	}
	k.touch(s.Clock)
	return k.describe(protocol.NewAnswer(http.StatusOK), false), nil
}

// check checks the request's conditions on the container.
func (k *storedContainer) check(c *exchange.Call) *protocol.Fault {
	return conditionsOf(c.Header, "").check(k.etag, k.modified, false)
}

// describe adds the container's properties to the headers of a response.
func (k *storedContainer) describe(a *protocol.Answer, all bool) *protocol.Answer {
	a.Header.Set("ETag", k.etag)
	a.Header.Set("Last-Modified", exchange.Time(k.modified))
	if all {
		exchange.SetMetadata(a.Header, k.metadata)
		a.Header.Set("x-ms-lease-state", "available")
		a.Header.Set("x-ms-lease-status", "unlocked")
		a.Header.Set("x-ms-has-immutability-policy", "false")
		a.Header.Set("x-ms-has-legal-hold", "false")
	}
	return a
}

func (s *Service) listContainers(c *exchange.Call) (*protocol.Answer, *protocol.Fault) {
	return s.List(c, "Container", slices.Sorted(maps.Keys(s.containers)), func(w *document.Writer, name string) map[string]string {
		k := s.containers[name]
		w.Begin("Properties")
		w.Element("Last-Modified", exchange.Time(k.modified))
		w.Element("Etag", k.etag)
		w.Element("LeaseStatus", "unlocked")
		w.Element("LeaseState", "available")
		w.End()
		return k.metadata
	})
}
