package simulator

import (
	"net/http"
	"net/url"
)

const mib = 1 << 20

// blobLimit is a limit that grew with the versions of the protocol: the first whose version the request speaks counts.
type blobLimit []struct {
	version string
	most    int64
}

func (l blobLimit) of(c *xmlCall) int64 {
	for _, step := range l {
		if c.since(step.version) {
			return step.most
		}
	}
	return l[len(l)-1].most
}

// putLimit is the most bytes put in one request.
func putLimit() blobLimit {
	return blobLimit{{"2019-12-12", 5000 * mib}, {"2016-05-31", 256 * mib}, {"", 64 * mib}}
}

// put writes a blob whole: a block blob with its content, an append blob empty.
func (t *blobTarget) put(c *xmlCall) (*answer, *Fault) {
	kind := c.header.Get("x-ms-blob-type")
	switch {
	case kind == "":
		return nil, xmlMissingHeader("x-ms-blob-type")
	case kind != blockBlob && kind != appendBlob:
		return nil, xmlInvalidHeader("x-ms-blob-type", kind)
	case c.header.Get("x-ms-copy-source") != "":
		return nil, xmlUnsupportedHeader("x-ms-copy-source")
	case kind == appendBlob && len(c.Body) > 0:
		return nil, xmlInvalidHeader("Content-Length", itoa(int64(len(c.Body))))
	}
	if most := putLimit().of(c); int64(len(c.Body)) > most {
		return nil, xmlBodyTooLarge(most)
	}
	hashes, err := checkHashes(c)
	if err != nil {
		return nil, err
	}
	b, err := t.replace(c, kind)
	if err != nil {
		return nil, err
	}
	b.headers = storedHeaders(c.header).orStandard()
	if kind == blockBlob {
		if len(c.Body) > 0 {
			b.setBlocks([]blobBlock{{data: c.Body}})
		}
		// The service works out the hash of what is put whole, and stores it unless it is told another.
		if hashes.Get("Content-MD5") == "" {
			hashes.Set("Content-MD5", base64MD5(c.Body))
		}
		if b.headers.md5 == "" {
			b.headers.md5 = hashes.Get("Content-MD5")
		}
	}
	t.commit(b)
	a := b.written(http.StatusCreated)
	addHeaders(a.header, hashes)
	return a, nil
}

// replace makes the blob that takes the place of the one there is, if the request's conditions allow it. Nothing is stored yet.
func (t *blobTarget) replace(c *xmlCall, kind string) (*storedBlob, *Fault) {
	if err := c.checkMetadata(); err != nil {
		return nil, err
	}
	old := t.find()
	if err := blobConditions(c.header, "").checkReplace(old); err != nil {
		return nil, err
	}
	b := &storedBlob{kind: kind, committed: true, metadata: c.metadata, modified: t.container.graves[t.name]}
	if old != nil {
		// A blob's type is fixed until it is deleted.
		if old.kind != kind {
			return nil, invalidBlobType()
		}
		b.created, b.modified = old.created, old.modified
	}
	return b, nil
}

// commit stores a blob that replace made.
func (t *blobTarget) commit(b *storedBlob) {
	b.touch(t.service.clock)
	t.store(b)
}

// set replaces the blob's headers or its metadata.
func (t *blobTarget) set(c *xmlCall, b *storedBlob, what string) (*answer, *Fault) {
	if err := blobConditions(c.header, "").checkChange(b); err != nil {
		return nil, err
	}
	if what == "metadata" {
		if err := c.checkMetadata(); err != nil {
			return nil, err
		}
		b.metadata = c.metadata
	} else {
		b.headers = storedHeaders(c.header)
	}
	b.touch(t.service.clock)
	return b.written(http.StatusOK), nil
}

func (t *blobTarget) delete(c *xmlCall, b *storedBlob) (*answer, *Fault) {
	if err := blobConditions(c.header, "").checkChange(b); err != nil {
		return nil, err
	}
	t.remove()
	a := newAnswer(http.StatusAccepted)
	a.header.Set("x-ms-delete-type-permanent", "true")
	return a, nil
}

// copy makes the blob one with the same content as another of the account, at once.
func (t *blobTarget) copy(c *xmlCall) (*answer, *Fault) {
	text := c.header.Get("x-ms-copy-source")
	source, parseErr := url.Parse(text)
	if parseErr != nil || source.Host == "" {
		return nil, xmlInvalidHeader("x-ms-copy-source", "")
	}
	if source.Host != c.Req.URL.Host {
		return nil, refuse(http.StatusNotFound, "CannotVerifyCopySource", "The specified resource does not exist.")
	}
	from, err := t.service.source(source.Path)
	if err != nil {
		return nil, err
	}
	if err := blobConditions(c.header, "x-ms-source-").check(from.etag, from.modified, false); err != nil {
		return nil, refuse(http.StatusPreconditionFailed, "SourceConditionNotMet",
			"The source condition specified using HTTP conditional header(s) is not met.")
	}
	b, err := t.replace(c, from.kind)
	if err != nil {
		return nil, err
	}
	if len(b.metadata) == 0 {
		b.metadata = from.metadata
	}
	b.headers, b.size, b.blocks, b.ends = from.headers, from.size, from.blocks, from.ends
	// Cut off, so that both may grow: neither writes where the other does.
	b.appended, b.appends = from.appended[:len(from.appended):len(from.appended)], from.appends
	t.commit(b)
	// What comes after the path may be a signature.
	source.RawQuery = ""
	b.copied = &blobCopy{id: xmlID("copy", t.service.serial), source: source.String(), completed: b.modified}
	a := b.written(http.StatusAccepted)
	a.header.Set("x-ms-copy-id", b.copied.id)
	a.header.Set("x-ms-copy-status", "success")
	return a, nil
}

// source finds the blob to copy.
func (s *blobService) source(path string) (*storedBlob, *Fault) {
	container, name := blobPath(path)
	k := s.containers[container]
	if k == nil {
		return nil, containerNotFound()
	}
	b := (&blobTarget{service: s, container: k, name: name}).find()
	if b == nil {
		return nil, blobNotFound()
	}
	return b, nil
}
