package storagetest

import (
	"bytes"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// locator determines the service of a request: with known endpoints certainly, else from the request itself.
type locator struct {
	endpoints []located
}

type located struct {
	service StorageService
	host    string
	path    string // begins with the account's name if the path contains it
}

func newLocator(s *Service) locator {
	var l locator
	for service, endpoint := range map[StorageService]string{
		TableService: s.TableEndpoint, QueueService: s.QueueEndpoint, BlobService: s.BlobEndpoint,
	} {
		if u, err := url.Parse(endpoint); err == nil && u.Host != "" {
			l.endpoints = append(l.endpoints, located{service, u.Host, strings.TrimSuffix(u.Path, "/")})
		}
	}
	return l
}

func (l locator) find(req *http.Request) (StorageService, string) {
	path := req.URL.Path
	for _, e := range l.endpoints {
		rest, ok := strings.CutPrefix(path, e.path)
		if ok && e.host == req.URL.Host && (rest == "" || rest[0] == '/') {
			return e.service, strings.TrimPrefix(rest, "/")
		}
	}
	// An emulator's host is an IP address or localhost, and its path begins with the account.
	path = strings.TrimPrefix(path, "/")
	host := req.URL.Hostname()
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" {
		_, path, _ = strings.Cut(path, "/")
	}
	return byHeaders(req, host, path), path
}

// byHeaders uses the host name, the User-Agent, or headers and paths that only one service has.
func byHeaders(req *http.Request, host, path string) StorageService {
	for _, service := range []StorageService{TableService, QueueService, BlobService} {
		if strings.Contains(host, "."+string(service)+".") {
			return service
		}
	}
	agent := req.Header.Get("User-Agent")
	switch {
	case strings.Contains(agent, "azsdk-go-aztables"):
		return TableService
	case strings.Contains(agent, "azsdk-go-azqueue"):
		return QueueService
	case strings.Contains(agent, "azsdk-go-azblob"):
		return BlobService
	case header(req, "DataServiceVersion") != "", strings.HasPrefix(req.Header.Get("Authorization"), "SharedKeyLite "):
		return TableService
	case req.URL.Query().Get("restype") == "container", header(req, "x-ms-blob-type") != "":
		return BlobService
	case strings.HasSuffix(path, "/messages"), strings.Contains(path, "/messages/"):
		return QueueService
	case strings.Contains(path, "/"):
		return BlobService
	}
	return ""
}

// header also finds headers that the SDKs do not write in canonical form.
func header(req *http.Request, name string) string {
	for key, values := range req.Header {
		if len(values) > 0 && strings.EqualFold(key, name) {
			return values[0]
		}
	}
	return ""
}

// call describes a request. Send the returned request instead: call reads the body of a batch.
func (l locator) call(req *http.Request) (Call, *http.Request, error) {
	c := describe(l, req)
	if c.Kind != Batch {
		return c, req, nil
	}
	body, req, err := readBody(req)
	if err != nil {
		return c, nil, err
	}
	c.Resource = batchTable(body)
	return c, req, nil
}

// describe is call without reading the body.
func describe(l locator, req *http.Request) Call {
	c := Call{Method: req.Method, Kind: Other}
	c.Service, c.Path = l.find(req)
	switch c.Service {
	case TableService:
		c.describeTable(req)
	case QueueService:
		c.describeQueue(req)
	case BlobService:
		c.describeBlob(req)
	}
	return c
}

func (c *Call) set(kinds map[route]Kind, shape string, req *http.Request) {
	if kind, ok := kinds[route{c.Method, shape, req.URL.Query().Get("comp")}]; ok {
		c.Kind = kind
	}
}

func (c *Call) describeTable(req *http.Request) {
	name, keys, hasKeys := strings.Cut(c.Path, "(")
	keys = strings.TrimSuffix(keys, ")")
	shape := name
	switch {
	case name == "Tables":
		if hasKeys {
			c.Resource = strings.Trim(keys, "'")
		}
	case name != "" && name[0] != '$':
		shape, c.Resource = "t", name
	}
	if keys != "" {
		shape += "()"
	}
	c.set(tableKinds, shape, req)
}

