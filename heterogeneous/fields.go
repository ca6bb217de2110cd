package heterogeneous

import (
	"cmp"
	"reflect"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/tables"
)

// setSystem sets an entity's fields PartitionKey, RowKey and Timestamp, if it has them. A Codec sets only properties.
func setSystem(v any, key tables.Key, at time.Time) {
	if bag, ok := v.(*tables.Entity); ok {
		bag.Key, bag.Timestamp = key, at
		return
	}
	s := reflect.ValueOf(v).Elem()
	for _, field := range reflect.VisibleFields(s.Type()) {
		if !field.IsExported() || !flat(s.Type(), field.Index) {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("table"), ",")
		name = cmp.Or(name, field.Name)
		switch {
		case name == "PartitionKey" && field.Type.Kind() == reflect.String:
			settable(s, field.Index).SetString(key.Partition)
		case name == "RowKey" && field.Type.Kind() == reflect.String:
			settable(s, field.Index).SetString(key.Row)
		case name == "Timestamp" && field.Type == reflect.TypeFor[time.Time]():
			settable(s, field.Index).Set(reflect.ValueOf(at))
		}
	}
}

// flat reports whether a field is stored as one of the struct's own properties: it is a field of the struct, or is promoted
// from embedded structs that are neither Meta nor stored under a name.
func flat(t reflect.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		embedded := t.Field(i)
		if _, tagged := embedded.Tag.Lookup("table"); tagged || embedded.Type == reflect.TypeFor[tables.Meta]() {
			return false
		}
		t = embedded.Type
	}
	return true
}

// settable is FieldByIndex, but allocates nil embedded structs on the path.
func settable(s reflect.Value, index []int) reflect.Value {
	for _, i := range index {
		if s.Kind() == reflect.Pointer {
			if s.IsNil() {
				s.Set(reflect.New(s.Type().Elem()))
			}
			s = s.Elem()
		}
		s = s.Field(i)
	}
	return s
}
