package request

import (
	"strings"
	"unicode/utf8"

	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/entity"
)

// Kind is the kind of resource that a URL path of the table service names.
type Kind uint8

// The kinds.
const (
	ToService   Kind = iota // /
	ToTables                // /Tables
	ToTable                 // /Tables('x')
	ToEntitySet             // /x and /x()
	ToEntity                // /x(PartitionKey='p',RowKey='r')
	ToBatch                 // /$batch
)

// Address is a parsed URL path.
type Address struct {
	Kind           Kind
	Table          string
	Partition, Row string
}

// ParseAddress parses a URL path without percent-encoding. A single quote within a key is doubled; a quote that is not
// doubled ends the key, and text after it makes the path invalid.
func ParseAddress(path string) (Address, *protocol.Fault) {
	path = strings.TrimPrefix(path, "/")
	if !utf8.ValidString(path) {
		return Address{}, protocol.InvalidSyntax()
	}
	switch path {
	case "":
		return Address{Kind: ToService}, nil
	case "$batch":
		return Address{Kind: ToBatch}, nil
	}
	name, keys, hasKeys := strings.Cut(path, "(")
	if hasKeys {
		var ok bool
		if keys, ok = strings.CutSuffix(keys, ")"); !ok {
			return Address{}, protocol.InvalidSyntax()
		}
	}
	if protocol.SameName(name, "Tables") {
		return parseTablesAddress(keys, hasKeys)
	}
	if fault := CheckTableName(name); fault != nil {
		return Address{}, fault
	}
	if keys == "" {
		return Address{Kind: ToEntitySet, Table: name}, nil
	}
	a := Address{Kind: ToEntity, Table: name}
	var hasPK, hasRK bool
	for {
		property, key, rest, ok := cutKey(keys)
		switch {
		case !ok:
			return Address{}, protocol.InvalidSyntax()
		case property == entity.PartitionKey && !hasPK:
			a.Partition, hasPK = key, true
		case property == entity.RowKey && !hasRK:
			a.Row, hasRK = key, true
		default:
			return Address{}, protocol.InvalidSyntax()
		}
		if rest == "" {
			break
		}
		if keys, ok = strings.CutPrefix(rest, ","); !ok {
			return Address{}, protocol.InvalidSyntax()
		}
	}
	if !hasPK || !hasRK {
		return Address{}, protocol.InvalidSyntax()
	}
	return a, entity.CheckKeys(a.Partition, a.Row)
}

func parseTablesAddress(key string, hasKey bool) (Address, *protocol.Fault) {
	if !hasKey || key == "" {
		return Address{Kind: ToTables}, nil
	}
	key = strings.TrimPrefix(key, "TableName=")
	table, rest, ok := cutQuoted(key)
	if !ok || rest != "" {
		return Address{}, protocol.InvalidSyntax()
	}
	return Address{Kind: ToTable, Table: table}, CheckTableName(table)
}

// cutKey removes Name='value' from the beginning of text.
func cutKey(text string) (property, key, rest string, ok bool) {
	property, text, ok = strings.Cut(text, "=")
	if !ok {
		return "", "", "", false
	}
	key, rest, ok = cutQuoted(strings.TrimLeft(text, " "))
	return strings.TrimSpace(property), key, strings.TrimSpace(rest), ok
}

// cutQuoted removes a literal in single quotes from the beginning of text.
func cutQuoted(text string) (literal, rest string, ok bool) {
	text, ok = strings.CutPrefix(text, "'")
	if !ok {
		return "", "", false
	}
	end := strings.IndexByte(text, '\'')
	if end >= 0 && !strings.HasPrefix(text[end:], "''") { // the common case, without a quote in the literal
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
