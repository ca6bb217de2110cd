package patterns

import (
	"context"
	"iter"

	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/streams"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/bulk"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/jobs"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Insert adds an entity with all its rows. It returns ErrExists if an entity has this key, and ErrDuplicate,
// naming the index in Error.Pattern, if another entity owns one of its index keys; then nothing is written.
// Requests: 1, and those of patterns that read other rows or have effects outside of the partition.
func (r *Repository[T]) Insert(ctx context.Context, v *T) error {
	return r.of().Insert(ctx, v)
}

// Replace overwrites the entity under the ETag with which it was read. It returns ErrConflict if the entity has
// changed since. The entity's key cannot change; its index keys can. Requests: those of Insert, and 1 more for
// an entity that was read through an index.
func (r *Repository[T]) Replace(ctx context.Context, v *T) error {
	return r.of().Replace(ctx, v)
}

// ReplaceUnconditional overwrites the stored entity whatever its version; concurrent changes are lost. It
// returns ErrNotFound if there is none. Requests: those of Insert, and 1 more; again after each conflict.
func (r *Repository[T]) ReplaceUnconditional(ctx context.Context, v *T) error {
	return r.of().ReplaceUnconditional(ctx, v)
}

// Upsert inserts the entity or overwrites it whatever its version; concurrent changes are lost. It reads the
// stored entity first to know which index rows to remove.
//
// Like ReplaceUnconditional and DeleteUnconditional, it also replaces a row that cannot be decoded, with the copies whose
// keys follow from its other properties; Repair removes the copies that remain. Requests: those of Insert, and 1 more;
// again after each conflict, and for the copies of a row that cannot be decoded.
func (r *Repository[T]) Upsert(ctx context.Context, v *T) error {
	return r.of().Upsert(ctx, v)
}

// Update reads an entity, calls change to edit it and replaces it. After a conflict it reads the entity again
// and retries, up to Schema.MaxAttempts attempts in all. change may run several times and must have no side
// effects; if it returns an error, Update returns it and writes nothing. Update returns the entity as written.
// Requests: those of Insert, and 1 more; again after each conflict.
func (r *Repository[T]) Update(ctx context.Context, key tables.Key, change func(*T) error) (*T, error) {
	var edit func(any) error
	if change != nil {
		edit = func(v any) error { return change(v.(*T)) }
	}
	return driver.Got[T](r.of().Update(ctx, key, edit))
}

// Delete removes the entity with all its rows. It returns ErrConflict if the entity has changed since it was
// read. Requests: those of Insert, and 1 more for an entity that was read through an index or a projection.
func (r *Repository[T]) Delete(ctx context.Context, v *T) error {
	return r.of().Delete(ctx, v)
}

// DeleteUnconditional removes the entity whatever its version. It returns ErrNotFound if there is none.
// Requests: those of Insert, and 1 more; again after each conflict.
func (r *Repository[T]) DeleteUnconditional(ctx context.Context, key tables.Key) error {
	return r.of().DeleteUnconditional(ctx, key)
}

// Merge writes the named properties, all that T stores if none is named, and does not change the entity's other
// properties. It returns ErrConflict if the entity has changed since it was read, and ErrInvalid for a property
// without a value, which a merge cannot remove: see tables.Rows.Merge. Name the properties if the entity was read
// through a projection. v also gets the properties that patterns complete. Merge returns ErrInvalid if a pattern, such as encryption, cannot store
// some properties without the others. Requests: those of Insert, and 1 more to read the whole entity, on which
// its copies depend; 1 in all for an entity that was read whole in a repository without patterns.
func (r *Repository[T]) Merge(ctx context.Context, v *T, properties ...string) error {
	return r.of().Merge(ctx, v, properties...)
}

// BulkNonAtomic changes any number of entities with one verb, together with all rows that their patterns write.
// Each entity is changed completely or not at all. Several entities of one partition share a transaction. The
// sequence as a whole is not atomic. See tables.Rows.BulkNonAtomic, also for Resume, SkipExisting and the use
// of memory.
//
// BulkReplace, BulkMerge and BulkDelete change entities that were read, each under its ETag; for an entity that
// was not read they return ErrInvalid. BulkUpsert reads the entities of a transaction first.
// BulkOptions.Refused gets the entities that cannot be written, for example because another writer has changed
// them; the other entities of the same transaction are written. If an insert needs an index key under which an
// orphaned copy is stored (its entity does not exist, or does not have the key), the insert claims the copy.
// Several changes of one entity are made in the order of the sequence; entities that exchange a unique key need
// a Transaction.
//
// If patterns have effects outside of the partition, each transaction has one intent, and the new copies that
// go into the same other partition are written together. If the process dies, a worker carries out the intents
// of the transactions that were committed and removes the reservations of the others. Report.Resume continues
// the run. Entities after that position may already be changed; if the sequence reads entities and edits them,
// repeating an edit must be harmless. If the outcome of a transaction is unknown, the run ends with
// ErrUnknownOutcome.
//
// Report.Rows counts the planned rows in the entities' partitions, as far as they are known before stored
// entities are read, and without rows that entities share, such as lists.
//
// Requests: 1 for each 100 rows of a partition at best; with patterns, the requests that StageInsert lists
// for each transaction, which has 50 rows if they add lists or other entities. BulkUpsert, BulkMerge with
// patterns, and entities that were read through an index or a projection add 1 for each transaction whose
// keys lie close together, else 1 for each entity. A refused entity adds the requests of its transaction once
// more.
func (r *Repository[T]) BulkNonAtomic(ctx context.Context, entities iter.Seq2[*T, error], options *tables.BulkOptions) (tables.BulkReport, error) {
	return bulk.NonAtomic(ctx, r.of(), streams.Untyped(entities), options)
}

// StageInsert adds the insert of an entity, with all its rows and effects, to a transaction on the repository's table. All
// changes of a transaction are in one partition, in which rows and entities of several repositories may be. The
// transaction's Commit applies all of them or none, under one intent if patterns have effects outside of the partition,
// and updates the Meta of each entity. Do not change v before Commit.
//
// An invalid change is reported by Commit; Error.Change is the number of the change in the transaction. If one
// entity of the transaction gives up a unique key outside of the partition and another takes it, Commit returns
// ErrDuplicate: use two transactions. If one of the entities has changed since it was read, nothing is written
// and Commit returns ErrConflict; for a conflict on a list or a companion that a pattern writes with the
// entities, Commit plans all changes again.
//
// Requests: 0. Commit sends 1 for the transaction; for each entity the requests of its patterns, as the verb
// alone would; 2 for one intent, if a pattern needs it; and for a replace or delete 1 more if the entity was
// read through an index or a projection.
func (r *Repository[T]) StageInsert(x *tables.Transaction, v *T) {
	r.of().Stage((*core.Transaction)(x), func(_ context.Context, op string) (*engine.Work, error) { return r.engine.Inserting(op, v) })
}

// StageReplace stages a Replace; see StageInsert.
func (r *Repository[T]) StageReplace(x *tables.Transaction, v *T) {
	r.of().Stage((*core.Transaction)(x), func(_ context.Context, op string) (*engine.Work, error) { return r.engine.Replacing(op, v) })
}

// StageMerge stages a Merge; see StageInsert. Like Merge, Commit makes 1 more request to read the whole entity.
func (r *Repository[T]) StageMerge(x *tables.Transaction, v *T, properties ...string) {
	r.of().Stage((*core.Transaction)(x), func(ctx context.Context, op string) (*engine.Work, error) {
		return r.engine.Merging(ctx, op, v, properties, nil)
	})
}

// StageDelete stages a Delete; see StageInsert.
func (r *Repository[T]) StageDelete(x *tables.Transaction, v *T) {
	r.of().Stage((*core.Transaction)(x), func(ctx context.Context, op string) (*engine.Work, error) {
		return r.engine.Deleting(ctx, op, v, nil)
	})
}

// Check returns the error that Insert would return before its first request: for a key, a property, a size or a
// number of rows that the service rejects, or something that a pattern cannot store. Call Check before an
// action that must not happen if the entity cannot be stored. Check does not detect what only the tables show,
// such as a taken key or a full list. Requests: 0.
func (r *Repository[T]) Check(ctx context.Context, v *T) error {
	return r.of().Check(ctx, v)
}

// Explain returns the rows and requests of a change, with their sizes, without writing anything: kind is
// ChangeInsert for a new entity, or ChangeReplace or ChangeDelete for an entity that was read. It returns
// ErrTooLarge if a row or the request exceeds a limit of the service. Requests: 0, or the reads that patterns
// need to plan the change; Explanation.Requests includes these.
func (r *Repository[T]) Explain(ctx context.Context, kind driver.ChangeKind, v *T) (*Explanation, error) {
	return explain(ctx, r.of(), kind, v)
}

// Verify compares what the patterns store with what the entities require, and gives each difference to JobOptions.Found. It compares rows in the
// entities' own partitions, copies in other partitions, what patterns store elsewhere (driver.Effect), and the numbers that they add up
// (driver.Totals). It writes nothing. Report.Findings is 0 if nothing is wrong. An error ends the run; Verify then also returns a report of the
// run so far, and Report.Resume continues it. A token
// has up to 270,000 characters, and up to 12 keys for each page in memory: with 8 readers and keys of 20
// characters at most 310,000.
//
// JobOptions.Concurrency readers share each table by ranges of keys, so several of them can read one large
// partition.
//
// Verify works on tables of any size while programs write to them. Its memory is bounded: the scans add up
// digests of what entities require and subtract digests of what is stored, in 4,096 sums. If a sum is not zero,
// Verify reads the rows again and compares one by one those that belong to this sum, about 100,000 at a time
// (some 30 MiB with keys of usual length). Each reader holds one page. A required row that is not stored, or a
// stored row that no entity requires, is a candidate. Verify rechecks every candidate individually.
//
// Every finding really existed. In the entity's partition, Verify reads one of the two rows before and after
// the other and requires the same ETag, so both existed at one moment. It does the same with a copy in another
// partition, which is right at every moment; a marked copy is no finding, since its readers follow it to the
// entity. Report.Marked counts the copies whose mark is older than a change can take: a process has died, or the copy is of an
// index with Schema.OtherBuilds. What else patterns store outside must be wrong after JobOptions.Lag, too. A
// candidate that keeps changing is dropped after three reads, since each write of the entity repairs it. Verify
// finds every difference that existed during the whole run.
//
// The scan skips an entity that a concurrent writer deletes or replaces while its blobs or further rows are read; the
// entity's copies become candidates instead.
//
// A table with several types of entities needs Schema.Prefix, Mine or Where to distinguish them.
//
// Requests: 1 for each page of at most 1,000 rows of the table and of each outside table. The scan divides the
// table into runs of about 50,000 rows: the pages of a run are read again if its sums differ, and all pages if
// sums of outside copies differ; 3 to 10 for each candidate; 1 more for each entity that a Layout spreads over
// rows. Each scan of more than 2 pages also makes the additional requests of Query.AllParallel. A run consists
// of whole partitions, so it can have more rows.
func (r *Repository[T]) Verify(ctx context.Context, options *JobOptions) (VerifyReport, error) {
	return run[VerifyReport](ctx, r.of(), jobs.Verify, options)
}

// Repair runs Verify, repairs each finding, and then gives it to JobOptions.Found with the result. If it cannot
// repair a finding, it sets Finding.NotRepaired to the reason and continues. It gives findings to Found in
// groups of up to 10,000, after it has repaired the group. After an error of Found, it repairs nothing more. An
// error of the service ends the run, as in Verify.
//
// Every repairing write is idempotent and conditional, so a crash, a repeated request or a concurrent writer does no
// harm, and another Repair finds the rest:
//
//   - missing or different in the entity's partition: the entity is written again as it was read, under its ETag,
//     with all its rows. A row under one of its keys that belongs to another entity is not changed;
//   - spurious in the entity's partition: deleted under the ETag with which it was found wrong;
//   - a copy in another partition: marked, so that readers are right from then on, and settled at the end of the run. Before
//     that, Repair waits once, up to 35 seconds, until no change can commit that was under way before: it could have relied on the row. A
//     copy whose mark is old is settled at once, unless Schema.OtherBuilds is set. If Repair is interrupted, the copies stay
//     marked;
//   - what a pattern with Effect.List stores: removed by Effect.Remove, or written by writing the entity again; with
//     OutsideKeys, reconciled under an intent;
//   - a number of a pattern with Totals: the entities are added up again, and the row is written under its ETag.
//
// Findings of one partition are repaired together, if there are at least 4: entities in change sets of 100
// rows, spurious rows and copies in other partitions in transactions of 100, other facts outside under one intent for up to 250
// entities. If the service refuses a group, its findings are repaired one by one.
//
// Rows that cannot be decoded are only reported. Requests: those of Verify, and for each change set 4, for
// each transaction of spurious rows 1, for up to 250 copies in other partitions 3 to read them and their entities twice, and 2 for each
// transaction; for each intent 3 to recheck its findings and those of the intent; for
// each finding that is repaired alone 2 to 5 to recheck it and those of one write of the entity, or 1 delete.
func (r *Repository[T]) Repair(ctx context.Context, options *JobOptions) (RepairReport, error) {
	return run[RepairReport](ctx, r.of(), jobs.Repair, options)
}

// Rebuild fills patterns that were attached to a table with existing entities, while programs write to it. If
// an entity's row does not list an index, Rebuild writes the entity again unchanged, under its ETag, with all
// its rows. It reads the facts of patterns with Effect.List, and reconciles those that are missing or wrong under an intent. It corrects the numbers of
// patterns with Totals. A second run writes nothing.
//
// Copies in other partitions it first compares as Verify does, by sums, and reads again what differs. Of an index with less than half of
// its copies it inserts them without a read, page by page of the entities. Each copy is marked, and settled once its entity
// was read again; with Schema.OtherBuilds it stays marked. Such an index is complete once a run has given nothing to Found.
//
// Deploy the pattern to all programs that write the entities before you run Rebuild: it misses entities that a
// program without the pattern writes later. You can interrupt Rebuild at any time and run it again; it writes
// only what is missing or wrong. Entities that share a row or list, such as those with one value of an
// indexentities index, are written one after another, so the run does not conflict with itself.
//
// Entities that cannot be filled do not end the run. After each page of entities, Rebuild gives them to
// JobOptions.Found: keys that another entity owns (Missing, with ErrDuplicate); entities for which all
// Schema.MaxAttempts attempts failed because of other writers or a lost lease (Missing); references of a
// pattern to an entity that does not exist, such as a parent (Missing, with ErrMissingReference); and entities
// that cannot be read or that an index refuses (Undecodable). Report.Failed counts them.
//
// Entities whose rows do not list an index are written in change sets of one partition with up to 100 rows, so
// with one index 50 entities. Each entity is written under its own ETag. If the service refuses a set, Rebuild
// halves it, so that an entity that changes all the time delays only itself.
//
// JobOptions.Concurrency readers share the table by ranges of keys, and each fills the pages that it has
// read, one at a time. Together they write at most JobOptions.Concurrency sets or entities at once, and each sends at most 32
// transactions of copies in other partitions at once. A token has at most 4 keys for each
// page in memory and, while copies in other partitions are compared, up to 120,000 characters.
//
// Requests: 1 for each page of at most 1,000 rows, or of 50 if entities have large values in blobs or further
// rows, and with more than 2 pages the additional requests of Query.AllParallel; 1 for each change set; for
// each fact 1, and the requests of an intent for each entity of which one is wrong. With indexes over partitions,
// the pages of the entities once more, and those of the indexes' tables; if something differs, both again. For each page of entities of a new index, 1 to
// read them again, and 2 for each 100 rows of a partition of the index: 24 for 1,000 entities and an index with 1 partition, and 3 if the index
// is complete. For up to 1,000 entities with a missing or wrong copy, the requests to read these copies and, twice, the entities, at most 1 for each
// 1,000 rows of the index and 1 for each row, and 2 for each 100 rows of a partition that are written.
func (r *Repository[T]) Rebuild(ctx context.Context, options *JobOptions) (RebuildReport, error) {
	return run[RebuildReport](ctx, r.of(), jobs.Rebuild, options)
}

// RemoveUnattached removes the rows of patterns that were attached to the repository and no longer are. Make
// the patterns as they were made when they were attached, and attach them to no repository. Detach them from
// all programs that write the entities before you run it: a program that still has a pattern attached continues
// to write the pattern's rows, and misses entities when it reads through the pattern.
//
// It removes copies in the partition, copies in other partitions or tables, and rows that
// entities share, such as lists and counts, which name their pattern. It returns ErrWiring for a pattern that
// stores blobs or changes how entities are stored, and for a pattern whose name is attached. If a repository of
// another entity type has an index of the same name in the same table, that index keeps its copies. A row that
// entities share names only its pattern. So give a pattern with such rows only if no repository on the table
// has a pattern of that name. If the repository has neither Rows nor Mine nor Where, an entity counts as of its
// type if Schema.Key returns the key under which the entity is stored.
//
// Before it deletes copies, it removes the pattern's name from the rows that list it: it writes these entities
// again, unchanged, in change sets. If you attach the pattern again later, Rebuild fills it. Each row is
// deleted under its ETag, those of a partition in transactions of 100 rows; a row that another writer changes
// meanwhile is read again. You can interrupt the job at any time, and run it again or resume it; the next run
// finds all remaining rows. A table that only the pattern uses is faster to delete, with Table.Drop.
//
// JobOptions.Found gets each row that was removed, as Spurious with Repaired, and each entity or row that the
// job could not process, with Err. With DryRun, nothing is written, and Found gets the rows that would be
// removed. RemoveUnattached returns ErrWiring if Patterns, Lag or Rows is set. Report.Rows counts the rows that
// this run has examined, Report.Deleted the rows that it has deleted, and Report.Written the entities that it
// has written again.
//
// Requests: 1 for each page of at most 1,000 rows of the repository's table, and of each other table of the
// patterns; 1 for each page and partition with copies, to read their entities; 1 for each change set of
// entities that list a pattern; 1 for each 100 rows that are deleted in a partition.
func (r *Repository[T]) RemoveUnattached(ctx context.Context, unattached []Pattern[T], options *JobOptions) (RemoveReport, error) {
	return removeUnattached(ctx, r.of(), attachments(unattached), options)
}
