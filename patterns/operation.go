package patterns

import (
	"crypto/rand"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// operation is one row of a write on its way to the service. Everything that is ever written to a table is a list of
// operations given to Table.commit.
type operation struct {
	verb       wire.Verb
	key        Key
	ifMatch    azcore.ETag // "" for an insert or an upsert
	properties Properties

	incarnation string // the seven are written with the row when not empty or nil
	copies      string
	primary     *string
	shared      string
	layout      string
	outside     outsideFacts
	carried     Properties // system properties of a later version of the library
	pattern     string     // whose row it is, "" for the entity's own
	role        role
	owner       azcore.ETag // of roleStale: the entity's as it had the row
}

// role says what a failure of the operation means.
type role uint8

const (
	roleEntity  role = iota
	roleUnique       // a row that must be new: taken is ErrDuplicate
	roleStale        // the removal of a row that may be gone already
	roleShared       // a row that other entities change as well: conflict starts the change over
	roleBeside       // a row of Apply's caller, who decides what a conflict means
	roleAdopted      // a copy that was left behind, taken over under its ETag: conflict starts the change over
)

// encoded are the operations of a write, ready to be sent.
type encoded struct {
	operations []wire.Operation
	writeID    string
	marked     []bool // rows that carry the write id
}

// newWriteID makes an id that no other write has.
func newWriteID() string { return rand.Text() }

// encode checks every operation and encodes its row. The write id is left out of a row that is full without it: its
// outcome cannot be resolved then, and an ambiguous answer stays ErrUnknownOutcome.
func encode(table string, operations []operation, writeID string) (*encoded, *Error) {
	out := &encoded{operations: make([]wire.Operation, len(operations)), marked: make([]bool, len(operations)), writeID: writeID}
	var buffer []byte
	for i := range operations {
		op := &operations[i]
		out.operations[i] = wire.Operation{
			Verb:    op.verb,
			Address: wire.Address{Table: table, PartitionKey: op.key.Partition, RowKey: op.key.Row},
			IfMatch: string(op.ifMatch),
		}
		row, size, err := op.row()
		if err != nil {
			e := invalid("", err)
			e.Key, e.Pattern, e.Change = loggable(op.key), op.pattern, i+1
			return nil, e
		}
		if op.verb == wire.VerbDelete {
			continue
		}
		// The stored size counts two bytes for a character, which leaves room for the annotations of most rows.
		if room := size + 128; cap(buffer)-len(buffer) < room {
			buffer = make([]byte, 0, room*min(len(operations)-i, 16))
		}
		start := len(buffer)
		buffer, out.marked[i] = appendRow(buffer, op.key, row, size, out.writeID)
		out.operations[i].Body = buffer[start:len(buffer):len(buffer)]
	}
	return out, nil
}

// loggable drops a key that cannot be a key: it may be a whole document.
func loggable(key Key) Key {
	if key.check() != nil {
		return Key{}
	}
	return key
}

// row returns the properties to write and the size of the row, and refuses what the service would not store.
func (op *operation) row() (row Properties, size int, err error) {
	if op.verb == wire.VerbDelete {
		return nil, 0, op.key.check()
	}
	row = op.withSystem()
	size, err = checkRow(op.key, row)
	if err == nil && op.incarnation != "" {
		err = checkRoom(row, size)
	}
	return row, size, err
}

// checkRoom refuses a repository's row that is full without the write id, by which copies are compared with their
// entity. Other rows do without.
func checkRoom(row Properties, size int) error {
	if len(row) >= MaxProperties {
		return sizeOf("an entity", len(row)+1, MaxProperties, "properties")
	}
	if size += edm.PropertySize(propertyWriteID, edm.String(anyWriteID)); size > MaxEntitySize {
		return sizeOf("an entity", size, MaxEntitySize, "bytes")
	}
	return nil
}

// withSystem is the row with the system properties that it cannot do without.
func (op *operation) withSystem() Properties {
	if op.incarnation == "" && op.copies == "" && op.primary == nil && op.shared == "" && op.layout == "" && !op.outside.is && len(op.carried) == 0 {
		return op.properties
	}
	all := make(Properties, 0, len(op.properties)+len(op.carried)+3)
	all = append(append(all, op.properties...), op.carried...)
	if op.incarnation != "" {
		all = append(all, Property{propertyIncarnation, edm.String(op.incarnation)})
	}
	if op.copies != "" || op.incarnation != "" && op.verb == wire.VerbMerge {
		// A merge without copies says so: the list that is stored would lie from now on.
		all = append(all, Property{propertyCopies, edm.String(op.copies)})
	}
	if op.primary != nil {
		all = append(all, Property{propertyPrimary, edm.String(*op.primary)})
	}
	if op.shared != "" {
		all = append(all, Property{propertyShared, edm.String(op.shared)})
	}
	if op.layout != "" {
		all = append(all, Property{propertyLayout, edm.String(op.layout)})
	}
	return op.outside.append(all)
}

// appendRow appends the JSON of a row of the given size, with the write id if it has room for it.
func appendRow(dst []byte, key Key, row Properties, size int, writeID string) (_ []byte, marked bool) {
	dst = append(dst, `{"PartitionKey":`...)
	dst = edm.AppendQuoted(dst, key.Partition)
	dst = append(dst, `,"RowKey":`...)
	dst = edm.AppendQuoted(dst, key.Row)
	for i := range row {
		dst = edm.AppendProperty(append(dst, ','), row[i].Name, row[i].Value)
	}
	id := edm.String(writeID)
	if len(row) < MaxProperties && size+edm.PropertySize(propertyWriteID, id) <= MaxEntitySize {
		dst = edm.AppendProperty(append(dst, ','), propertyWriteID, id)
		marked = true
	}
	return append(dst, '}'), marked
}
