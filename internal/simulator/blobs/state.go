package blobs

import (
	"maps"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator/snapshot"
)

// State is the stored state of the service at one moment.
type State struct {
	containers map[string]*storedContainer
	deleted    map[string]time.Time // when each deleted container was deleted, by name
	serial     uint64
}

// Snapshot copies the stored state.
func (s *Service) Snapshot() *State {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return &State{snapshot.Cloned(s.containers, (*storedContainer).clone), maps.Clone(s.deleted), s.Serial}
}

// Restore returns the service to the state of a snapshot.
func (s *Service) Restore(from *State) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.containers, s.deleted, s.Serial = snapshot.Cloned(from.containers, (*storedContainer).clone), maps.Clone(from.deleted), from.serial
}

// clone copies the container and its blobs, because these are changed in place. The copies share the contents.
func (k *storedContainer) clone() *storedContainer {
	return &storedContainer{metadata: k.metadata, policies: k.policies, etag: k.etag, modified: k.modified,
		blobs: snapshot.Cloned(k.blobs, (*stored).clone), names: slices.Clone(k.names), graves: maps.Clone(k.graves)}
}

func (b *stored) clone() *stored {
	c := *b
	c.staged = maps.Clone(b.staged)
	// Clip the slice, so that an append to one of the two copies does not write into the memory of the other.
	c.appended = slices.Clip(b.appended)
	c.snapshots = slices.Clip(b.snapshots) // a snapshot never changes
	return &c
}

// Fingerprint writes the parts of the state that requests can observe at a time.
func (s *State) Fingerprint(k *snapshot.Writer, now time.Time) {
	k.Times(s.deleted)
	k.Number(s.serial)
	snapshot.EachSorted(k, s.containers, func(_ string, c *storedContainer) { c.fingerprint(k, now) })
}

func (k *storedContainer) fingerprint(w *snapshot.Writer, now time.Time) {
	w.Texts(k.metadata)
	k.policies.Fingerprint(w)
	w.Text(k.etag)
	snapshot.EachSorted(w, k.blobs, func(_ string, b *stored) { b.fingerprint(w) })
	graves := map[string]time.Time{}
	for name, at := range k.graves {
		if b := k.blobs[name]; !at.Before(now) && (b == nil || !b.committed) {
			graves[name] = at
		}
	}
	w.Times(graves)
}

func (b *stored) fingerprint(k *snapshot.Writer) {
	k.Text(b.kind)
	k.Flag(b.committed)
	k.Time(b.created)
	k.Text(b.etag)
	k.Texts(b.metadata)
	k.Texts(b.headers)
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
	snapshot.EachSorted(k, b.staged, func(_ string, block block) { k.Bytes(block.data) })
	k.Time(b.stagedAt)
	k.Text(b.lease.id)
	k.Number(uint64(b.lease.seconds))
	k.Time(b.lease.ends)
	k.Flag(b.lease.broken)
	k.Time(b.hold.until)
	k.Flag(b.hold.locked)
	k.Flag(b.hold.legal)
	k.Text(b.tier.name)
	k.Text(b.tier.to)
	k.Time(b.tier.ready)
	k.Number(uint64(len(b.snapshots)))
	for _, s := range b.snapshots {
		k.Text(s.name)
		s.blob.fingerprint(k)
	}
}
