package simulator

import (
	"net/http"
	"strings"
	"time"
)

// containerRights are the letters of the rights that a policy of a container may give.
const containerRights = "racwdxyltmeopi"

// blobDeleteDelay is how long the name of a deleted container cannot be taken again.
const blobDeleteDelay = 30 * time.Second

// blobService is the blob service of one account. Contents are never changed once written, only added to or replaced: what
// a request has read stays as it was.
type blobService struct {
	xmlService
	authority   *Authority // of the sources of copies
	containers  map[string]*blobContainer
	deleted     map[string]time.Time // when names of deleted containers were given up
	deleteDelay time.Duration
}

// blobContainer is a container with its blobs.
type blobContainer struct {
	metadata map[string]string
	policies Policies
	etag     string
	modified time.Time
	blobs    map[string]*storedBlob
	names    []string             // of blobs, sorted
	graves   map[string]time.Time // last stamps of blobs that are gone, under a still clock
}

// touch marks a change of the container itself; changes to its blobs are none.
func (k *blobContainer) touch(clock *Clock) {
	k.modified = clock.After(k.modified)
	k.etag = xmlETag(k.modified)
}

func newBlobService(authority *Authority, clock *Clock, d *Dice, chaos *Chaos) *blobService {
	return &blobService{xmlService: xmlService{clock: clock, dice: d, chaos: chaos}, authority: authority, containers: map[string]*blobContainer{},
		deleted: map[string]time.Time{}, deleteDelay: blobDeleteDelay}
}

// Serve answers one request whose sender has the grant. The path begins with the container's name. The body becomes the blob's
// content as it is: the caller must not write to it afterwards.
func (s *blobService) Serve(c *Call, g *Grant) *answer {
	if fault := s.permit(c.Req, g); fault != nil {
		return s.Refuse(c, fault)
	}
	return s.answer(c, s.dispatch)
}

// Policy finds a stored access policy, for a signature that names one.
func (s *blobService) Policy(container, id string) (Policy, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.containers[container]
	if k == nil {
		return Policy{}, false
	}
	return k.policies.Find(id)
}

func (s *blobService) dispatch(c *xmlCall) (*answer, *Fault) {
	if err := blobUnsupported(c); err != nil {
		return nil, err
	}
	container, name := blobPath(c.Req.URL.Path)
	if container == "" {
		if c.Req.Method != http.MethodGet || c.query.Get("comp") != "list" {
			return nil, xmlInvalidQuery("comp", c.query.Get("comp"), "The account has no such resource.")
		}
		return s.listContainers(c)
	}
	if err := checkContainerName(container); err != nil {
		return nil, err
	}
	if name == "" {
		return s.container(c, container)
	}
	if len(name) > 1024 {
		return nil, refuse(http.StatusBadRequest, "OutOfRangeInput",
			"The specified resource name length is not within the permissible limits.")
	}
	k := s.containers[container]
	if k == nil {
		return nil, containerNotFound()
	}
	t := &blobTarget{service: s, container: k, name: name}
	return t.dispatch(c)
}

// blobPath splits a path into a container's name and a blob's, which may hold slashes.
func blobPath(path string) (container, name string) {
	container, name, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return container, name
}

func checkContainerName(name string) *Fault {
	if name == "$root" || name == "$web" || name == "$logs" {
		return nil
	}
	return xmlCheckName(name)
}

func containerNotFound() *Fault {
	return refuse(http.StatusNotFound, "ContainerNotFound", "The specified container does not exist.")
}

// blobUnsupported refuses what would be ignored otherwise, and be missed only in production.
func blobUnsupported(c *xmlCall) *Fault {
	for _, name := range [...]string{"x-ms-tags", "x-ms-if-tags", "x-ms-structured-body", "x-ms-encryption-key",
		"x-ms-encryption-scope", "x-ms-copy-source-authorization"} {
		if c.header.Get(name) != "" {
			return xmlUnsupportedHeader(name)
		}
	}
	for _, name := range [...]string{"snapshot", "versionid"} {
		if c.query.Has(name) {
			return refuse(http.StatusBadRequest, "UnsupportedQueryParameter",
				"One of the query parameters specified in the request URI is not supported.").with("QueryParameterName", name)
		}
	}
	// Nobody can hold a lease here, so a request that names one has lost it.
	if c.header.Get("x-ms-lease-id") != "" {
		return refuse(http.StatusPreconditionFailed, "LeaseNotPresentWithBlobOperation",
			"There is currently no lease on the blob.")
	}
	return nil
}

// blobTarget is the place that a request on a blob names, with or without a blob in it.
type blobTarget struct {
	service   *blobService
	container *blobContainer
	name      string
}

// find returns the committed blob, or nil.
func (t *blobTarget) find() *storedBlob {
	if b := t.container.blobs[t.name]; b != nil && b.committed {
		return b
	}
	return nil
}

// dispatch serves the requests on one blob.
func (t *blobTarget) dispatch(c *xmlCall) (*answer, *Fault) {
	comp := c.query.Get("comp")
	switch c.Req.Method + " " + comp {
	case "PUT ":
		if c.header.Get("x-ms-copy-source") != "" && c.header.Get("x-ms-blob-type") == "" {
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
		return nil, blobNotFound()
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
	}
	if comp == "" {
		return nil, xmlUnsupportedVerb(c.Req.Method)
	}
	return nil, xmlInvalidQuery("comp", comp, "A blob has no such resource.")
}

func blobNotFound() *Fault {
	return refuse(http.StatusNotFound, "BlobNotFound", "The specified blob does not exist.")
}
