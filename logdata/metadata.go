package logdata

import (
	"maps"
	"strconv"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/blobowner"
)

// The names of a blob's metadata, in lower case, since the service ignores their case.
const (
	metaFormat   = "tpformat"   // version of the record format
	metaWriter   = "tpwriter"   // a random ID, different for each blob
	metaPeriod   = "tpperiod"   // minutes
	metaDisorder = "tpdisorder" // number of milliseconds by which a record may be older than an earlier one
	metaFirst    = "tpfirst"    // no record is older
	metaLast     = "tplast"     // no record is newer; after it was set, no record is appended
	metaRecords  = "tprecords"  // the number of records; set together with tplast

	formatVersion = 1
)

// openMetadata returns the metadata of a new blob. Of the records' times it has only a lower bound, since an
// older record, within disorder, may follow the first one.
func (l *Log) openMetadata(token string, bound time.Time) map[string]*string {
	return blobowner.Owner{}.Metadata(map[string]string{
		metaFormat: strconv.Itoa(formatVersion), metaWriter: token,
		metaPeriod:   strconv.Itoa(int(l.period / time.Minute)),
		metaDisorder: strconv.Itoa(int(disorder / time.Millisecond)),
		metaFirst:    bound.Format(timeLayout),
	})
}

// finalMetadata returns the metadata of a finished blob, which replaces the metadata that openMetadata
// returned.
func (l *Log) finalMetadata(s *segment) map[string]*string {
	all := l.openMetadata(s.token, s.first)
	maps.Copy(all, blobowner.Owner{}.Metadata(map[string]string{metaLast: s.last.Format(timeLayout), metaRecords: strconv.FormatInt(s.records, 10)}))
	return all
}

// describe completes a Blob from its metadata. If metadata are missing or invalid, the bounds from the blob's
// name remain.
func (b *Blob) describe(metadata map[string]*string) {
	b.End = hourEnd(b.Start)
	if minutes, err := strconv.Atoi(blobowner.Label(metadata, metaPeriod)); err == nil && minutes > 0 {
		if end := b.Start.Add(time.Duration(minutes) * time.Minute); minutes <= 60 && !end.After(b.End) {
			b.End = end
		}
	}
	b.disorder = time.Hour
	if n, err := strconv.Atoi(blobowner.Label(metadata, metaDisorder)); err == nil && n >= 0 && n < int(time.Hour/time.Millisecond) {
		b.disorder = time.Duration(n) * time.Millisecond
	}
	b.format = blobowner.Label(metadata, metaFormat)
	b.First = b.Start
	if t, err := time.Parse(timeLayout, blobowner.Label(metadata, metaFirst)); err == nil && t.After(b.Start) && t.Before(b.End) {
		b.First = t
	}
	last, err := time.Parse(timeLayout, blobowner.Label(metadata, metaLast))
	if err != nil || last.Before(b.First) {
		return
	}
	b.Last, b.Final = last, true
	b.Records, _ = strconv.ParseInt(blobowner.Label(metadata, metaRecords), 10, 64)
}
