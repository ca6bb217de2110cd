package rowreader

import (
	"hash/maphash"
	"reflect"
	"sync"
)

// memory is what a reader needs while it reads a response. The next reader uses it again, with the names that this one has learned if it
// keeps the same properties, and with the texts that the rows had.
type memory struct {
	names   nameTable
	scratch []byte
	texts   [manyTexts]string
}

const (
	manyTexts = 256 // a power of 2
	// longText is how long a text may be that is kept. Longer ones are seldom the same in two rows.
	longText = 32
	// manyNames is how many names are kept: a table whose rows have ever new names should not fill the memory.
	manyNames = 4 * fewNames
	// manyRows is how many rows may have been counted, far below what an int32 can count.
	manyRows = 1 << 30
	// longScratch is how long a text with escapes may be whose memory is kept.
	longScratch = 64 << 10
)

var (
	memories = sync.Pool{New: func() any { return &memory{names: nameTable{entries: make([]nameEntry, 1, fewNames)}} }}
	seed     = maphash.MakeSeed()
)

// remembered returns memory for a reader that keeps the properties in known, and reads them plainly or not.
func remembered(known map[string]int, plain bool) *memory {
	m := memories.Get().(*memory)
	if n := &m.names; n.plain != plain || reflect.ValueOf(n.known).UnsafePointer() != reflect.ValueOf(known).UnsafePointer() || len(n.entries) > manyNames || n.row > manyRows {
		clear(n.entries)
		*n = nameTable{known: known, plain: plain, entries: n.entries[:1]}
	}
	if cap(m.scratch) > longScratch {
		m.scratch = nil
	}
	return m
}

// text returns the string of the bytes. Many properties have few different values, such as a status or a country, and rows of one
// query share them.
func (m *memory) text(b []byte) string {
	if len(b) == 0 || len(b) > longText {
		return string(b)
	}
	kept := &m.texts[maphash.Bytes(seed, b)%manyTexts]
	if *kept != string(b) {
		*kept = string(b)
	}
	return *kept
}
