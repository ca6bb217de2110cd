package tables

import (
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/rowwriter"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// RawWrite is one row of a write on its way to the service. Everything that is ever written to a table is a list of them.
type RawWrite struct {
	Verb       wire.Verb
	Key        Key
	IfMatch    azcore.ETag // "" for an insert or an upsert
	Properties Properties
	System     Properties // the library's own, without the write ID
	// Marked says that the row must have room for the write ID, by which copies are compared with their entity. Other
	// rows are written without it if they are full; then a lost response leaves the outcome unknown.
	Marked bool
	// Plain says that Properties is the whole row, with the library's own properties: it is written as it is, without the write ID.
	Plain bool
	// Meaning translates a failure of this row for the caller; nil for a plain row.
	Meaning Meaning
}

// Meaning translates the failure of a row for the caller: which entity or pattern the row belongs to, and what a
// taken key means.
type Meaning interface{ Explain(e *Error) }

// explain applies the row's Meaning to its failure.
func (w *RawWrite) explain(e *Error) *Error {
	if w.Meaning != nil {
		w.Meaning.Explain(e)
	}
	return e
}

// encoded are the writes of a transaction, ready to be sent.
type encoded struct {
	operations []wire.Operation
	writeID    string
	marked     []bool // rows that carry the write ID
}

// encode checks every row and encodes it.
func encode(table string, writes []RawWrite, writeID string) (*encoded, *Error) {
	out := &encoded{operations: make([]wire.Operation, len(writes)), marked: make([]bool, len(writes)), writeID: writeID}
	var buffer []byte
	for i := range writes {
		w := &writes[i]
		out.operations[i] = wire.Operation{
			Verb:    w.Verb,
			Address: wire.Address{Table: table, PartitionKey: w.Key.Partition, RowKey: w.Key.Row},
			IfMatch: string(w.IfMatch),
		}
		size, e := w.Check()
		if e != nil {
			e.Change = i + 1
			return nil, e
		}
		if w.Verb == wire.VerbDelete {
			continue
		}
		// The stored size counts two bytes for a character, which leaves room for the annotations of most rows.
		if room := size + 128; cap(buffer)-len(buffer) < room {
			buffer = make([]byte, 0, room*min(len(writes)-i, 16))
		}
		start := len(buffer)
		id := out.writeID
		if w.Plain {
			id = ""
		}
		buffer, out.marked[i] = w.row().Append(buffer, accessProperty, size, id)
		out.operations[i].Body = buffer[start:len(buffer):len(buffer)]
	}
	return out, nil
}

// Loggable returns the zero Key for an illegal key, which could be a whole document.
func Loggable(_ rows.Pass, key Key) Key {
	if rows.CheckKeys(key.Partition, key.Row) != nil {
		return Key{}
	}
	return key
}

// Check returns the size of the row in bytes, by the service's formula, and refuses a row that the service would not store.
func (w *RawWrite) Check() (size int, e *Error) {
	size, err := w.check()
	if err == nil {
		return size, nil
	}
	e = Invalid("", err)
	e.Key = Loggable(rows.Open, w.Key)
	return 0, w.explain(e)
}

func (w *RawWrite) check() (size int, err error) {
	if w.Verb == wire.VerbDelete {
		return 0, rows.CheckKeys(w.Key.Partition, w.Key.Row)
	}
	return w.row().Check(accessProperty, w.Marked)
}

func (w *RawWrite) row() rowwriter.Row[Property] {
	return rowwriter.Row[Property]{Partition: w.Key.Partition, Row: w.Key.Row, Properties: w.Properties, System: w.System}
}
