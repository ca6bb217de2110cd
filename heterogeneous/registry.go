package heterogeneous

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// AnyType is a *Type[T] with any T.
type AnyType interface {
	fmt.Stringer

	attached() (*tables.Table, bool)
	goType() reflect.Type
	versions() (name string, oldest, newest int)
	byKey() bool
	span() compoundkey.Span
	current(p tables.Properties) bool
	filterable(property string) bool
	whole() bool
	alone() bool

	decode(r *row, p tables.Properties) (any, error)
	readMany(ctx context.Context, keys []tables.Key) (map[tables.Key]any, []error, error)
	merge(ctx context.Context, key tables.Key, change func(*tables.Entity) error) error
	remove(ctx context.Context, v any) error
}

// Registry knows the types of one table, each with its repository. It returns each entity as a *T of one of
// the types, or as a property bag. It has no state that changes, and is safe for concurrent use.
type Registry struct {
	table *tables.Table
	types []AnyType
	rows  *patterns.Repository[row]
	bags  *tables.Rows[row]
}

// NewRegistry returns a registry of types, each of which must have been given to a repository on the table
// before. It returns tables.ErrWiring for two types with the same version name, the same keys, or the same Go
// type. Requests: 0.
func NewRegistry(table *tables.Table, types ...AnyType) (*Registry, error) {
	r := &Registry{table: table, types: slices.Clone(types)}
	if err := r.check(); err != nil {
		return nil, errs.Wiringf("NewRegistry", "", "%w", err)
	}
	var err error
	// This handle of the table belongs to no Store: a Store would refuse a repository whose rows also belong to other
	// repositories.
	if r.rows, err = patterns.NewRepository(table.Account().Table(table.Name()), patterns.Schema[row]{Key: (*row).key, AllowEmptyPartition: true}, firstRows{r}); err != nil {
		return nil, err
	}
	r.bags, err = tables.RowsOf[row](table)
	return r, err
}

func (r *Registry) check() error {
	if r.table == nil {
		return errors.New("the table is nil; make it with Account.Table or Store.Table")
	}
	for i, t := range r.types {
		if v := reflect.ValueOf(t); !v.IsValid() || v.IsNil() {
			return fmt.Errorf("the type with index %d is nil; make it with NewType", i)
		}
		if table, ok := t.attached(); !ok || !table.Same(r.table) {
			return fmt.Errorf("type %s was not given to a repository on table %s; give it to NewRepository first", t, r.table.Name())
		}
		for _, other := range r.types[:i] {
			if err := collide(t, other); err != nil {
				return err
			}
		}
	}
	return nil
}

// collide returns an error if the rows or values of two types could not be distinguished.
func collide(a, b AnyType) error {
	name, oldest, newest := a.versions()
	otherName, otherOldest, otherNewest := b.versions()
	overlaps := name == otherName && oldest <= otherNewest && otherOldest <= newest
	switch {
	case overlaps && !a.byKey() && !b.byKey():
		return fmt.Errorf("%s and %s both declare the same version; give one another name or version", a, b)
	case a.goType() == b.goType():
		return fmt.Errorf("%s and %s both have the Go type %s; define a type of its own for each", a, b, a.goType())
	case (a.byKey() || b.byKey() || name != otherName) && a.span() != (compoundkey.Span{}) && b.span() != (compoundkey.Span{}) && a.span().Overlaps(b.span()):
		return fmt.Errorf("%s and %s have keys in common by their Schema.Prefix or Rows; give each a prefix of its own", a, b)
	}
	return nil
}

// Table returns the registry's table.
func (r *Registry) Table() *tables.Table { return r.table }

// TypeOf returns the Go type for a value of EntityType, or false if no registered type reads it.
func (r *Registry) TypeOf(entityType string) (reflect.Type, bool) {
	stored, ok := parseTag(entityType)
	if !ok {
		return nil, false
	}
	t := r.reader(stored)
	if t == nil {
		return nil, false
	}
	return t.goType(), true
}

