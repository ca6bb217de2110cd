package widentities

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// What a row keeps free for its key and for the library's own properties.
const (
	keptProperties = 8
	keptBytes      = 32 * 1024
)

// The largest entity that stays in one row, and the most that Options.FirstRow may hold.
const (
	MaxNarrowProperties = edm.MaxProperties - keptProperties
	MaxNarrowSize       = edm.MaxEntitySize - keptBytes // bytes of all properties, by the service's formula
)

// Options say how entities are laid out; nil is the same as the zero value.
type Options struct {
	// FirstRow names properties that every entity stores unchanged in its first row. Only they can be used in query
	// conditions, and reading only them needs no further rows. After you add a property, run Repair before you use it
	// in conditions: existing entities get it in their first row when they are written again.
	FirstRow []string
}

// Layout spreads an entity of its repository over several rows if the entity does not fit into one row. It is
// a patterns.Pattern, named "wide".
type Layout[T any] struct {
	repository driver.Binding
	layout     *layout
}

// New makes the layout of a repository.
func New[T any](options *Options) *Layout[T] { return &Layout[T]{layout: newLayout(options)} }

// Attach implements patterns.Pattern; NewRepository calls it. It returns an error if FirstRow names a
// property that entities do not store.
func (l *Layout[T]) Attach(host driver.Host, _ *T) (driver.Implementation, error) {
	return driver.Implementation{Name: "wide", Binding: &l.repository, Layout: &driver.Layout{
		Split: l.layout.split, Versions: l.layout.versions, Rows: l.layout.rows, Join: l.layout.join,
		Filterable: func(property string) bool { return l.layout.first[property] },
	}}, l.layout.check(host.PropertyNames(), reflect.TypeFor[T]())
}

// layout is the part of a Layout that does not depend on T.
type layout struct {
	listed   []string // Options.FirstRow
	first    map[string]bool
	firstRow string // digest of the sorted names, equal in all programs with these names in FirstRow
}

func newLayout(options *Options) *layout {
	l := &layout{first: map[string]bool{}}
	if options != nil {
		l.listed = slices.Clone(options.FirstRow)
	}
	for _, name := range l.listed {
		l.first[name] = true
	}
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(l.listed)), " ")))
	l.firstRow = base64.RawURLEncoding.EncodeToString(sum[:6])
	return l
}

// check refuses a FirstRow with a property that the type does not store, or with too many. known has the properties of the type;
// nil means any.
func (l *layout) check(known []string, entity reflect.Type) error {
	for i, name := range l.listed {
		if known != nil && !slices.Contains(known, name) {
			return fmt.Errorf("FirstRow names property %s, which %s does not store; use the name under which the field is stored", name, entity.Name())
		}
		if slices.Contains(l.listed[:i], name) {
			return fmt.Errorf("FirstRow names property %s twice; name it once", name)
		}
	}
	if len(l.listed) > MaxNarrowProperties {
		return fmt.Errorf("FirstRow names %d properties, and the first row holds at most %d; name fewer", len(l.listed), MaxNarrowProperties)
	}
	return nil
}

// split implements driver.Layout.Split.
func (l *layout) split(p tables.Properties) (*driver.LaidOut, error) {
	if fits(p) {
		return &driver.LaidOut{First: p}, nil
	}
	first, rest := make(tables.Properties, 0, len(l.first)), make(tables.Properties, 0, len(p))
	for _, property := range p {
		if l.first[property.Name] {
			first = append(first, property)
		} else {
			rest = append(rest, property)
		}
	}
	if !fits(first) {
		size, which := sizeOf(first)
		return nil, &tables.Error{Kind: tables.ErrTooLarge,
			Err: fmt.Errorf("the first row would hold the %d properties of FirstRow with %d bytes, the largest of them %s; its limits are %d properties, %d bytes, and 64 KiB for a property (32,768 UTF-16 units for a text): name fewer properties in FirstRow", len(first), size, which, MaxNarrowProperties, MaxNarrowSize)}
	}
	slices.SortFunc(rest, func(a, b tables.Property) int { return cmp.Compare(a.Name, b.Name) })
	for i := range rest[1:] {
		if rest[i].Name == rest[i+1].Name {
			return nil, fmt.Errorf("property %s occurs twice; give each property once", rest[i].Name)
		}
	}
	pages, err := paginate(rest)
	if err != nil {
		return nil, err
	}
	laid := &driver.LaidOut{First: first, Directory: directoryOf(l.firstRow, pages), Further: make([]driver.FurtherRow, len(pages))}
	for i := range pages {
		laid.Further[i] = driver.FurtherRow{Properties: pages[i].properties(), Version: pages[i].version()}
	}
	return laid, nil
}

// fits reports whether one row can hold the properties.
func fits(p tables.Properties) bool {
	if len(p) > MaxNarrowProperties {
		return false
	}
	size := 0
	for i := range p {
		size += edm.PropertySize(p[i].Name, edm.Value(p[i].Value))
		if size > MaxNarrowSize || overlong(p[i].Value) {
			return false
		}
	}
	return true
}

// overlong reports whether a value is larger than 64 KiB, the most for a property; StoredSize includes 4 bytes for the length.
func overlong(v tables.Value) bool { return v.StoredSize() > edm.MaxBinarySize+4 }

// sizeOf returns the size of properties and the name of the largest.
func sizeOf(p tables.Properties) (size int, largest string) {
	most := 0
	for i := range p {
		n := edm.PropertySize(p[i].Name, edm.Value(p[i].Value))
		if size += n; n > most {
			most, largest = n, p[i].Name
		}
	}
	return size, largest
}

// versions implements driver.Layout.Versions.
func (l *layout) versions(directory string) ([]string, error) {
	_, entries, err := parseDirectory(directory)
	list := make([]string, len(entries))
	for i := range entries {
		list[i] = entries[i].version
	}
	return list, err
}

// rows implements driver.Layout.Rows.
func (l *layout) rows(directory string, names []string) ([]int, error) {
	firstRow, entries, err := parseDirectory(directory)
	if err != nil {
		return nil, err
	}
	var rows []int
	if names == nil {
		for i := range entries {
			rows = append(rows, i)
		}
		return rows, nil
	}
	for _, name := range names {
		if !l.first[name] || firstRow != l.firstRow {
			rows = append(rows, holding(entries, name)...)
		}
	}
	slices.Sort(rows)
	return slices.Compact(rows), nil
}

// join implements driver.Layout.Join.
func (l *layout) join(directory string, first tables.Properties, further map[int]tables.Properties) (tables.Properties, error) {
	_, entries, err := parseDirectory(directory)
	if err != nil {
		return nil, err
	}
	var all strings.Builder
	for i, e := range entries {
		row, asked := further[i]
		if !asked {
			continue
		}
		p := page{text: textOfRow(row)}
		if p.version() != e.version {
			return nil, fmt.Errorf("further row %d: %w", i+1, driver.ErrOutdated)
		}
		all.WriteString(p.text)
	}
	for text := all.String(); text != ""; {
		var p tables.Property
		if p, text, err = readRecord(text); err != nil {
			return nil, err
		}
		first = append(first, p)
	}
	return first, nil
}
