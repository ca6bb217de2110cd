package simulator

import (
	"maps"
	"net/http"
	"slices"
)

// container serves the requests on a container as a whole.
func (s *blobService) container(c *xmlCall, name string) (*answer, *Fault) {
	comp := c.query.Get("comp")
	if c.query.Get("restype") != "container" {
		return nil, xmlInvalidQuery("restype", c.query.Get("restype"), "The resource is a container.")
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
		return k.describe(newAnswer(http.StatusOK), true), nil
	case read && comp == "acl":
		return k.policies.Answer(k.describe(newAnswer(http.StatusOK), false)), nil
	case c.Req.Method == http.MethodDelete && comp == "":
		if err := k.check(c); err != nil {
			return nil, err
		}
		delete(s.containers, name)
		s.deleted[name] = c.Now
		return newAnswer(http.StatusAccepted), nil
	case c.Req.Method == http.MethodPut && (comp == "metadata" || comp == "acl"):
		return s.setContainer(c, k, comp)
	case comp == "":
		return nil, xmlUnsupportedVerb(c.Req.Method)
	}
	return nil, xmlInvalidQuery("comp", comp, "A container has no such resource.")
}

func (s *blobService) createContainer(c *xmlCall, name string) (*answer, *Fault) {
	if err := c.checkMetadata(); err != nil {
		return nil, err
	}
	if s.containers[name] != nil {
		return nil, refuse(http.StatusConflict, "ContainerAlreadyExists", "The specified container already exists.")
	}
	if gone, ok := s.deleted[name]; ok && c.Now.Before(gone.Add(s.deleteDelay)) {
		return nil, refuse(http.StatusConflict, "ContainerBeingDeleted",
			"The specified container is being deleted. Try operation later.")
	}
	delete(s.deleted, name)
	k := &blobContainer{metadata: c.metadata, blobs: map[string]*storedBlob{}}
	k.touch(s.clock)
	s.containers[name] = k
	return k.describe(newAnswer(http.StatusCreated), false), nil
}

func (s *blobService) setContainer(c *xmlCall, k *blobContainer, comp string) (*answer, *Fault) {
	if err := k.check(c); err != nil {
		return nil, err
	}
	if comp == "metadata" {
		if err := c.checkMetadata(); err != nil {
			return nil, err
		}
		k.metadata = c.metadata
	} else {
		policies, err := ReadPolicies(c.Body, containerRights)
		if err != nil {
			return nil, err
		}
		k.policies = policies
	}
	k.touch(s.clock)
	return k.describe(newAnswer(http.StatusOK), false), nil
}

// check holds the request's conditions against the container.
func (k *blobContainer) check(c *xmlCall) *Fault {
	return blobConditions(c.header, "").check(k.etag, k.modified, false)
}

// describe puts the container's properties among the headers.
func (k *blobContainer) describe(a *answer, all bool) *answer {
	a.header.Set("ETag", k.etag)
	a.header.Set("Last-Modified", xmlTime(k.modified))
	if all {
		setMetadata(a.header, k.metadata)
		a.header.Set("x-ms-lease-state", "available")
		a.header.Set("x-ms-lease-status", "unlocked")
		a.header.Set("x-ms-has-immutability-policy", "false")
		a.header.Set("x-ms-has-legal-hold", "false")
	}
	return a
}

func (s *blobService) listContainers(c *xmlCall) (*answer, *Fault) {
	p, err := newXMLPage(c, s.dice, s.chaos)
	if err != nil {
		return nil, err
	}
	found, next := p.take(slices.Sorted(maps.Keys(s.containers)))
	w := newXMLWriter("EnumerationResults", "ServiceEndpoint", c.endpoint())
	p.writeHead(w)
	w.begin("Containers")
	for _, name := range found {
		k := s.containers[name]
		w.begin("Container")
		w.element("Name", name)
		w.begin("Properties")
		w.element("Last-Modified", xmlTime(k.modified))
		w.element("Etag", k.etag)
		w.element("LeaseStatus", "unlocked")
		w.element("LeaseState", "available")
		w.end()
		if c.includes("metadata") {
			w.metadata(k.metadata)
		}
		w.end()
	}
	w.end()
	w.element("NextMarker", next)
	return w.answer(newAnswer(http.StatusOK)), nil
}