func (c *Call) describeQueue(req *http.Request) {
	var shape, tail string
	c.Resource, tail, _ = strings.Cut(c.Path, "/")
	switch {
	case c.Resource == "":
	case tail == "":
		shape = "q"
	case tail == "messages":
		shape = "q/messages"
	case strings.HasPrefix(tail, "messages/"):
		shape = "q/messages/"
	}
	c.set(queueKinds, shape, req)
	if c.Kind == GetMessages && strings.EqualFold(req.URL.Query().Get("peekonly"), "true") {
		c.Kind = PeekMessages
	}
}

func (c *Call) describeBlob(req *http.Request) {
	c.Resource = strings.TrimSuffix(c.Path, "/")
	shape := ""
	switch {
	case strings.Contains(c.Resource, "/"):
		shape = "c/b"
	case req.URL.Query().Get("restype") == "container":
		shape = "c"
	case c.Resource != "":
		shape = "c/b" // a blob of the root container
	}
	c.set(blobKinds, shape, req)
	if c.Kind == PutBlob && header(req, "x-ms-copy-source") != "" {
		c.Kind = CopyBlob
	}
}

// readBody returns the body, and a request that still has it.
func readBody(req *http.Request) ([]byte, *http.Request, error) {
	if req.Body == nil {
		return nil, req, nil
	}
	body, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil {
		return nil, nil, err
	}
	again := *req
	again.Body = io.NopCloser(bytes.NewReader(body))
	return body, &again, nil
}

// batchTable returns the table of a batch's first operation: the last segment of its address, without the keys.
func batchTable(body []byte) string {
	for line := range bytes.Lines(body) {
		rest, ok := bytes.CutSuffix(bytes.TrimSpace(line), []byte(" HTTP/1.1"))
		_, address, found := bytes.Cut(rest, []byte(" "))
		if !ok || !found {
			continue
		}
		// Keys can hold any character but a slash: remove them first.
		address, _, _ = bytes.Cut(address, []byte("("))
		address, _, _ = bytes.Cut(address, []byte("?"))
		return string(address[bytes.LastIndexByte(address, '/')+1:])
	}
	return ""
}

// StorageService is one of the three services of an account.
type StorageService string

// The services.
const (
	TableService StorageService = "table"
	QueueService StorageService = "queue"
	BlobService  StorageService = "blob"
)

// Kind is the operation that a call requests.
type Kind string

// Kinds of calls to the table service. Batch is an entity group transaction. ReplaceEntity and MergeEntity without a condition also insert.
const (
	CreateTable   Kind = "CreateTable"
	DeleteTable   Kind = "DeleteTable"
	QueryTables   Kind = "QueryTables"
	GetTableACL   Kind = "GetTableACL"
	SetTableACL   Kind = "SetTableACL"
	InsertEntity  Kind = "InsertEntity"
	GetEntity     Kind = "GetEntity"
	QueryEntities Kind = "QueryEntities"
	ReplaceEntity Kind = "ReplaceEntity"
	MergeEntity   Kind = "MergeEntity"
	DeleteEntity  Kind = "DeleteEntity"
	Batch         Kind = "Batch"
)

// Kinds of calls to the queue service.
const (
	CreateQueue        Kind = "CreateQueue"
	DeleteQueue        Kind = "DeleteQueue"
	ListQueues         Kind = "ListQueues"
	GetQueueProperties Kind = "GetQueueProperties"
	SetQueueMetadata   Kind = "SetQueueMetadata"
	PutMessage         Kind = "PutMessage"
	GetMessages        Kind = "GetMessages"
	PeekMessages       Kind = "PeekMessages"
	UpdateMessage      Kind = "UpdateMessage"
	DeleteMessage      Kind = "DeleteMessage"
	ClearMessages      Kind = "ClearMessages"
)

