package encryption

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
)

const tagTable = "table"

// The values of the tag driver.EncryptTag.
const (
	tagEncrypt = "true"
	tagSign    = "sign"
)

// taggedProperties lists the properties whose fields have the tag, by its value. It refuses a tag that would
// have no effect, since the property would then be stored in plaintext.
func taggedProperties(t reflect.Type) (map[string][]string, error) {
	tagged := map[string][]string{}
	var names []string
	visible := map[string]bool{}
	for _, field := range reflect.VisibleFields(t) {
		visible[fmt.Sprint(field.Index)] = true
		value, err := tagOf(t, field)
		if err != nil {
			return nil, err
		}
		if value == "" {
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get(tagTable), ",")
		name = cmp.Or(name, field.Name)
		unstored := name == "-" || !field.IsExported() || options == "rest" || field.Anonymous && field.Tag.Get(tagTable) == ""
		if unstored || name == "PartitionKey" || name == "RowKey" || name == "Timestamp" {
			return nil, fmt.Errorf("field %s of %s has the tag but is not stored as a property of its own; remove the tag", field.Name, t)
		}
		if slices.Contains(names, name) {
			return nil, fmt.Errorf("two fields of %s are stored as property %s; rename one in its tag", t, name)
		}
		names = append(names, name)
		tagged[value] = append(tagged[value], name)
	}
	if err := checkNested(t, nil, visible, nil); err != nil {
		return nil, err
	}
	slices.Sort(tagged[tagEncrypt])
	slices.Sort(tagged[tagSign])
	return tagged, nil
}

// tagOf returns tagEncrypt, tagSign, or "" if the field has neither.
func tagOf(t reflect.Type, field reflect.StructField) (string, error) {
	switch value, tagged := field.Tag.Lookup(driver.EncryptTag); {
	case !tagged || value == "false":
		return "", nil
	case value == tagEncrypt || value == tagSign:
		return value, nil
	default:
		return "", fmt.Errorf("field %s of %s has the tag %s:%q; it must be true, sign or false", field.Name, t, driver.EncryptTag, value)
	}
}

// checkNested refuses tags on fields that do not become properties: a field that another field hides, or a
// field inside of a value that one property stores.
func checkNested(t reflect.Type, index []int, visible map[string]bool, path []reflect.Type) error {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map {
		t, index = t.Elem(), nil
	}
	if t.Kind() != reflect.Struct || slices.Contains(path, t) {
		return nil
	}
	path = append(path, t)
	for i := range t.NumField() {
		field := t.Field(i)
		at := append(slices.Clone(index), i)
		_, named := field.Tag.Lookup(tagTable)
		top := len(path) == 1
		property := top || index != nil && visible[fmt.Sprint(at)]
		if value, err := tagOf(t, field); err != nil || value != "" && !property {
			return fmt.Errorf("field %s of %s has the tag but is not a property of its own (%v); remove the tag", field.Name, t, err)
		}
		if !field.Anonymous || named {
			at = nil // the fields below do not become properties of their own
		}
		inner := field.Type
		if at != nil && inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if err := checkNested(inner, at, visible, path); err != nil {
			return err
		}
	}
	return nil
}
