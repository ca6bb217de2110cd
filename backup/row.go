package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/rowreader"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/tablescan"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

// line is a stored row: a JSON object as the service writes it, with the keys and then all properties except ETag and Timestamp, sorted by name,
// and a line feed. Rows are equal if their lines are.
type line struct {
	key  rangescan.Key
	text []byte
}

// page holds the rows of one response, as lines in the order of their keys.
type page struct {
	lines   []line
	bytes   int
	times   span
	left    []Difference // rows that cannot be copied
	scratch []byte
}

// span holds the earliest and the latest Timestamp, zero without rows.
type span struct {
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
}

func (s span) with(t span) span {
	switch {
	case t.First.IsZero():
		return s
	case s.First.IsZero():
		return t
	}
	if t.First.Before(s.First) {
		s.First = t.First
	}
	if t.Last.After(s.Last) {
		s.Last = t.Last
	}
	return s
}

// appendLine sorts the properties.
func appendLine(dst []byte, partition, row string, properties tables.Properties) []byte {
	byName := func(a, b tables.Property) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(properties, byName) {
		slices.SortFunc(properties, byName)
	}
	dst = edm.AppendQuoted(append(dst, `{"PartitionKey":`...), partition)
	dst = edm.AppendQuoted(append(dst, `,"RowKey":`...), row)
	for i := range properties {
		name := properties[i].Name
		if !edm.IsPlainName(name) { // on an emulator, another program can have written such a name
			quoted := edm.AppendQuoted(nil, name)
			name = string(quoted[1 : len(quoted)-1])
		}
		dst = edm.AppendProperty(append(dst, ','), name, edm.Value(properties[i].Value))
	}
	return append(dst, '}', '\n')
}

// eachRow decodes lines. A row is valid during its call only.
func eachRow(lines []byte, each func(*tablerow.Row) error) error {
	return rowreader.NewPlain(lines).Lines(each)
}

// scanLines returns a scan whose pages have the rows as lines. as returns the row for a line, or why it is left out.
func scanLines(table *tables.Table, ranges []rangescan.Range, readers int, as func(*tablerow.Row) (*tablerow.Row, error)) tablescan.Scan[*page] {
	return tablescan.Scan[*page]{
		Table: (*core.Table)(table), Ranges: ranges, Readers: readers, Plain: true,
		New: func() *page { return &page{} },
		Row: func(_ context.Context, p *page, row *tablerow.Row) error {
			row, why := as(row)
			if why != nil {
				p.left = append(p.left, Difference{Kind: LeftOut, Table: table.Name(), Key: row.Key, Err: why})
				return nil
			}
			p.scratch = appendLine(p.scratch[:0], row.Key.Partition, row.Key.Row, row.Properties)
			p.lines = append(p.lines, line{rangescan.Key(row.Key), bytes.Clone(p.scratch)})
			p.bytes += len(p.scratch)
			p.times = p.times.with(span{row.Timestamp, row.Timestamp})
			return nil
		},
	}
}

func afterLine(text []byte) (after rangescan.Point, err error) {
	err = eachRow(text, func(row *tablerow.Row) error {
		after = rangescan.Point{Partition: row.Key.Partition, Row: row.Key.Row, Side: rangescan.After}
		return nil
	})
	return after, err
}

// unreadable returns why a row cannot be read as it is stored, or nil.
func unreadable(row *tablerow.Row) error {
	if row.Problem == nil && row.Lossy {
		return errors.New("a text has half of a surrogate pair, which a copy cannot store; correct it with the program that wrote it")
	}
	return row.Problem
}

// uncopied also returns why no table of the service stores the row.
func uncopied(row *tablerow.Row) error {
	if err := unreadable(row); err != nil {
		return err
	}
	w := tablerow.Row{Verb: wire.VerbInsert, Key: row.Key, Properties: row.Properties, Plain: true}
	if _, err := w.Check(); err != nil {
		return fmt.Errorf("no table of the service stores such a row: %w", err.Err)
	}
	return nil
}

func asStored(row *tablerow.Row) (*tablerow.Row, error) { return row, uncopied(row) }

// differing returns the properties in which two lines differ; not all if a line cannot be read.
func differing(a, b []byte) []string {
	all := map[string]tables.Value{}
	var names []string
	read := func(text []byte, each func(tables.Property)) {
		_ = eachRow(text, func(row *tablerow.Row) error { // the names only explain the difference
			for _, p := range row.Properties {
				each(p)
			}
			return nil
		})
	}
	read(a, func(p tables.Property) { all[p.Name] = p.Value })
	read(b, func(p tables.Property) {
		if v, ok := all[p.Name]; !ok || v != p.Value {
			names = append(names, p.Name)
		}
		delete(all, p.Name)
	})
	names = slices.AppendSeq(names, maps.Keys(all)) // that only a has
	slices.Sort(names)
	return names
}

const mark = "backup"

func isOutside(row *tablerow.Row) bool { return row.Properties.Has(rows.Partition) }

// marked marks a copy of an entity in another partition, which may be outdated and has the source's ETags, so that readers follow it to the entity.
func marked(row *tablerow.Row) *tablerow.Row {
	if !isOutside(row) {
		return row
	}
	left := slices.DeleteFunc(slices.Clone(row.Properties), func(p tables.Property) bool {
		return p.Name == rows.Version || p.Name == rows.Mark || p.Name == rows.Acquirer || p.Name == rows.Base
	})
	return row.With(append(left, tables.Property{Name: rows.Mark, Value: tables.String(mark)}))
}

// asCopied returns a row as Copy writes it, or why it cannot be read.
func asCopied(row *tablerow.Row) (*tablerow.Row, error) { return marked(row), unreadable(row) }
