package simulator

import (
	"strings"
	"unicode/utf8"
)

// addressKind is what an address of the table service names.
type addressKind uint8

const (
	addressService   addressKind = iota // /
	addressTables                       // /Tables
	addressTable                        // /Tables('x')
	addressEntitySet                    // /x and /x()
	addressEntity                       // /x(PartitionKey='p',RowKey='r')
	addressBatch                        // /$batch
)

// address is a parsed address.
type address struct {
	kind   addressKind
	table  string
	pk, rk string
}

// parseAddress reads the path of an address, percent-encoding undone. A single quote inside of a key stands twice; one
// that does not ends the key there, and what follows is no address any more.
func parseAddress(path string) (address, *Fault) {
	path = strings.TrimPrefix(path, "/")
	if !utf8.ValidString(path) {
		return address{}, faultSyntax()
	}
	switch path {
	case "":
		return address{kind: addressService}, nil
	case "$batch":
		return address{kind: addressBatch}, nil
	}
	name, keys, hasKeys := strings.Cut(path, "(")
	if hasKeys {
		var ok bool
		if keys, ok = strings.CutSuffix(keys, ")"); !ok {
			return address{}, faultSyntax()
		}
	}
	if SameName(name, "Tables") {
		return parseTablesAddress(keys, hasKeys)
	}
	if fault := CheckTableName(name); fault != nil {
		return address{}, fault
	}
	if keys == "" {
		return address{kind: addressEntitySet, table: name}, nil
	}
	a := address{kind: addressEntity, table: name}
	var hasPK, hasRK bool
	for {
		property, key, rest, ok := cutKey(keys)
		switch {
		case !ok:
			return address{}, faultSyntax()
		case property == partitionKeyName && !hasPK:
			a.pk, hasPK = key, true
		case property == rowKeyName && !hasRK:
			a.rk, hasRK = key, true
		default:
			return address{}, faultSyntax()
		}
		if rest == "" {
			break
		}
		if keys, ok = strings.CutPrefix(rest, ","); !ok {
			return address{}, faultSyntax()
		}
	}
	if !hasPK || !hasRK {
		return address{}, faultSyntax()
	}
	return a, CheckKeys(a.pk, a.rk)
}

func parseTablesAddress(key string, hasKey bool) (address, *Fault) {
	if !hasKey || key == "" {
		return address{kind: addressTables}, nil
	}
	key = strings.TrimPrefix(key, "TableName=")
	table, rest, ok := cutQuoted(key)
	if !ok || rest != "" {
		return address{}, faultSyntax()
	}
	return address{kind: addressTable, table: table}, CheckTableName(table)
}

// cutKey takes Name='value' off the front of text.
func cutKey(text string) (property, key, rest string, ok bool) {
	property, text, ok = strings.Cut(text, "=")
	if !ok {
		return "", "", "", false
	}
	key, rest, ok = cutQuoted(strings.TrimLeft(text, " "))
	return strings.TrimSpace(property), key, strings.TrimSpace(rest), ok
}

// cutQuoted takes a literal in single quotes off the front of text.
func cutQuoted(text string) (literal, rest string, ok bool) {
	text, ok = strings.CutPrefix(text, "'")
	if !ok {
		return "", "", false
	}
	end := strings.IndexByte(text, '\'')
	if end >= 0 && !strings.HasPrefix(text[end:], "''") { // no quote inside: the common case
		return text[:end], text[end+1:], true
	}
	var b strings.Builder
	for end >= 0 {
		b.WriteString(text[:end])
		text = text[end+1:]
		if !strings.HasPrefix(text, "'") {
			return b.String(), text, true
		}
		b.WriteByte('\'')
		text = text[1:]
		end = strings.IndexByte(text, '\'')
	}
	return "", "", false
}
