package inspect

import (
	"time"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Report is the result of a run; the tags give the names in its JSON. A later version may add members; if it changes or removes any, Version
// changes.
type Report struct {
	Version  int       `json:"version"` // 1
	Table    string    `json:"table"`
	Began    time.Time `json:"began"`
	Elapsed  Seconds   `json:"elapsedSeconds"`
	Complete bool      `json:"complete"` // false if the run ended early: the counts are of the rows read
	Requests int64     `json:"requests"` // pages read
	// Warnings are what you must decide before you use the table, the most serious first.
	Warnings []string `json:"warnings"`

	Rows       int64      `json:"rows"`
	Bytes      int64      `json:"bytes"`  // by the service's formula for the size of an entity
	Oldest     time.Time  `json:"oldest"` // Oldest is the earliest and Newest the latest Timestamp of a row
	Newest     time.Time  `json:"newest"`
	Partitions Partitions `json:"partitions"`
	RowSizes   []Bucket   `json:"rowSizes"` // the rows by size in bytes
	// LargestRows are at most 10 rows, the largest first.
	LargestRows []LargeRow `json:"largestRows"`
	Library     Library    `json:"library"`
	// Garbled are rows with an unreadable value: reads return ErrGarbled. They count in Rows and their partitions, without a size, and otherwise
	// only in Type.Refused and Schema.Neither.
	Garbled         int64 `json:"garbled"`
	GarbledExamples []Key `json:"garbledExamples"` // at most 10
	// Lossy are rows with half of a surrogate pair, which is read as U+FFFD; a write is refused until a program has corrected it.
	Lossy         int64 `json:"lossy"`
	LossyExamples []Key `json:"lossyExamples"` // at most 10

	// Entities are the rows that are neither Garbled nor the library's; Properties describes their properties, by name.
	Entities   int64      `json:"entities"`
	Properties []Property `json:"properties"`
	// OtherProperties counts values of properties beyond Options.MaxProperties.
	OtherProperties int64 `json:"otherProperties"`

	Type   *Type   `json:"type,omitempty"`   // set by As and Repository
	Schema *Schema `json:"schema,omitempty"` // set by Repository
}

// Seconds is a duration.
type Seconds float64

// Key is the key of a row.
type Key struct {
	Partition string `json:"partition"`
	Row       string `json:"row"`
}

// Partitions describes how the rows are distributed over partitions.
type Partitions struct {
	Count int64 `json:"count"`
	// Exact reports that every count is exact. Otherwise Count is an estimate, with an error of about 2 %, and the Rows in Largest are an upper
	// bound (see Uncertain).
	Exact bool `json:"exact"`
	// Largest lists at most 10 partitions, the largest first.
	Largest []Partition `json:"largest"`
	// Rows distributes the partitions by their number of rows; empty unless Exact.
	Rows []Bucket `json:"rows"`
}

// Partition is one partition.
type Partition struct {
	Partition string `json:"partition"`
	// Rows is, unless Partitions.Exact, at most Uncertain too high.
	Rows      int64 `json:"rows"`
	Uncertain int64 `json:"uncertain"`
	Bytes     int64 `json:"bytes"` // of the rows that were certainly counted
}

// Bucket has the values from From and less than To, a power of two.
type Bucket struct {
	From  int64 `json:"from"`
	To    int64 `json:"to"`
	Count int64 `json:"count"`
}

// LargeRow is a row and its size.
type LargeRow struct {
	Key
	Bytes int64 `json:"bytes"`
}

// Library counts the rows that this library has added beside entities: 0 in a table of other programs.
type Library struct {
	Copies        int64 `json:"copies"`        // indexes and other patterns in their entities' partitions
	FurtherRows   int64 `json:"furtherRows"`   // of entities that are spread over several rows
	OutsideCopies int64 `json:"outsideCopies"` // of entities in other partitions or tables
	Shared        int64 `json:"shared"`        // of several entities, such as lists and counts
	Entities      int64 `json:"entities"`      // among Report.Entities, those that a repository has written
}

// rows is the sum without Entities.
func (l *Library) rows() int64 {
	return l.Copies + l.FurtherRows + l.OutsideCopies + l.Shared
}

// Property describes one property over all entities.
type Property struct {
	Name    string      `json:"name"`
	Rows    int64       `json:"rows"`   // entities that have it
	Absent  int64       `json:"absent"` // entities that do not
	Types   []TypeCount `json:"types"`  // the most frequent first
	Bytes   int64       `json:"bytes"`  // of all its values, including names
	Largest int64       `json:"largest"`
}

// TypeCount is how many values of a property have a type.
type TypeCount struct {
	Type string `json:"type"` // such as "Edm.Int64"
	Rows int64  `json:"rows"`
}

// Type reports how a struct would read the entities.
type Type struct {
	Name string `json:"name"`
	// Read counts the entities that the struct can read, Refused the others, for which a repository returns an error with the key.
	Read    int64 `json:"read"`
	Refused int64 `json:"refused"`
	// Problems say why entities are refused. There are at most 200; OtherProblems counts the rest.
	Problems      []Problem `json:"problems"`
	OtherProblems int64     `json:"otherProblems"`
	// Zero lists the fields that would get their zero value because rows lack the property, and that the next Replace would store: none that is a
	// pointer or a []byte, or tagged omitempty or omitzero.
	Zero []ZeroField `json:"zero"`
	// Unknown lists the properties without a field, nor one tagged rest: a Replace would remove them.
	Unknown []UnknownProperty `json:"unknown"`
	// Rest reports that the struct has a field tagged rest.
	Rest bool `json:"rest"`
}

// Problem is one reason why a struct does not read rows.
type Problem struct {
	Property string `json:"property"`
	Stored   string `json:"stored"` // type of the stored value
	Reason   string `json:"reason"`
	Rows     int64  `json:"rows"`
	Examples []Key  `json:"examples"` // at most 10
}

// ZeroField is a field whose property some entities lack.
type ZeroField struct {
	Field    string `json:"field"`
	Property string `json:"property"`
	Absent   int64  `json:"absent"` // entities without the property
	// Refused reports that the zero value cannot be stored, such as that of time.Time: a Replace returns ErrInvalid.
	Refused bool `json:"refused"`
}

// UnknownProperty is a property without a field.
type UnknownProperty struct {
	Property string `json:"property"`
	Rows     int64  `json:"rows"`
}

// Schema reports how a repository would read the rows.
type Schema struct {
	Repository string `json:"repository"`
	Own        int64  `json:"own"`     // entities of the repository
	Library    int64  `json:"library"` // rows that the library has added: see Library
	Neither    int64  `json:"neither"` // rows of other types or programs, or that the struct cannot read
	// OtherKeys counts entities for which Schema.Key returns another key than their row's: a write would make a second row.
	OtherKeys         int64 `json:"otherKeys"`
	OtherKeysExamples []Key `json:"otherKeysExamples"`
	// Sealed counts entities that only the repository can read, such as encrypted ones. They count as read; their index keys are not compared.
	Sealed int64 `json:"sealed"`
	// Refused lists why indexes refuse entities.
	Refused []RefusedEntity `json:"refused"`
	// TakenKeys lists at most 200 keys of copies that several rows want; OtherTakenKeys counts the rest. Rebuild writes one copy of each and
	// reports the other rows.
	TakenKeys       []TakenKey `json:"takenKeys"`
	OtherTakenKeys  int64      `json:"otherTakenKeys"`
	KeysNotCompared int64      `json:"keysNotCompared"` // beyond Options.MaxKeys, or beyond some 50,000 that two rows want
	Rebuild         Cost       `json:"rebuild"`
}

// RefusedEntity is why an index makes no copy.
type RefusedEntity struct {
	Pattern  string `json:"pattern"`
	Reason   string `json:"reason"`
	Rows     int64  `json:"rows"`
	Examples []Key  `json:"examples"`
}

// TakenKey is a key that several rows want.
type TakenKey struct {
	Patterns []string `json:"patterns"` // whose copies want the key; "" for a row that has it
	Table    string   `json:"table"`
	Key      Key      `json:"key"`
	Wanted   int64    `json:"wanted"` // rows that want it
	By       []Key    `json:"by"`     // at most 10
}

// Cost is the requests of a Rebuild of the table as it is, and their price. Least assumes that rows which lie together are processed together, Most
// that every entity is alone; neither includes conflicts and retries.
type Cost struct {
	Fill  int64    `json:"fill"` // that lack copies or list entries
	Least Requests `json:"least"`
	Most  Requests `json:"most"`
	// Prices are those used for the sums.
	Prices Prices `json:"prices"`
}

// Requests are numbers of requests, and their price.
type Requests struct {
	Table int64   `json:"table"`
	Queue int64   `json:"queue"`
	Price float64 `json:"price"` // in Prices.Currency
}

// All returns the number of requests.
func (r Requests) All() int64 { return r.Table + r.Queue }

func keyOf(k tables.Key) Key { return Key{Partition: k.Partition, Row: k.Row} }
