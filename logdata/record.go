package logdata

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"strconv"
	"time"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Record is one entry of a log.
type Record struct {
	// Time is that of the event, in nanoseconds, and decides on the blob; UTC in records that were read. Write replaces a zero Time by the current
	// time.
	Time time.Time
	// Data has any bytes, including line feeds, or none.
	Data []byte
}

// Damage is a stretch of a blob that is not a record: cut off by a crash, or written by another program.
type Damage struct {
	Blob   string // the blob's name
	Offset int64
	Bytes  int64
}

// ReadRecords yields the complete records of a downloaded blob, or of several concatenated ones, in stored order, without damaged bytes. An error
// of r is yielded once, as the last element.
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

type decoder struct {
	rest     []byte
	searched int   // a large record in many pieces is searched only once
	offset   int64 // of rest
	last     bool  // no more bytes follow rest
	damaged  func(offset, n int64)

	damageAt, damage int64
}

func (d *decoder) add(b []byte) { d.rest = append(d.rest, b...) }

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

func (d *decoder) reportDamage() {
	if d.damage > 0 && d.damaged != nil {
		d.damaged(d.damageAt, d.damage)
	}
	d.damage = 0
}

// A record is stored as
//
//	0x1E time SP length SP checksum SP data LF
//
// time is in UTC with nine decimals, 30 characters; length counts the stored data, in decimal; checksum is CRC-32C (Castagnoli), 8 hexadecimal
// digits, of time, SP, length, SP and data. In data, 0x1E is stored as 0x10 'r', and 0x10 as 0x10 'e'. So 0x1E only begins records: after damaged
// bytes, the reader finds the next one, and never mistakes quoted data for a record.
const (
	mark        = 0x1e
	escape      = 0x10
	escapedMark = 'r'
	escapedSelf = 'e'
	timeLayout  = "2006-01-02T15:04:05.000000000Z"

	timeLength     = len(timeLayout)
	checksumLength = 8
	lengthDigits   = 9
	maxHeader      = 1 + timeLength + 1 + lengthDigits + 1 + checksumLength + 1
	// minFrame is the size of a record without data.
	minFrame = 1 + timeLength + 1 + 1 + 1 + checksumLength + 1 + 1
	// maxData exceeds all data. A greater length means damage.
	maxData = maxBlockBytes
)

func checksum(head, data []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Update(0, table, head), table, data)
}

func appendFrame(dst []byte, at time.Time, data []byte) []byte {
	escapes := bytes.Count(data, []byte{mark}) + bytes.Count(data, []byte{escape})
	dst = append(dst, mark)
	head := len(dst)
	dst = at.UTC().AppendFormat(dst, timeLayout)
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, int64(len(data)+escapes), 10)
	dst = append(dst, ' ')
	headEnd := len(dst)
	dst = append(dst, "00000000 "...)
	body := len(dst)
	if escapes == 0 {
		dst = append(dst, data...)
	} else {
		dst = appendEscaped(dst, data)
	}
	copy(dst[headEnd:], fmt.Appendf(nil, "%08x", checksum(dst[head:headEnd], dst[body:])))
	return append(dst, '\n')
}

func appendEscaped(dst, data []byte) []byte {
	for _, c := range data {
		switch c {
		case mark:
			dst = append(dst, escape, escapedMark)
		case escape:
			dst = append(dst, escape, escapedSelf)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

func unescaped(stored []byte) ([]byte, bool) {
	data := make([]byte, 0, len(stored))
	for {
		i := bytes.IndexByte(stored, escape)
		if i < 0 {
			return append(data, stored...), true
		}
		data = append(data, stored[:i]...)
		if i+1 == len(stored) {
			return nil, false
		}
		switch stored[i+1] {
		case escapedMark:
			data = append(data, mark)
		case escapedSelf:
			data = append(data, escape)
		default:
			return nil, false
		}
		stored = stored[i+2:]
	}
}

type found uint8

const (
	foundWhole found = iota + 1
	foundDamage
	foundPart // perhaps the beginning of a record
)

// nextFrame looks for a record at the beginning of b, and returns how many bytes it has consumed. last: no bytes follow b. The first searched bytes
// have no mark after the first byte. It returns foundPart only if further bytes may change the result, or if b is empty.
func nextFrame(b []byte, searched int, last bool) (Record, int, found) {
	if len(b) == 0 {
		return Record{}, 0, foundPart
	}
	if b[0] != mark {
		if i := bytes.IndexByte(b, mark); i >= 0 {
			return Record{}, i, foundDamage
		}
		return Record{}, len(b), foundDamage
	}
	// The next mark begins another record, whatever the length field says.
	from := max(searched, 1)
	if i := bytes.IndexByte(b[from:], mark); i >= 0 {
		b, last = b[:from+i], true
	}
	h, state := parseHeader(b)
	if state == foundWhole && len(b) < h.end+h.length+1 {
		state = foundPart
	}
	if state == foundPart && !last {
		return Record{}, 0, foundPart
	}
	if state != foundWhole {
		return Record{}, len(b), foundDamage
	}
	stored := b[h.end : h.end+h.length]
	if b[h.end+h.length] != '\n' || checksum(b[1:h.summed], stored) != h.checksum {
		return Record{}, len(b), foundDamage
	}
	data, ok := unescaped(stored)
	if !ok {
		return Record{}, len(b), foundDamage
	}
	return Record{Time: h.time, Data: data}, h.end + h.length + 1, foundWhole
}

// header is what precedes the data. The checksum covers the bytes up to summed; data begin at end.
type header struct {
	time        time.Time
	length      int
	checksum    uint32
	summed, end int
}

func parseHeader(b []byte) (header, found) {
	short := foundPart
	if len(b) >= maxHeader {
		short = foundDamage
	}
	const lengthAt = 1 + timeLength + 1
	if len(b) < lengthAt {
		return header{}, short
	}
	var h header
	var err error
	text := string(b[1 : 1+timeLength])
	if h.time, err = time.Parse(timeLayout, text); err != nil || h.time.Format(timeLayout) != text || b[lengthAt-1] != ' ' {
		return header{}, foundDamage
	}
	digits := bytes.IndexByte(b[lengthAt:], ' ')
	if digits < 0 {
		return header{}, short
	}
	h.length, err = strconv.Atoi(string(b[lengthAt : lengthAt+digits]))
	if err != nil || digits > lengthDigits || h.length < 0 || h.length > maxData || strconv.Itoa(h.length) != string(b[lengthAt:lengthAt+digits]) {
		return header{}, foundDamage
	}
	h.summed = lengthAt + digits + 1
	h.end = h.summed + checksumLength + 1
	if len(b) < h.end {
		return header{}, foundPart
	}
	sum, err := strconv.ParseUint(string(b[h.summed:h.end-1]), 16, 32)
	if h.checksum = uint32(sum); err != nil || b[h.end-1] != ' ' {
		return header{}, foundDamage
	}
	return h, foundWhole
}
