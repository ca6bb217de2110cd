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
	// Time is when it happened, to the nanosecond; what is read is in UTC. It decides the blob that the record is in. A
	// zero Time stands for now when it is written.
	Time time.Time
	// Data are any bytes, none too, and line feeds as well.
	Data []byte
}

// Damage is a stretch of a blob that is no record: what a crash has cut off, or what something else has written.
type Damage struct {
	Blob   string // the blob's name
	Offset int64
	Bytes  int64
}

// ReadRecords reads the records of a blob that was downloaded, or of several one behind the other, in the order in which
// they stand there. What is damaged is passed over, and every whole record yielded. The error of r comes last.
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

// decoder finds the records in the bytes that it is given piece by piece.
type decoder struct {
	rest     []byte
	searched int   // how much of rest is a part of a record: a large one comes in many pieces
	offset   int64 // of rest, from the beginning
	last     bool  // nothing comes behind rest
	damaged  func(offset, n int64)

	damageAt, damage int64
}

// add appends what comes next. It takes a copy.
func (d *decoder) add(b []byte) {
	d.rest = append(d.rest, b...)
}

// next returns the next record. Without one, it needs more bytes, or the last one has been.
func (d *decoder) next() (Record, bool) {
	for {
		record, n, what := nextFrame(d.rest, d.searched, d.last)
		if what == foundDamage {
			if d.damage == 0 {
				d.damageAt = d.offset
			}
			d.damage += int64(n)
		} else if what == foundWhole || d.last {
			d.tellDamage()
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

// tellDamage tells of a stretch once, when its end is known.
func (d *decoder) tellDamage() {
	if d.damage > 0 && d.damaged != nil {
		d.damaged(d.damageAt, d.damage)
	}
	d.damage = 0
}
