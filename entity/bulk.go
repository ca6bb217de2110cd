package entity

// BulkVerb is what a bulk write does with each entity.
type BulkVerb uint8

// The verbs of BulkNonAtomic.
const (
	// BulkInsert adds entities that must not exist; with SkipExisting it skips those that do.
	BulkInsert BulkVerb = iota
	// BulkReplace overwrites entities that were read, each under its ETag.
	BulkReplace
	// BulkMerge merges BulkOptions.Properties of entities that were read, each under its ETag.
	BulkMerge
	// BulkUpsert inserts entities, or overwrites them whatever their version. A Repository reads the stored entities
	// first.
	BulkUpsert
	// BulkUpsertMerge inserts rows, or merges into them whatever their version. Only Rows supports BulkUpsertMerge,
	// since what patterns write depends on the whole entity.
	BulkUpsertMerge
	// BulkDelete deletes entities that were read, each under its ETag.
	BulkDelete
)

// BulkOptions are the options of BulkNonAtomic of Rows and of Repository; nil is the same as the zero value.
type BulkOptions struct {
	// Verb is what BulkNonAtomic does with each entity (default BulkInsert).
	Verb BulkVerb
	// Properties are the names of the properties that BulkMerge and BulkUpsertMerge write (default all), each of which must
	// have a value, as with Rows.Merge. With any other verb it must be nil.
	Properties []string
	// Concurrency is the maximum number of transactions in flight (default 8). A partition has only one transaction in
	// flight at a time, so its entities are written in the order of the sequence.
	Concurrency int
	// RowsPerSecond limits how many rows the job reads and writes in tables in a second, on average (default 0: no limit), to leave
	// the throughput of the tables to other programs. The job never waits within a change: a change that exceeds the limit delays
	// the next one.
	RowsPerSecond int
	// Resume is Report.Resume of an earlier run over the same entities in the same order: the number of entities to skip at
	// the beginning of the sequence, as decimal digits.
	Resume string
	// SkipExisting makes BulkInsert count an entity that already exists as done, whoever inserted it. A run that resumes an earlier
	// one needs it: the earlier run may have written entities after its Resume. The other verbs ignore it.
	SkipExisting bool
	// Refused is called with the error for each entity that cannot be written: Error.Change is its position in the
	// sequence, from 1, and Error.Key names it. Calls do not overlap. If Refused returns nil, the entity counts in
	// Report.Failed and the run continues; if Refused returns an error, the run ends with that error. A nil Refused
	// ends the run with the first such error. The other entities of its transaction are written in each case.
	Refused func(*Error) error
	// Progress is called after each committed transaction, one call at a time. A slow call delays the other
	// transactions.
	Progress func(BulkReport)
}
