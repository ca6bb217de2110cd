package simulator

import (
	"net/http"
)

// blobMaxAppends is the most blocks that can be appended to one blob.
const blobMaxAppends = 50000

// appendLimit is the most bytes appended in one request.
func appendLimit() blobLimit { return blobLimit{{"2022-11-02", 100 * mib}, {"", 4 * mib}} }

// appendBlock adds a block to an append blob. Nothing of it is visible before all of it is.
func (t *blobTarget) appendBlock(c *xmlCall) (*answer, *Fault) {
	b := t.find()
	switch {
	case b == nil:
		return nil, blobNotFound()
	case b.kind != appendBlob:
		return nil, invalidBlobType()
	case c.header.Get("x-ms-copy-source") != "":
		return nil, xmlUnsupportedHeader("x-ms-copy-source")
	case len(c.Body) == 0:
		return nil, xmlInvalidHeader("Content-Length", "0")
	}
	if most := appendLimit().of(c); int64(len(c.Body)) > most {
		return nil, xmlBodyTooLarge(most)
	}
	hashes, err := checkHashes(c)
	if err != nil {
		return nil, err
	}
	if err := b.checkAppend(c); err != nil {
		return nil, err
	}
	offset := b.size
	b.appended = append(b.appended, c.Body...)
	b.size += int64(len(c.Body))
	b.appends++
	b.touch(t.service.clock)
	a := b.written(http.StatusCreated)
	addHeaders(a.header, hashes)
	a.header.Set("x-ms-blob-append-offset", itoa(offset))
	a.header.Set("x-ms-blob-committed-block-count", itoa(int64(b.appends)))
	return a, nil
}

// checkAppend holds the request's conditions against the blob, those that only an append knows among them.
func (b *storedBlob) checkAppend(c *xmlCall) *Fault {
	if err := blobConditions(c.header, "").checkChange(b); err != nil {
		return err
	}
	position, err := c.headerNumber("x-ms-blob-condition-appendpos")
	if err != nil {
		return err
	}
	if position >= 0 && position != b.size {
		return refuse(http.StatusPreconditionFailed, "AppendPositionConditionNotMet",
			"The append position condition specified was not met.")
	}
	most, err := c.headerNumber("x-ms-blob-condition-maxsize")
	if err != nil {
		return err
	}
	if most >= 0 && b.size+int64(len(c.Body)) > most {
		return refuse(http.StatusPreconditionFailed, "MaxBlobSizeConditionNotMet",
			"The max blob size condition specified was not met.")
	}
	if b.appends >= blobMaxAppends {
		return refuse(http.StatusConflict, "BlockCountExceedsLimit",
			"The committed block count cannot exceed the maximum limit of 50,000 blocks.")
	}
	return nil
}