// Kinds of calls to the blob service.
const (
	CreateContainer        Kind = "CreateContainer"
	DeleteContainer        Kind = "DeleteContainer"
	ListContainers         Kind = "ListContainers"
	GetContainerProperties Kind = "GetContainerProperties"
	ListBlobs              Kind = "ListBlobs"
	PutBlob                Kind = "PutBlob"
	CopyBlob               Kind = "CopyBlob"
	PutBlock               Kind = "PutBlock"
	PutBlockList           Kind = "PutBlockList"
	GetBlockList           Kind = "GetBlockList"
	AppendBlock            Kind = "AppendBlock"
	SealBlob               Kind = "SealBlob"
	GetBlob                Kind = "GetBlob"
	GetBlobProperties      Kind = "GetBlobProperties"
	SetBlobProperties      Kind = "SetBlobProperties"
	SetBlobMetadata        Kind = "SetBlobMetadata"
	LeaseBlob              Kind = "LeaseBlob"
	DeleteBlob             Kind = "DeleteBlob"
)

// Other is any other kind: service properties, tags, tiers, snapshots.
const Other Kind = "Other"

// route tells a kind of call by method, shape of the path, and comp parameter.
type route struct {
	method, shape, comp string
}

var tableKinds = map[route]Kind{
	{"POST", "Tables", ""}:     CreateTable,
	{"GET", "Tables", ""}:      QueryTables,
	{"DELETE", "Tables()", ""}: DeleteTable,
	{"POST", "$batch", ""}:     Batch,
	{"GET", "t", "acl"}:        GetTableACL,
	{"PUT", "t", "acl"}:        SetTableACL,
	{"POST", "t", ""}:          InsertEntity,
	{"GET", "t", ""}:           QueryEntities,
	{"GET", "t()", ""}:         GetEntity,
	{"PUT", "t()", ""}:         ReplaceEntity,
	{"PATCH", "t()", ""}:       MergeEntity,
	{"MERGE", "t()", ""}:       MergeEntity,
	{"DELETE", "t()", ""}:      DeleteEntity,
}

var queueKinds = map[route]Kind{
	{"GET", "", "list"}:           ListQueues,
	{"PUT", "q", ""}:              CreateQueue,
	{"DELETE", "q", ""}:           DeleteQueue,
	{"GET", "q", "metadata"}:      GetQueueProperties,
	{"HEAD", "q", "metadata"}:     GetQueueProperties,
	{"PUT", "q", "metadata"}:      SetQueueMetadata,
	{"POST", "q/messages", ""}:    PutMessage,
	{"GET", "q/messages", ""}:     GetMessages,
	{"DELETE", "q/messages", ""}:  ClearMessages,
	{"PUT", "q/messages/", ""}:    UpdateMessage,
	{"DELETE", "q/messages/", ""}: DeleteMessage,
}

var blobKinds = map[route]Kind{
	{"GET", "", "list"}:           ListContainers,
	{"PUT", "c", ""}:              CreateContainer,
	{"DELETE", "c", ""}:           DeleteContainer,
	{"GET", "c", ""}:              GetContainerProperties,
	{"HEAD", "c", ""}:             GetContainerProperties,
	{"GET", "c", "list"}:          ListBlobs,
	{"PUT", "c/b", ""}:            PutBlob,
	{"PUT", "c/b", "block"}:       PutBlock,
	{"PUT", "c/b", "blocklist"}:   PutBlockList,
	{"GET", "c/b", "blocklist"}:   GetBlockList,
	{"PUT", "c/b", "appendblock"}: AppendBlock,
	{"PUT", "c/b", "seal"}:        SealBlob,
	{"GET", "c/b", ""}:            GetBlob,
	{"HEAD", "c/b", ""}:           GetBlobProperties,
	{"PUT", "c/b", "properties"}:  SetBlobProperties,
	{"PUT", "c/b", "metadata"}:    SetBlobMetadata,
	{"PUT", "c/b", "lease"}:       LeaseBlob,
	{"DELETE", "c/b", ""}:         DeleteBlob,
}
