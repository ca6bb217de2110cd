package widentities

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/fnv"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/tables"
)

var errRecord = errors.New("a further row is damaged: it does not consist of records; restore it from a backup")

const (
	piecesOfRow = 15 // string properties of 64 KiB; 64 KiB of the row remain for its key and the library's properties
	// rowUnits is the maximum size of the text in a further row, in UTF-16 units. It counts one unit less than fits
	// for each property, since cutUnits does not cut a character of two units.
	rowUnits = piecesOfRow * (edm.MaxStringUnits - 1)
	// usualUnits is the approximate size of a further row of a small entity, in UTF-16 units.
	usualUnits = 16 * 1024
)

// page is the content of one further row: records, or a part of a record that is larger than a row.
type page struct {
	first     string // the name of its first property
	continues bool   // its text continues the text of the previous row
	text      string
}

// paginate divides records into rows. A row that has a quarter of the usual size ends before the next record whose name has a
// certain hash. So a change of one value usually changes one row only: neither the rows before it nor those after it.
func paginate(sorted tables.Properties) ([]page, error) {
	all, ends, err := recordsOf(sorted)
	if err != nil || all == "" {
		return nil, err
	}
	total := edm.Units(all)
	usual := min(rowUnits, max(usualUnits, powerOver(total/8)))
	oneOf := powerOver(usual * len(sorted) / total / 2) // on average, one of oneOf names begins a row
	var pages []page
	first, start, held := 0, 0, 0 // of the current row: the index of its first property, its start in the text, its UTF-16 units
	flush := func(end int) {
		if end > start {
			pages = append(pages, page{first: sorted[first].Name, text: all[start:end]})
		}
		start, held = end, 0
	}
	from := 0
	for i, end := range ends {
		units := edm.Units(all[from:end])
		if held > 0 && (held+units > rowUnits || held >= usual/4 && beginsRow(sorted[i].Name, oneOf)) {
			flush(from)
			first = i
		}
		if held += units; units > rowUnits {
			for n, part := range cutUnits(all[from:end], rowUnits) {
				pages = append(pages, page{first: sorted[i].Name, continues: n > 0, text: part})
			}
			first, start, held = i+1, end, 0
		}
		from = end
	}
	flush(len(all))
	return pages, nil
}

// recordsOf returns the records of properties, and where each ends.
func recordsOf(properties tables.Properties) (all string, ends []int, err error) {
	var text []byte
	ends = make([]int, len(properties))
	for i := range properties {
		if text, err = appendRecord(text, &properties[i]); err != nil {
			return "", nil, err
		}
		ends[i] = len(text)
	}
	return string(text), ends, nil
}

// powerOver returns the least power of two above n: a rounded size stays the same after most small changes of an entity.
func powerOver(n int) int { return 1 << bits.Len(uint(n)) }

// beginsRow reports whether a row may begin at a name: by their hashes, one of oneOf names.
func beginsRow(name string, oneOf int) bool {
	h := fnv.New32a()
	h.Write([]byte(name))
	return h.Sum32()%uint32(oneOf) == 0
}

// cutUnits cuts a text into parts of at most the given number of UTF-16 units. It cuts no character in two.
func cutUnits(text string, most int) []string {
	var parts []string
	units, from := 0, 0
	for i, r := range text {
		n := 1
		if r > 0xFFFF {
			n = 2
		}
		if units+n > most {
			parts = append(parts, text[from:i])
			units, from = 0, i
		}
		units += n
	}
	return append(parts, text[from:])
}

// version returns a digest of the content of a further row.
func (p *page) version() string {
	sum := sha256.Sum256([]byte(p.text))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

const versionLength = 22

// properties returns the properties of the row.
func (p *page) properties() tables.Properties {
	parts := cutUnits(p.text, edm.MaxStringUnits)
	properties := make(tables.Properties, len(parts))
	for i, part := range parts {
		properties[i] = tables.Property{Name: pieceName(i), Value: tables.String(part)}
	}
	return properties
}

func pieceName(i int) string { return fmt.Sprintf("Pack%02d", i) }

// textOfRow is the inverse of properties.
func textOfRow(properties tables.Properties) string {
	var b strings.Builder
	for i := range piecesOfRow {
		text, ok := properties.Get(pieceName(i)).Text()
		if !ok {
			break
		}
		b.WriteString(text)
	}
	return b.String()
}

// The directory, in the first row, consists of words: its version, the digest of the names in Options.FirstRow, and for each
// further row the digest of its text with the name of its first property, or with a plus sign if its text continues that of
// the row before.
const (
	directoryVersion = "1"
	goesOn           = "+"
)

func directoryOf(firstRow string, pages []page) string {
	var b strings.Builder
	b.WriteString(directoryVersion + " " + firstRow)
	for i := range pages {
		first := pages[i].first
		if pages[i].continues {
			first = goesOn
		}
		b.WriteString(" " + pages[i].version() + first)
	}
	return b.String()
}

// entry describes a row in a directory.
type entry struct {
	version   string
	first     string
	continues bool
}

func parseDirectory(directory string) (firstRow string, entries []entry, err error) {
	words := strings.Split(directory, " ")
	if words[0] != directoryVersion || len(words) < 3 {
		return "", nil, fmt.Errorf("the directory in _tpLayout has version %.10q, and this build reads version %s; use a newer build", words[0], directoryVersion)
	}
	entries = make([]entry, len(words)-2)
	for i, word := range words[2:] {
		if len(word) <= versionLength || !utf8.ValidString(word) {
			return "", nil, errors.New("the directory in _tpLayout is truncated; restore the entity's first row from a backup")
		}
		e := entry{version: word[:versionLength], first: word[versionLength:]}
		if e.first == goesOn {
			if i == 0 {
				return "", nil, errors.New("the directory in _tpLayout is damaged: its first entry continues another; restore the entity's first row from a backup")
			}
			e.first, e.continues = entries[i-1].first, true
		}
		entries[i] = e
	}
	return words[1], entries, nil
}

// holding returns the rows that hold a property if the entity has it.
func holding(entries []entry, name string) []int {
	var rows []int
	for i := range slices.Backward(entries) {
		if entries[i].first > name {
			continue
		}
		rows = append(rows, i)
		if !entries[i].continues {
			break
		}
	}
	slices.Reverse(rows)
	return rows
}