// reader returns the type that can read an entity with this tag, or nil.
func (r *Registry) reader(stored tag) AnyType {
	for _, t := range r.types {
		name, oldest, newest := t.versions()
		if name == stored.name && oldest <= stored.version && stored.version <= newest && !t.byKey() {
			return t
		}
	}
	return nil
}

// resolve returns the type of a row, or nil if it is unknown. EntityType takes precedence over the key.
func (r *Registry) resolve(key tables.Key, p tables.Properties) AnyType {
	value := p.Get(EntityType)
	if !value.IsNull() {
		text, _ := value.Text()
		if stored, ok := parseTag(text); ok {
			return r.reader(stored)
		}
		return nil
	}
	for _, t := range r.types {
		span := t.span()
		if span == (compoundkey.Span{}) || !span.Contains(key.Row) {
			continue
		}
		if _, oldest, newest := t.versions(); oldest == newest {
			return t
		}
	}
	return nil
}

// typeOf returns the type to which a value belongs, or nil.
func (r *Registry) typeOf(v any) AnyType {
	for _, t := range r.types {
		if reflect.TypeOf(v) == reflect.PointerTo(t.goType()) {
			return t
		}
	}
	return nil
}

// row is an entity's own row, of any type.
type row struct {
	tables.Meta
	PartitionKey, RowKey string
	Properties           map[string]tables.Value `table:",rest"`
}

func (r *row) key() tables.Key { return tables.Key{Partition: r.PartitionKey, Row: r.RowKey} }

// take returns the row's properties, and whether it is the first of several rows.
func (r *row) take() (p tables.Properties, spread bool) {
	p = make(tables.Properties, 0, len(r.Properties))
	for name, value := range r.Properties {
		if name == spreadMark {
			spread = true
			continue
		}
		p = append(p, tables.Property{Name: name, Value: value})
	}
	return p, spread
}

// firstRows is a layout by which a repository reads the first row only of an entity that has several rows. It writes nothing.
type firstRows struct{ registry *Registry }

// spreadMark marks, in memory, an entity that has several rows. No stored property can have this name.
const spreadMark = " spread"

var errReadOnly = errors.New("the registry cannot write an entity; write it through the repository of its type")

// Attach implements patterns.Pattern.
func (f firstRows) Attach(driver.Host, *row) (driver.Implementation, error) {
	return driver.Implementation{Name: "any type", Layout: &driver.Layout{
		Split: func(tables.Properties) (*driver.LaidOut, error) { return nil, errReadOnly },
		// The result says that the row is one of several, so that it cannot be written alone.
		Versions: func(string) ([]string, error) { return []string{""}, nil },
		Rows:     func(string, []string) ([]int, error) { return nil, nil },
		Join: func(_ string, first tables.Properties, _ map[int]tables.Properties) (tables.Properties, error) {
			return append(first, tables.Property{Name: spreadMark, Value: tables.Boolean(true)}), nil
		},
		// A condition that does not find all entities of one type would make the query miss some.
		Filterable: func(property string) bool {
			return !slices.ContainsFunc(f.registry.types, func(t AnyType) bool { return !t.filterable(property) })
		},
	}}, nil
}

// unknown returns the bag of a row of an unknown type. If the entity has further rows, the bag's Meta says that the row cannot be
// written alone.
func (r *Registry) unknown(v *row) (*tables.Entity, error) {
	delete(v.Properties, spreadMark)
	bag, err := r.bags.Entity(v)
	if err != nil {
		return nil, err
	}
	bag.Timestamp = v.Timestamp
	return bag, nil
}

// garbled returns the error of a row that does not fit its type.
func (r *Registry) garbled(op string, key tables.Key, err error) error {
	return &tables.Error{Op: op, Table: r.table.Name(), Key: key, Kind: tables.ErrGarbled, Err: err}
}
