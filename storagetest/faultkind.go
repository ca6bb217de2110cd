package storagetest

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

// Kinds of calls to the table service. A Batch is an entity group transaction. ReplaceEntity and MergeEntity without
// a condition also insert.
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

// Other is any call of another kind: service properties, tags, tiers, snapshots.
const Other Kind = "Other"

// route distinguishes a kind of call from the others of its service: by method, shape of the path, and comp
// parameter.
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
