package blobs

import (
	"net/http"
	"net/url"

	"github.com/tablepatterns/tablepatterns/internal/simulator/exchange"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

const mib = 1 << 20

// limit is a limit that was raised in later versions of the protocol: the first entry applies whose version
// the request's version reaches.
type limit []struct {
	version string
	most    int64
}

func (l limit) of(c *exchange.Call) int64 {
	for _, step := range l {
		if c.Since(step.version) {
			return step.most
		}
	}
	return l[len(l)-1].most
}

// putLimit returns the maximum number of bytes of one Put Blob.
func putLimit() limit {
	return limit{{"2019-12-12", 5000 * mib}, {"2016-05-31", 256 * mib}, {"", 64 * mib}}
}

// put writes a whole blob: a block blob with its content, or an empty append blob.
func (t *target) put(c *exchange.Call) (*protocol.Answer, *protocol.Fault) {
	kind := c.Header.Get("x-ms-blob-type")
	switch {
	case kind == "":
		return nil, exchange.MissingHeader("x-ms-blob-type")
	case kind != blockBlob && kind != appendBlob:
		return nil, exchange.InvalidHeader("x-ms-blob-type", kind)
	case c.Header.Get("x-ms-copy-source") != "":
		return nil, exchange.UnsupportedHeader("x-ms-copy-source")
	case kind == appendBlob && len(c.Body) > 0:
		return nil, exchange.InvalidHeader("Content-Length", itoa(int64(len(c.Body))))
	}
	if most := putLimit().of(c); int64(len(c.Body)) > most {
		return nil, exchange.BodyTooLarge(most)
	}
	hashes, err := checkHashes(c)
	if err != nil {
		return nil, err
	}
	b, err := t.replace(c, kind)
	if err != nil {
		return nil, err
	}
	b.headers = storedHeaders(c.Header).orStandard()
	if kind == blockBlob {
		if len(c.Body) > 0 {
			b.setBlocks([]block{{data: c.Body}})
		}
		// The service computes and stores the hash of a whole blob, unless the request has one.
		if hashes.Get("Content-MD5") == "" {
			hashes.Set("Content-MD5", base64MD5(c.Body))
		}
		if b.headers[md5Name] == "" {
			b.headers[md5Name] = hashes.Get(md5Name)
		}
	}
	t.commit(b)
	a := b.written(http.StatusCreated)
	addHeaders(a.Header, hashes)
	return a, nil
}

// replace returns the blob that will replace the existing one, if the request's conditions allow it. It stores nothing.
func (t *target) replace(c *exchange.Call, kind string) (*stored, *protocol.Fault) {
	if err := c.CheckMetadata(); err != nil {
		return nil, err
	}
	old := t.find()
	if err := conditionsOf(c.Header, "").checkReplace(old); err != nil {
		return nil, err
	}
	to, err := tierOf(c, kind)
	if err != nil {
		return nil, err
	}
	b := &stored{kind: kind, committed: true, metadata: c.Metadata, modified: t.container.graves[t.name], tier: tier{name: to}}
	if old == nil {
		old = &stored{kind: kind, modified: b.modified}
	}
	if err := old.checkWrite(c); err != nil {
		return nil, err
	}
	b.lease, b.snapshots = old.lease, old.snapshots
	if old.committed {
		// The type of a blob cannot change until it is deleted.
		if old.kind != kind {
			return nil, invalidBlobType()
		}
		b.created, b.modified = old.created, old.modified
	}
	return b, nil
}

// commit stores a blob that replace has returned.
func (t *target) commit(b *stored) {
	b.touch(t.service.Clock)
	t.store(b)
}

// set replaces the blob's headers or its metadata.
func (t *target) set(c *exchange.Call, b *stored, what string) (*protocol.Answer, *protocol.Fault) {
	if err := conditionsOf(c.Header, "").checkChange(b); err != nil {
		return nil, err
	}
	if err := b.checkEdit(c); err != nil {
		return nil, err
	}
	if what == "metadata" {
		if err := c.CheckMetadata(); err != nil {
			return nil, err
		}
		b.metadata = c.Metadata
	} else {
		b.headers = storedHeaders(c.Header)
	}
	b.touch(t.service.Clock)
	return b.written(http.StatusOK), nil
}

func (t *target) delete(c *exchange.Call, b *stored) (*protocol.Answer, *protocol.Fault) {
	if err := conditionsOf(c.Header, "").checkChange(b); err != nil {
		return nil, err
	}
	if err := b.checkWrite(c); err != nil {
		return nil, err
	}
	only, err := b.deleteSnapshots(c)
	if err != nil {
		return nil, err
	}
	if !only {
		t.remove()
	}
	a := protocol.NewAnswer(http.StatusAccepted)
	a.Header.Set("x-ms-delete-type-permanent", "true")
	return a, nil
}

// copy replaces the blob by a copy of another blob of the account, synchronously.
func (t *target) copy(c *exchange.Call) (*protocol.Answer, *protocol.Fault) {
	text := c.Header.Get("x-ms-copy-source")
	source, parseErr := url.Parse(text)
	if parseErr != nil || source.Host == "" {
		return nil, exchange.InvalidHeader("x-ms-copy-source", "")
	}
	if source.Host != c.Req.URL.Host {
		return nil, protocol.Refuse(http.StatusNotFound, "CannotVerifyCopySource", "The specified resource does not exist.")
	}
	from, err := t.service.source(source.Path)
	if err != nil {
		return nil, err
	}
	if err := conditionsOf(c.Header, "x-ms-source-").check(from.etag, from.modified, false); err != nil {
		return nil, protocol.Refuse(http.StatusPreconditionFailed, "SourceConditionNotMet",
			"The source condition specified using HTTP conditional header(s) is not met.")
	}
	if err := from.tier.check(c.Now); err != nil {
		return nil, err
	}
	b, err := t.replace(c, from.kind)
	if err != nil {
		return nil, err
	}
	if len(b.metadata) == 0 {
		b.metadata = from.metadata
	}
	b.headers, b.size, b.blocks, b.ends = from.headers, from.size, from.blocks, from.ends
	// Clip the slice, so that an append to one of the two blobs does not write into the memory of the other.
	b.appended, b.appends = from.appended[:len(from.appended):len(from.appended)], from.appends
	t.commit(b)
	// Omit the query, which may contain a signature.
	source.RawQuery = ""
	b.copied = &origin{id: exchange.ID("copy", t.service.Serial), source: source.String(), completed: b.modified}
	a := b.written(http.StatusAccepted)
	a.Header.Set("x-ms-copy-id", b.copied.id)
	a.Header.Set("x-ms-copy-status", "success")
	return a, nil
}

// source returns the blob to copy.
func (s *Service) source(path string) (*stored, *protocol.Fault) {
	container, name := cutPath(path)
	k := s.containers[container]
	if k == nil {
		return nil, containerNotFound()
	}
	b := (&target{service: s, container: k, name: name}).find()
	if b == nil {
		return nil, notFound()
	}
	return b, nil
}
