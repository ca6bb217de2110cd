// Package ownrows decides which rows of a table are entities of a repository, by its schema: a span of row keys, a function of the key, and
// a condition on properties. Rows that the library has added beside entities are recognized by their own properties, not here.
package ownrows

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/odata"
	"github.com/tablepatterns/tablepatterns/internal/rows"
)

// MaxComparisons limits the comparisons of a schema's condition. The service allows 15 comparisons in a filter;
// a job needs up to 5 of them for the range of keys that a reader scans, and up to 5 for a condition of its
// own.
const MaxComparisons = 5

// Rows says which rows are the entities' own. The zero value selects all rows.
type Rows struct {
	Prefix string                // of row keys; Delimit makes Span of it
	Span   compoundkey.Span      // of row keys
	Mine   func(entity.Key) bool // nil for any key
	Where  entity.Condition      // the zero Condition for any properties

	EmptyPartition bool // allows the empty partition key

	where odata.Expr
}

// Delimit sets the span of a schema with a prefix.
func (r *Rows) Delimit() error {
	if r.Prefix == "" {
		return nil
	}
	if r.Span != (compoundkey.Span{}) {
		return errors.New("Schema.Prefix and Schema.Rows are both set; set Prefix, or Rows for row keys that do not consist of a prefix, \"_\" and further parts")
	}
	r.Span = compoundkey.Starting(r.Prefix)
	if err := r.Span.Err(); err != nil {
		return fmt.Errorf("Schema.Prefix: %w", err)
	}
	return nil
}

// Compile checks the span and the condition. names are the properties that the type can store, nil for any;
// filterable returns an error for a property that is not stored unchanged.
func (r *Rows) Compile(codec *core.Codec, names []string, filterable func(property string) error) (err error) {
	if err := r.Span.Err(); err != nil {
		return fmt.Errorf("Schema.Rows: %w", err)
	}
	if r.Span.Empty() {
		return errors.New("Schema.Rows contains no key; give the range of the entities' row keys")
	}
	if r.where, err = codec.Condition(r.Where); err != nil {
		return fmt.Errorf("Schema.Where: %w", err)
	}
	if r.where == nil {
		return nil
	}
	if n := odata.Comparisons(r.where); n > MaxComparisons {
		return fmt.Errorf("Schema.Where has %d comparisons; it must have at most %d", n, MaxComparisons)
	}
	for _, name := range odata.Properties(r.where) {
		switch {
		case name == "PartitionKey", name == "RowKey":
		case name == "Timestamp":
			return errors.New("Schema.Where compares Timestamp, which every write changes; compare a property that an entity keeps")
		case names != nil && !slices.Contains(names, name):
			return fmt.Errorf("Schema.Where compares %s, for which %s has no field, so no insert could meet it; add the field", name, codec.Type())
		default:
			if err := filterable(name); err != nil {
				return fmt.Errorf("Schema.Where: %w", err)
			}
		}
	}
	return nil
}

// Declared reports whether the schema distinguishes the entities from other rows at all.
func (r *Rows) Declared() bool { return r.Keyed() || r.where != nil }

// Keyed reports whether the schema distinguishes the entities from other rows by their keys.
func (r *Rows) Keyed() bool { return r.Span != compoundkey.Span{} || r.Mine != nil }

// Chosen reports whether the schema distinguishes the entities from other rows by more than the span.
func (r *Rows) Chosen() bool { return r.Mine != nil || r.where != nil }

// Equal reports whether two schemas select the same rows. It cannot compare the functions Mine, only whether
// both are set.
func (r *Rows) Equal(o *Rows) bool {
	return r.Span == o.Span && (r.Mine == nil) == (o.Mine == nil) && reflect.DeepEqual(r.where, o.where)
}

// String identifies the rows that the schema selects. It cannot tell functions Mine apart.
func (r *Rows) String() string {
	var where []byte
	if r.where != nil {
		where, _ = odata.Append(nil, r.where) // Compile has checked it
	}
	return fmt.Sprintf("%q %q %t %s", r.Span.From(), r.Span.To(), r.Mine != nil, where)
}

// Keeps reports whether an entity of the repository can have a key, by Span and Mine.
func (r *Rows) Keeps(key entity.Key) bool {
	return r.Span.Contains(key.Row) && (r.Mine == nil || r.Mine(key))
}

// Meets reports whether the properties of an entity's own row meet the condition.
func (r *Rows) Meets(key entity.Key, p entity.Properties) bool {
	return r.where == nil || core.Meets(r.where, key, p)
}

var errEmptyPartition = errors.New("the partition key is empty; set the field from which Schema.Key makes it, or set Schema.AllowEmptyPartition")

// CheckPartition returns an error for an empty partition key that the schema does not allow.
func (r *Rows) CheckPartition(partition string) error {
	if partition == "" && !r.EmptyPartition {
		return errEmptyPartition
	}
	return nil
}

// Check returns an error for an entity that no query of the repository would find, or without a partition key.
func (r *Rows) Check(key entity.Key, p entity.Properties) error {
	switch {
	case key.Partition == "" && !r.EmptyPartition:
		return errs.Invalid("", errEmptyPartition)
	case !r.Span.Contains(key.Row):
		if err := rows.CheckKeys(key.Partition, key.Row); err != nil {
			return errs.Invalid("", err) // report the illegal key, which is more specific than a key outside of the span
		}
		return errs.Invalidf("", "the row key from Schema.Key does not begin with Schema.Prefix and \"_\", or is not in Schema.Rows, so no query would find the entity; correct Key or Prefix")
	case r.Mine != nil && !r.Mine(key):
		return errs.Invalidf("", "Schema.Mine refuses the key from Schema.Key, so no query would find the entity; correct Key or Mine")
	case !r.Meets(key, p):
		return errs.Invalidf("", "the entity does not meet Schema.Where, so no query would find it; set %v as Where requires", odata.Properties(r.where))
	}
	return nil
}

// Conditions returns the conditions to send with queries of the entities' own rows.
func (r *Rows) Conditions() []entity.Condition {
	if r.where == nil {
		return nil
	}
	return []entity.Condition{r.Where}
}

// Properties returns the properties that the condition compares, without the keys.
func (r *Rows) Properties() []string {
	if r.where == nil {
		return nil
	}
	return slices.DeleteFunc(odata.Properties(r.where), func(name string) bool { return name == "PartitionKey" || name == "RowKey" })
}
