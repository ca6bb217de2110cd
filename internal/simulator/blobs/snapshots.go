package blobs

import (
	"net/http"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator/exchange"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// blobSnapshot is a blob as it was at a time.
type blobSnapshot struct {
	name string // the time, as requests name it
	blob *stored
}

func snapshotsPresent() *protocol.Fault {
	return protocol.Refuse(http.StatusConflict, "SnapshotsPresent", "This operation is not permitted because the blob has snapshots.")
}

// snapshotFormat is the format of a snapshot's time, which names the snapshot.
const snapshotFormat = "2006-01-02T15:04:05.0000000Z"

// snapshot takes a snapshot of the blob.
func (t *target) snapshot(c *exchange.Call, b *stored) (*protocol.Answer, *protocol.Fault) {
	if err := conditionsOf(c.Header, "").checkChange(b); err != nil {
		return nil, err
	}
	if err := b.lease.check(c, false); err != nil {
		return nil, err
	}
	if err := b.tier.check(c.Now); err != nil {
		return nil, err
	}
	taken := b.clone()
	taken.snapshots, taken.staged, taken.lease, taken.hold = nil, nil, lease{}, hold{}
	if len(c.Metadata) > 0 {
		if err := c.CheckMetadata(); err != nil {
			return nil, err
		}
		taken.metadata = c.Metadata
	}
	var last time.Time
	if n := len(b.snapshots); n > 0 {
		last, _ = time.Parse(snapshotFormat, b.snapshots[n-1].name)
	}
	name := t.service.Clock.After(last).Format(snapshotFormat)
	b.snapshots = append(slices.Clip(b.snapshots), blobSnapshot{name, taken})
	a := taken.written(http.StatusCreated)
	a.Header.Set("x-ms-snapshot", name)
	return a, nil
}

// serveSnapshot serves a request on a snapshot: they can be read and deleted.
func (b *stored) serveSnapshot(c *exchange.Call, comp string) (*protocol.Answer, *protocol.Fault) {
	name := c.Query.Get("snapshot")
	at := slices.IndexFunc(b.snapshots, func(s blobSnapshot) bool { return s.name == name })
	if at < 0 {
		return nil, notFound()
	}
	one := b.snapshots[at].blob
	switch c.Req.Method + " " + comp {
	case "GET ":
		return one.get(c)
	case "HEAD ", "HEAD metadata", "GET metadata":
		return one.properties(c)
	case "DELETE ":
		if c.Header.Get("x-ms-delete-snapshots") != "" {
			return nil, invalidSnapshotOperation()
		}
		b.snapshots = slices.Delete(slices.Clone(b.snapshots), at, at+1)
		return protocol.NewAnswer(http.StatusAccepted), nil
	}
	return nil, invalidSnapshotOperation()
}

func invalidSnapshotOperation() *protocol.Fault {
	return protocol.Refuse(http.StatusBadRequest, "InvalidOperation", "Invalid operation against a blob snapshot. Snapshots are read-only.")
}

// deleteSnapshots deletes the blob's snapshots if the request asks for that. It refuses to delete a blob that has some otherwise. done
// reports that the blob itself must stay.
func (b *stored) deleteSnapshots(c *exchange.Call) (done bool, err *protocol.Fault) {
	switch what := c.Header.Get("x-ms-delete-snapshots"); {
	case what == "include" || what == "only":
		b.snapshots = nil
		return what == "only", nil
	case what != "":
		return false, exchange.InvalidHeader("x-ms-delete-snapshots", what)
	case len(b.snapshots) > 0:
		return false, snapshotsPresent()
	}
	return false, nil
}
