package blobs

import (
	"net/http"

	"github.com/tablepatterns/tablepatterns/internal/simulator/exchange"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// maxAppends is the maximum number of blocks of an append blob.
const maxAppends = 50000

// appendLimit returns the maximum number of bytes of one append.
func appendLimit() limit { return limit{{"2022-11-02", 100 * mib}, {"", 4 * mib}} }

// appendBlock appends a block to an append blob. Readers see either all of it or nothing.
func (t *target) appendBlock(c *exchange.Call) (*protocol.Answer, *protocol.Fault) {
	b := t.find()
	switch {
	case b == nil:
		return nil, notFound()
	case b.kind != appendBlob:
		return nil, invalidBlobType()
	case c.Header.Get("x-ms-copy-source") != "":
		return nil, exchange.UnsupportedHeader("x-ms-copy-source")
	case len(c.Body) == 0:
		return nil, exchange.InvalidHeader("Content-Length", "0")
	}
	if most := appendLimit().of(c); int64(len(c.Body)) > most {
		return nil, exchange.BodyTooLarge(most)
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
	b.touch(t.service.Clock)
	a := b.written(http.StatusCreated)
	addHeaders(a.Header, hashes)
	a.Header.Set("x-ms-blob-append-offset", itoa(offset))
	a.Header.Set("x-ms-blob-committed-block-count", itoa(int64(b.appends)))
	return a, nil
}

// checkAppend checks the request's conditions on the blob, including those that only an append has.
func (b *stored) checkAppend(c *exchange.Call) *protocol.Fault {
	if err := conditionsOf(c.Header, "").checkChange(b); err != nil {
		return err
	}
	if err := b.checkEdit(c); err != nil {
		return err
	}
	position, err := c.HeaderNumber("x-ms-blob-condition-appendpos")
	if err != nil {
		return err
	}
	if position >= 0 && position != b.size {
		return protocol.Refuse(http.StatusPreconditionFailed, "AppendPositionConditionNotMet",
			"The append position condition specified was not met.")
	}
	most, err := c.HeaderNumber("x-ms-blob-condition-maxsize")
	if err != nil {
		return err
	}
	if most >= 0 && b.size+int64(len(c.Body)) > most {
		return protocol.Refuse(http.StatusPreconditionFailed, "MaxBlobSizeConditionNotMet",
			"The max blob size condition specified was not met.")
	}
	if b.appends >= maxAppends {
		return protocol.Refuse(http.StatusConflict, "BlockCountExceedsLimit",
			"The committed block count cannot exceed the maximum limit of 50,000 blocks.")
	}
	return nil
}
