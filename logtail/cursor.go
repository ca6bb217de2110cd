package logtail

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// place is the position of a follower: it has yielded the entries before the horizon, and those in seen.
type place struct {
	horizon time.Time
	seen    map[digest]time.Time // times of yielded entries that are not before the horizon
}

// digest is a hash of a row key. With 80 bits, two keys of one window have practically never the same.
type digest [10]byte

func digestOf(row string) digest {
	sum := sha256.Sum256([]byte(row))
	return digest(sum[:len(digest{})])
}

// moveHorizon moves the horizon forward, and never back.
func (p *place) moveHorizon(horizon time.Time) {
	if !horizon.After(p.horizon) {
		return
	}
	p.horizon = horizon
	for d, at := range p.seen {
		if at.Before(horizon) {
			delete(p.seen, d)
		}
	}
}

// A cursor is the version (1 byte), the log's fingerprint and the horizon's ticks (8 bytes each, big-endian) and, sorted, for
// each entry in seen its distance from the horizon in ticks (as a varint) and its digest.
const cursorVersion = 1

func (p *place) encode(log uint64) string {
	ticks := ticksOf(p.horizon)
	b := []byte{cursorVersion}
	b = binary.BigEndian.AppendUint64(b, log)
	b = binary.BigEndian.AppendUint64(b, uint64(ticks))
	marks := make([]string, 0, len(p.seen))
	for d, at := range p.seen {
		marks = append(marks, string(append(binary.AppendUvarint(nil, uint64(ticksOf(at)-ticks)), d[:]...)))
	}
	slices.Sort(marks)
	return base64.RawURLEncoding.EncodeToString(append(b, strings.Join(marks, "")...))
}

var errNoCursor = errors.New("the cursor is damaged or cut off; give the text that Follower.Cursor returned")

func decodePlace(cursor string, log uint64) (place, error) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) < 17 {
		return place{}, errNoCursor
	}
	if b[0] != cursorVersion {
		return place{}, fmt.Errorf("the cursor has version %d, and this build reads version %d; use a newer build", b[0], cursorVersion)
	}
	if binary.BigEndian.Uint64(b[1:]) != log {
		return place{}, errors.New("the cursor belongs to another log or partition; give one of this partition")
	}
	ticks := int64(binary.BigEndian.Uint64(b[9:]))
	p := place{horizon: edm.TimeOfTicks(ticks), seen: map[digest]time.Time{}}
	if back, err := edm.Ticks(p.horizon); err != nil || back != ticks {
		return place{}, errNoCursor
	}
	for b = b[17:]; len(b) > 0; {
		distance, n := binary.Uvarint(b)
		if n <= 0 || len(b) < n+len(digest{}) || distance > uint64(ticksOf(lastTick())-ticks) {
			return place{}, errNoCursor
		}
		p.seen[digest(b[n:n+len(digest{})])] = edm.TimeOfTicks(ticks + int64(distance))
		b = b[n+len(digest{}):]
	}
	return p, nil
}

// ticksOf returns the ticks of a time that is in the range of ticks.
func ticksOf(t time.Time) int64 {
	ticks, _ := edm.Ticks(t)
	return ticks
}

// fingerprint returns a hash that identifies a log and a partition.
func (l *Log[T]) fingerprint(partition string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %q %q %q", l.Table().Account().Endpoints().Table, l.Table().Name(), l.schema.Prefix, partition)
	return h.Sum64()
}
