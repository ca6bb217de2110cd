package simulator

import (
	"encoding/base64"
	"encoding/xml"
	"maps"
	"net/http"
	"slices"
	"time"
)

const (
	blobMaxBlocks  = 50000  // in one blob
	blobMaxStaged  = 100000 // put and not committed
	blobMaxBlockID = 64     // bytes, before base64
	// blobStagedLife is how long blocks are kept that nobody commits, after the last one was put.
	blobStagedLife = 7 * 24 * time.Hour
)

// blockLimit is the most bytes of one block.
func blockLimit() blobLimit {
	return blobLimit{{"2019-12-12", 4000 * mib}, {"2016-05-31", 100 * mib}, {"", 4 * mib}}
}

// findStaged returns the blob, committed or not, once blocks that nobody came to commit are gone. It may be nil.
func (t *blobTarget) findStaged(now time.Time) *storedBlob {
	b := t.container.blobs[t.name]
	if b == nil || len(b.staged) == 0 || now.Before(b.stagedAt.Add(blobStagedLife)) {
		return b
	}
	b.staged = nil
	if !b.committed {
		t.remove()
		return nil
	}
	return b
}

// putBlock keeps a block for a later block list; readers see nothing of it.
func (t *blobTarget) putBlock(c *xmlCall) (*answer, *Fault) {
	if err := checkBlock(c); err != nil {
		return nil, err
	}
	hashes, err := checkHashes(c)
	if err != nil {
		return nil, err
	}
	b := t.findStaged(c.Now)
	if b != nil && b.kind != blockBlob {
		return nil, invalidBlobType()
	}
	id := c.query.Get("blockid")
	if b != nil {
		if err := b.checkStaging(id); err != nil {
			return nil, err
		}
	} else {
		b = &storedBlob{kind: blockBlob}
		t.store(b)
	}
	if b.staged == nil {
		b.staged = map[string]blobBlock{}
	}
	b.staged[id] = blobBlock{id: id, data: c.Body}
	b.stagedAt = c.Now
	a := newAnswer(http.StatusCreated)
	addHeaders(a.header, hashes)
	a.header.Set("x-ms-request-server-encrypted", "true")
	return a, nil
}

// checkBlock holds the rules for a block by itself.
func checkBlock(c *xmlCall) *Fault {
	if !c.query.Has("blockid") {
		return xmlMissingQuery("blockid")
	}
	id := c.query.Get("blockid")
	raw, err := base64.StdEncoding.DecodeString(id)
	if err != nil || len(raw) == 0 {
		return xmlInvalidQuery("blockid", id, "Not a valid base64 string.")
	}
	if len(raw) > blobMaxBlockID {
		return refuse(http.StatusBadRequest, "OutOfRangeInput", "One of the request inputs is out of range.")
	}
	if c.header.Get("x-ms-copy-source") != "" {
		return xmlUnsupportedHeader("x-ms-copy-source")
	}
	if len(c.Body) == 0 {
		return xmlInvalidHeader("Content-Length", "0")
	}
	if most := blockLimit().of(c); int64(len(c.Body)) > most {
		return xmlBodyTooLarge(most)
	}
	return nil
}

// checkStaging holds the rules for a block beside the others: ids of one length, and a limit to their number.
func (b *storedBlob) checkStaging(id string) *Fault {
	other := ""
	for other = range b.staged {
		break
	}
	if other == "" && len(b.blocks) > 0 {
		other = b.blocks[0].id
	}
	if other != "" && len(other) != len(id) {
		return refuse(http.StatusBadRequest, "InvalidBlobOrBlock", "The specified blob or block content is invalid.")
	}
	if _, again := b.staged[id]; !again && len(b.staged) >= blobMaxStaged {
		return refuse(http.StatusConflict, "BlockCountExceedsLimit",
			"The uncommitted block count cannot exceed the maximum limit of 100,000 blocks.")
	}
	return nil
}

func invalidBlockList() *Fault {
	return refuse(http.StatusBadRequest, "InvalidBlockList", "The specified block list is invalid.")
}

// putBlockList makes the named blocks the blob's content; blocks put and not named are dropped.
func (t *blobTarget) putBlockList(c *xmlCall) (*answer, *Fault) {
	var sent struct {
		XMLName xml.Name `xml:"BlockList"`
		Entries []struct {
			XMLName xml.Name
			ID      string `xml:",chardata"`
		} `xml:",any"`
	}
	if err := parseXML(c.Body, &sent); err != nil {
		return nil, err
	}
	if len(sent.Entries) > blobMaxBlocks {
		return nil, refuse(http.StatusBadRequest, "BlockListTooLong", "The block list may not contain more than 50,000 blocks.")
	}
	hashes, err := checkHashes(c)
	if err != nil {
		return nil, err
	}
	there := t.findStaged(c.Now)
	b, err := t.replace(c, blockBlob)
	if err != nil {
		return nil, err
	}
	committed := map[string]blobBlock{}
	var staged map[string]blobBlock
	if there != nil {
		staged = there.staged
		for _, block := range there.blocks {
			committed[block.id] = block
		}
	}
	blocks := make([]blobBlock, 0, len(sent.Entries))
	for _, e := range sent.Entries {
		block, found := chooseBlock(e.XMLName.Local, e.ID, committed, staged)
		if !found || e.ID == "" {
			return nil, invalidBlockList()
		}
		blocks = append(blocks, block)
	}
	b.setBlocks(blocks)
	b.headers = storedHeaders(c.header).orStandard()
	t.commit(b)
	a := b.written(http.StatusCreated)
	addHeaders(a.header, hashes)
	return a, nil
}

// chooseBlock finds a block where its entry in the list says to look.
func chooseBlock(where, id string, committed, staged map[string]blobBlock) (block blobBlock, found bool) {
	switch where {
	case "Committed":
		block, found = committed[id]
	case "Uncommitted":
		block, found = staged[id]
	case "Latest":
		if block, found = staged[id]; !found {
			block, found = committed[id]
		}
	}
	return block, found
}

// getBlockList lists the blocks: committed ones in their order, the others by id.
func (t *blobTarget) getBlockList(c *xmlCall) (*answer, *Fault) {
	kind := c.query.Get("blocklisttype")
	if kind != "" && kind != "committed" && kind != "uncommitted" && kind != "all" {
		return nil, xmlInvalidQuery("blocklisttype", kind, "One of committed, uncommitted, all.")
	}
	b := t.findStaged(c.Now)
	switch {
	case b == nil:
		return nil, blobNotFound()
	case b.kind != blockBlob:
		return nil, invalidBlobType()
	}
	a := newAnswer(http.StatusOK)
	if b.committed {
		a = b.written(http.StatusOK)
	}
	a.header.Set("x-ms-blob-content-length", itoa(b.size))
	w := newXMLWriter("BlockList")
	if kind != "uncommitted" {
		w.begin("CommittedBlocks")
		for _, block := range b.blocks {
			if block.id != "" {
				block.write(w)
			}
		}
		w.end()
	}
	if kind == "uncommitted" || kind == "all" {
		w.begin("UncommittedBlocks")
		for _, id := range slices.Sorted(maps.Keys(b.staged)) {
			b.staged[id].write(w)
		}
		w.end()
	}
	return w.answer(a), nil
}

func (k blobBlock) write(w *xmlWriter) {
	w.begin("Block")
	w.element("Name", k.id)
	w.element("Size", itoa(int64(len(k.data))))
	w.end()
}
