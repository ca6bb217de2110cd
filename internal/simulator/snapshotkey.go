package simulator

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// Key is equal for two snapshots of an Orderless account if no request can tell them apart, now or later; it differs if one
// can. It does not look at how the account came to its state, nor at chance.
func (s *Snapshot) Key() [sha256.Size]byte {
	var k keyWriter
	k.time(s.now)
	k.number(s.serial)
	k.bytes(s.properties)
	k.times(s.taken)
	eachSorted(&k, s.tables, func(name string, t *table) { k.table(t, s.now) })
	k.times(s.deletedQueues)
	k.number(s.queueSerial)
	eachSorted(&k, s.queues, func(name string, q *queue) { k.queue(q, s.now) })
	k.times(s.deletedContainers)
	k.number(s.blobSerial)
	eachSorted(&k, s.containers, func(name string, c *blobContainer) { k.container(c, s.now) })
	return sha256.Sum256(k.buf)
}

// Now is the account's time at the snapshot.
func (s *Snapshot) Now() time.Time { return s.now }

// Waiting counts the messages of the queues for which of is true: those that are visible, and all. next is when the first of
// the hidden ones becomes visible, last is when all of them are.
func (s *Snapshot) Waiting(of func(queue string) bool) (visible, all int, next, last time.Time) {
	for name, q := range s.queues {
		if !of(name) {
			continue
		}
		for _, m := range q.byTime {
			if !s.now.Before(m.expires) {
				continue
			}
			all++
			if !s.now.Before(m.visible) {
				visible++
			} else if next.IsZero() || m.visible.Before(next) {
				next = m.visible
			}
			if m.visible.After(last) {
				last = m.visible
			}
		}
	}
	return visible, all, next, last
}

// keyWriter collects what makes a state. Everything is preceded by its length, or has a fixed one.
type keyWriter struct{ buf []byte }

func (k *keyWriter) number(n uint64) { k.buf = binary.LittleEndian.AppendUint64(k.buf, n) }

func (k *keyWriter) flag(b bool) {
	if b {
		k.number(1)
	} else {
		k.number(0)
	}
}

func (k *keyWriter) bytes(b []byte) {
	k.number(uint64(len(b)))
	k.buf = append(k.buf, b...)
}

func (k *keyWriter) text(s string) {
	k.number(uint64(len(s)))
	k.buf = append(k.buf, s...)
}

func (k *keyWriter) time(t time.Time) {
	k.number(uint64(t.Unix()))
	k.number(uint64(t.Nanosecond()))
}

func (k *keyWriter) times(m map[string]time.Time) {
	eachSorted(k, m, func(name string, at time.Time) { k.time(at) })
}

func (k *keyWriter) texts(m map[string]string) {
	eachSorted(k, m, func(name, value string) { k.text(value) })
}

func (k *keyWriter) policies(all []xmlPolicy) {
	k.number(uint64(len(all)))
	for _, p := range all {
		for _, part := range [...]string{p.ID, p.Start, p.Expiry, p.Permission} {
			k.text(part)
		}
	}
}

// eachSorted writes the names of a map in their order, each with what write adds.
func eachSorted[T any](k *keyWriter, m map[string]T, write func(name string, value T)) {
	k.number(uint64(len(m)))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		k.text(name)
		write(name, m[name])
	}
}

func (k *keyWriter) table(t *table, now time.Time) {
	k.text(t.name)
	k.policies(t.policies)
	k.number(uint64(t.rows.count))
	for _, leaf := range t.rows.leaves {
		for _, e := range leaf {
			k.entity(e)
		}
	}
	eachSorted(k, t.meters, func(_ string, m *meter) {
		k.number(uint64(m.left * 1e6))
		k.time(m.at)
	})
	var graves []rowKey
	for key, at := range t.graves {
		// An older one is no hindrance to any stamp to come.
		if !at.Before(now) && t.rows.get(key.pk, key.rk) == nil {
			graves = append(graves, key)
		}
	}
	slices.SortFunc(graves, func(a, b rowKey) int { return compareKeys(a.pk, a.rk, b.pk, b.rk) })
	k.number(uint64(len(graves)))
	for _, key := range graves {
		k.text(key.pk)
		k.text(key.rk)
		k.time(t.graves[key])
	}
}

func (k *keyWriter) entity(e *entity) {
	k.text(e.pk)
	k.text(e.rk)
	k.text(e.etag)
	k.number(uint64(len(e.properties)))
	for _, p := range e.properties {
		k.text(p.name)
		k.number(uint64(p.value.Type()))
		k.bytes(edm.AppendValue(nil, p.value))
	}
}

func (k *keyWriter) queue(q *queue, now time.Time) {
	k.texts(q.metadata)
	k.policies(q.policies)
	messages := q.those(now, func(*queueMessage) bool { return true })
	slices.SortFunc(messages, func(a, b *queueMessage) int { return strings.Compare(a.id, b.id) })
	k.number(uint64(len(messages)))
	for _, m := range messages {
		k.text(m.id)
		k.number(m.number)
		k.text(m.text)
		k.time(m.inserted)
		k.time(m.expires)
		k.time(m.visible)
		k.number(uint64(m.handed))
		k.number(m.receipts)
	}
	eachSorted(k, q.puts, func(_ string, n uint64) { k.number(n) })
}

func (k *keyWriter) container(c *blobContainer, now time.Time) {
	k.texts(c.metadata)
	k.policies(c.policies)
	k.text(c.etag)
	eachSorted(k, c.blobs, func(_ string, b *storedBlob) { k.blob(b) })
	graves := map[string]time.Time{}
	for name, at := range c.graves {
		if b := c.blobs[name]; !at.Before(now) && (b == nil || !b.committed) {
			graves[name] = at
		}
	}
	k.times(graves)
}

func (k *keyWriter) blob(b *storedBlob) {
	k.text(b.kind)
	k.flag(b.committed)
	k.time(b.created)
	k.text(b.etag)
	k.texts(b.metadata)
	for _, h := range [...]string{b.headers.contentType, b.headers.encoding, b.headers.language, b.headers.disposition, b.headers.cacheControl, b.headers.md5} {
		k.text(h)
	}
	k.flag(b.copied != nil)
	if b.copied != nil {
		k.text(b.copied.id)
		k.text(b.copied.source)
		k.time(b.copied.completed)
	}
	k.number(uint64(len(b.blocks)))
	for _, block := range b.blocks {
		k.text(block.id)
		k.bytes(block.data)
	}
	k.bytes(b.appended)
	k.number(uint64(b.appends))
	eachSorted(k, b.staged, func(_ string, block blobBlock) { k.bytes(block.data) })
	k.time(b.stagedAt)
}
