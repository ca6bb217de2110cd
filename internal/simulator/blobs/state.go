package simulator

import (
	"maps"
	"slices"
	"time"
)

// blobsState is what is stored in the service at one moment.
type blobsState struct {
	containers map[string]*blobContainer
	deleted    map[string]time.Time // when names of deleted containers were given up
	serial     uint64
}

// Snapshot copies what is stored.
func (s *blobService) Snapshot() *blobsState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &blobsState{Cloned(s.containers, (*blobContainer).clone), maps.Clone(s.deleted), s.serial}
}

// Restore makes what is stored what it was at a snapshot.
func (s *blobService) Restore(from *blobsState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.containers, s.deleted, s.serial = Cloned(from.containers, (*blobContainer).clone), maps.Clone(from.deleted), from.serial
}

// clone copies the container and its blobs, which change in their places; their contents are shared.
func (k *blobContainer) clone() *blobContainer {
	c := &blobContainer{metadata: k.metadata, policies: k.policies, etag: k.etag, modified: k.modified,
		blobs: Cloned(k.blobs, (*storedBlob).clone), names: slices.Clone(k.names), graves: maps.Clone(k.graves)}
	return c
}

func (b *storedBlob) clone() *storedBlob {
	c := *b
	c.staged = maps.Clone(b.staged)
	// Cut off, so that both may grow: neither writes where the other does.
	c.appended = slices.Clip(b.appended)
	return &c
}

// Fingerprint writes what requests can tell of the state, at a time.
func (s *blobsState) Fingerprint(k *fingerprint, now time.Time) {
	k.Times(s.deleted)
	k.Number(s.serial)
	EachSorted(k, s.containers, func(_ string, c *blobContainer) { c.fingerprint(k, now) })
}

func (c *blobContainer) fingerprint(k *fingerprint, now time.Time) {
	k.Texts(c.metadata)
	c.policies.Fingerprint(k)
	k.Text(c.etag)
	EachSorted(k, c.blobs, func(_ string, b *storedBlob) { b.fingerprint(k) })
	graves := map[string]time.Time{}
	for name, at := range c.graves {
		if b := c.blobs[name]; !at.Before(now) && (b == nil || !b.committed) {
			graves[name] = at
		}
	}
	k.Times(graves)
}

func (b *storedBlob) fingerprint(k *fingerprint) {
	k.Text(b.kind)
	k.Flag(b.committed)
	k.Time(b.created)
	k.Text(b.etag)
	k.Texts(b.metadata)
	for _, h := range [...]string{b.headers.contentType, b.headers.encoding, b.headers.language, b.headers.disposition, b.headers.cacheControl, b.headers.md5} {
		k.Text(h)
	}
	k.Flag(b.copied != nil)
	if b.copied != nil {
		k.Text(b.copied.id)
		k.Text(b.copied.source)
		k.Time(b.copied.completed)
	}
	k.Number(uint64(len(b.blocks)))
	for _, block := range b.blocks {
		k.Text(block.id)
		k.Bytes(block.data)
	}
	k.Bytes(b.appended)
	k.Number(uint64(b.appends))
	EachSorted(k, b.staged, func(_ string, block blobBlock) { k.Bytes(block.data) })
	k.Time(b.stagedAt)
}
