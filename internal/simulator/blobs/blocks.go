package blobs

import (
	"encoding/base64"
	"encoding/xml"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator/document"
	"github.com/tablepatterns/tablepatterns/internal/simulator/exchange"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

const (
	maxBlocks  = 50000  // blocks of one blob
	maxStaged  = 100000 // uncommitted blocks of one blob
	maxBlockID = 64     // bytes, before base64
	// stagedLife is how long uncommitted blocks are kept after the last one was put.
	stagedLife = 7 * 24 * time.Hour
)

// blockLimit returns the maximum number of bytes of one block.
func blockLimit() limit {
	return limit{{"2019-12-12", 4000 * mib}, {"2016-05-31", 100 * mib}, {"", 4 * mib}}
}

// findStaged returns the blob, committed or not, or nil. It first discards uncommitted blocks that are too old.
func (t *target) findStaged(now time.Time) *stored {
	b := t.container.blobs[t.name]
	if b == nil || len(b.staged) == 0 || now.Before(b.stagedAt.Add(stagedLife)) {
		return b
	}
	b.staged = nil
	if !b.committed {
		t.remove()
		return nil
	}
	return b
}

// putBlock stages a block for a later block list; readers do not see it.
func (t *target) putBlock(c *exchange.Call) (*protocol.Answer, *protocol.Fault) {
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
	id := c.Query.Get("blockid")
	if b != nil {
		if err := b.checkEdit(c); err != nil {
			return nil, err
		}
		if err := b.checkStaging(id); err != nil {
			return nil, err
		}
	} else {
		b = &stored{kind: blockBlob}
		t.store(b)
	}
	if b.staged == nil {
		b.staged = map[string]block{}
	}
	b.staged[id] = block{id: id, data: c.Body}
	b.stagedAt = c.Now
	a := protocol.NewAnswer(http.StatusCreated)
	addHeaders(a.Header, hashes)
	a.Header.Set("x-ms-request-server-encrypted", "true")
	return a, nil
}

// checkBlock checks the rules for a single block.
func checkBlock(c *exchange.Call) *protocol.Fault {
	if !c.Query.Has("blockid") {
		return exchange.MissingQuery("blockid")
	}
	id := c.Query.Get("blockid")
	raw, err := base64.StdEncoding.DecodeString(id)
	if err != nil || len(raw) == 0 {
		return exchange.InvalidQuery("blockid", id, "Not a valid base64 string.")
	}
	if len(raw) > maxBlockID {
		return protocol.Refuse(http.StatusBadRequest, "OutOfRangeInput", "One of the request inputs is out of range.")
	}
	if c.Header.Get("x-ms-copy-source") != "" {
		return exchange.UnsupportedHeader("x-ms-copy-source")
	}
	if len(c.Body) == 0 {
		return exchange.InvalidHeader("Content-Length", "0")
	}
	if most := blockLimit().of(c); int64(len(c.Body)) > most {
		return exchange.BodyTooLarge(most)
	}
	return nil
}

// checkStaging checks the rules for a block among others: all ids must have the same length, and their number
// is limited.
func (b *stored) checkStaging(id string) *protocol.Fault {
	other := ""
	for other = range b.staged {
		break
	}
	if other == "" && len(b.blocks) > 0 {
		other = b.blocks[0].id
	}
	if other != "" && len(other) != len(id) {
		return protocol.Refuse(http.StatusBadRequest, "InvalidBlobOrBlock", "The specified blob or block content is invalid.")
	}
	if _, again := b.staged[id]; !again && len(b.staged) >= maxStaged {
		return protocol.Refuse(http.StatusConflict, "BlockCountExceedsLimit",
			"The uncommitted block count cannot exceed the maximum limit of 100,000 blocks.")
	}
	return nil
}

func invalidBlockList() *protocol.Fault {
	return protocol.Refuse(http.StatusBadRequest, "InvalidBlockList", "The specified block list is invalid.")
}

// putBlockList makes the listed blocks the blob's content, and discards all other staged blocks.
func (t *target) putBlockList(c *exchange.Call) (*protocol.Answer, *protocol.Fault) {
	var sent struct {
		XMLName xml.Name `xml:"BlockList"`
		Entries []struct {
			XMLName xml.Name
			ID      string `xml:",chardata"`
		} `xml:",any"`
	}
	if err := document.Parse(c.Body, &sent); err != nil {
		return nil, err
	}
	if len(sent.Entries) > maxBlocks {
		return nil, protocol.Refuse(http.StatusBadRequest, "BlockListTooLong", "The block list may not contain more than 50,000 blocks.")
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
	committed := map[string]block{}
	var staged map[string]block
	if there != nil {
		staged = there.staged
		for _, block := range there.blocks {
			committed[block.id] = block
		}
	}
	blocks := make([]block, 0, len(sent.Entries))
	for _, e := range sent.Entries {
		block, found := chooseBlock(e.XMLName.Local, e.ID, committed, staged)
		if !found || e.ID == "" {
			return nil, invalidBlockList()
		}
		blocks = append(blocks, block)
	}
	b.setBlocks(blocks)
	b.headers = storedHeaders(c.Header).orStandard()
	t.commit(b)
	a := b.written(http.StatusCreated)
	addHeaders(a.Header, hashes)
	return a, nil
}

// chooseBlock returns a block from the set that its entry in the list names.
func chooseBlock(where, id string, committed, staged map[string]block) (block block, found bool) {
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
func (t *target) getBlockList(c *exchange.Call) (*protocol.Answer, *protocol.Fault) {
	kind := c.Query.Get("blocklisttype")
	if kind != "" && kind != "committed" && kind != "uncommitted" && kind != "all" {
		return nil, exchange.InvalidQuery("blocklisttype", kind, "One of committed, uncommitted, all.")
	}
	b := t.findStaged(c.Now)
	switch {
	case b == nil:
		return nil, notFound()
	case b.kind != blockBlob:
		return nil, invalidBlobType()
	}
	a := protocol.NewAnswer(http.StatusOK)
	if b.committed {
		a = b.written(http.StatusOK)
	}
	a.Header.Set("x-ms-blob-content-length", itoa(b.size))
	w := document.New("BlockList")
	if kind != "uncommitted" {
		w.Begin("CommittedBlocks")
		for _, block := range b.blocks {
			if block.id != "" {
				block.write(w)
			}
		}
		w.End()
	}
	if kind == "uncommitted" || kind == "all" {
		w.Begin("UncommittedBlocks")
		for _, id := range slices.Sorted(maps.Keys(b.staged)) {
			b.staged[id].write(w)
		}
		w.End()
	}
	return w.Answer(a), nil
}

func (k block) write(w *document.Writer) {
	w.Begin("Block")
	w.Element("Name", k.id)
	w.Element("Size", itoa(int64(len(k.data))))
	w.End()
}
