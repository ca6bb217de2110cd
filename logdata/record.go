package logdata

import (
	"errors"
	"io"
	"iter"
	"time"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Record is one entry of a log.
type Record struct {
	// Time is the time of the event, in nanoseconds; in records that were read it is in UTC. It determines
	// the blob that stores the record. Write replaces a zero Time by the current time.
	Time time.Time
	// Data has any bytes, including line feeds, and may be empty.
	Data []byte
}

// Damage is a stretch of a blob that is not a record: cut off by a crash, or written by another program.
type Damage struct {
	Blob   string // the blob's name
	Offset int64
	Bytes  int64
}

// ReadRecords reads the records of a downloaded blob, or of several concatenated blobs, in stored order. It
// skips damaged bytes and yields every complete record. An error of r is yielded once, as the last element.
func ReadRecords(r io.Reader) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		buffer := make([]byte, chunkBytes)
		var d decoder
		for {
			n, err := r.Read(buffer)
			d.add(buffer[:n])
			d.last = err != nil
			for {
				record, ok := d.next()
				if !ok {
					break
				}
				if !yield(record, nil) {
					return
				}
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Record{}, &tables.Error{Op: "ReadRecords", Err: err})
				return
			}
		}
	}
}

// decoder finds the records in bytes that it gets piece by piece.
type decoder struct {
	rest     []byte
	searched int   // number of bytes of rest that were already searched, so that a large record in many pieces is not searched again
	offset   int64 // offset of the beginning of rest
	last     bool  // nothing follows rest
	damaged  func(offset, n int64)

	damageAt, damage int64
}

// add appends a copy of the next bytes.
func (d *decoder) add(b []byte) {
	d.rest = append(d.rest, b...)
}

// next returns the next record. It returns false if it needs more bytes or has reached the end.
func (d *decoder) next() (Record, bool) {
	for {
		record, n, what := nextFrame(d.rest, d.searched, d.last)
		if what == foundDamage {
			if d.damage == 0 {
				d.damageAt = d.offset
			}
			d.damage += int64(n)
		} else if what == foundWhole || d.last {
			d.reportDamage()
		}
		d.rest, d.offset, d.searched = d.rest[n:], d.offset+int64(n), 0
		switch what {
		case foundWhole:
			return record, true
		case foundPart:
			d.searched = len(d.rest)
			return Record{}, false
		}
	}
}

// reportDamage reports a damaged stretch once its end is known.
func (d *decoder) reportDamage() {
	if d.damage > 0 && d.damaged != nil {
		d.damaged(d.damageAt, d.damage)
	}
	d.damage = 0
}
