package patterns

import (
	"context"
	"iter"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Insert adds an entity with all its rows. It is ErrExists when there is one with this key, and ErrDuplicate, naming
// the index in Error.Pattern, when another entity has one of its index keys; nothing is written then. Requests: 1.
func (r *Repository[T]) Insert(ctx context.Context, v *T) error {
	return r.engine.Insert(ctx, untyped(v))
}

// Replace writes the entity in the place of what it was read as. It is ErrConflict when the entity has changed since.
// Its key cannot change; index keys can. Requests: 1, and 1 more for an entity that was read through an index.
func (r *Repository[T]) Replace(ctx context.Context, v *T) error {
	return r.engine.Replace(ctx, untyped(v))
}

// ReplaceUnconditional writes the entity in the place of whatever is there; changes of other writers are lost. It is
// ErrNotFound when there is none. Requests: 2, more under rivals.
func (r *Repository[T]) ReplaceUnconditional(ctx context.Context, v *T) error {
	return r.engine.ReplaceUnconditional(ctx, untyped(v))
}

// Upsert inserts the entity or writes it in the place of whatever is there; changes of other writers are lost.
// Requests: 2, more under rivals. It reads first, since the old index rows must be known to be removed.
func (r *Repository[T]) Upsert(ctx context.Context, v *T) error {
	return r.engine.Upsert(ctx, untyped(v))
}

// Update reads an entity, lets change edit it and replaces it, again from the start while rivals come between, at
// most Schema.MaxAttempts times. change may run several times and must not have effects of its own; its error ends
// the update, and nothing is written. The entity as written is returned. Requests: 2, more under rivals.
func (r *Repository[T]) Update(ctx context.Context, key tables.Key, change func(*T) error) (*T, error) {
	var edit func(any) error
	if change != nil {
		edit = func(v any) error { return change(v.(*T)) }
	}
	return typed[T](r.engine.Update(ctx, key, edit))
}

// Delete removes the entity with all its rows. It is ErrConflict when the entity has changed since it was read.
// Requests: 1, and 1 more for an entity that was read through an index or a projection.
func (r *Repository[T]) Delete(ctx context.Context, v *T) error {
	return r.engine.Delete(ctx, untyped(v))
}

// DeleteUnconditional removes the entity whatever it is now. It is ErrNotFound when there is none. Requests: 2, more
// under rivals.
func (r *Repository[T]) DeleteUnconditional(ctx context.Context, key tables.Key) error {
	return r.engine.DeleteUnconditional(ctx, key)
}

// Merge writes the named properties, all of v's when none are named, and leaves the entity's others as they are
// stored. It is ErrConflict when the entity has changed since it was read. An entity that was read through a
// projection must name them. Where a pattern cannot store some properties without the others, as encryption cannot, Merge
// is ErrInvalid. Requests: 2; 1 for an entity that was read whole in a repository without patterns. What an index holds
// follows from the whole entity.
func (r *Repository[T]) Merge(ctx context.Context, v *T, properties ...string) error {
	return r.engine.Merge(ctx, untyped(v), properties...)
}

// BulkInsertNonAtomic inserts any number of entities with all their rows. Each entity is written whole or not at all,
// several share a transaction, and the sequence as a whole is not atomic: see tables.Rows.BulkNonAtomic. An entity that
// meets a taken index key is inserted alone, which takes over a copy that was left behind. Patterns with effects outside
// of the partition are ErrInvalid here.
func (r *Repository[T]) BulkInsertNonAtomic(ctx context.Context, entities iter.Seq2[*T, error], options *tables.BulkOptions) (tables.BulkReport, error) {
	const op = "BulkInsertNonAtomic"
	if err := r.engine.CheckBulk(op); err != nil {
		return tables.BulkReport{}, err
	}
	return tables.Bulk(ctx, pass, r.engine.Table, op, entities, options, func(v *T) (tables.BulkUnit, error) {
		return r.engine.BulkUnit(ctx, op, v)
	})
}

// StageInsert adds the insert of an entity, with all its rows, to a transaction of the caller's own on the same table
// and partition. Nothing is written before the transaction is committed; then the entity's Meta is brought up to date.
// Patterns with effects outside of the partition cannot be staged: that is ErrInvalid. A change that was staged does not
// start over by itself: a copy that another program left behind in its way is ErrDuplicate, and one that is not there when it is
// to be removed ErrNotFound, each with Error.Pattern. Requests: 0; for a replace or delete, 1 for an entity that was read through
// an index or a projection.
func (r *Repository[T]) StageInsert(ctx context.Context, x *tables.Transaction, v *T) error {
	return r.engine.StageInsert(ctx, x, untyped(v))
}

// StageReplace is StageInsert for a Replace.
func (r *Repository[T]) StageReplace(ctx context.Context, x *tables.Transaction, v *T) error {
	return r.engine.StageReplace(ctx, x, untyped(v))
}

// StageDelete is StageInsert for a Delete.
func (r *Repository[T]) StageDelete(ctx context.Context, x *tables.Transaction, v *T) error {
	return r.engine.StageDelete(ctx, x, untyped(v))
}

// Check refuses an entity that Insert would refuse before any request: a key, a property, a size or a number of rows that the
// service does not take, or what a pattern cannot store. It is for those who do something else before an insert that must
// not be done for an entity which cannot be stored. What only the tables can tell is not looked for: a taken key, a list
// that is full. Requests: 0.
func (r *Repository[T]) Check(ctx context.Context, v *T) error {
	return r.engine.Check(ctx, untyped(v))
}

// Explain shows the rows and requests of a change without writing anything: ChangeInsert of a new entity, or
// ChangeReplace or ChangeDelete of one that was read. It makes no request, but for patterns that must read to plan; these reads
// are among the requests that it shows, since the change makes them as well.
func (r *Repository[T]) Explain(ctx context.Context, kind driver.ChangeKind, v *T) (*Explanation, error) {
	return explain(ctx, r.engine, kind, untyped(v))
}

// Verify compares what the patterns hold with what the entities ask for, and yields the differences: rows in the entities'
// own partitions, copies and claims outside of them, and what patterns with an Audit hold. An error comes once, last.
//
// It is made for tables that are in use and of any size. The scans keep sums, not rows, and no more than some 100,000 places at
// once, which are 30 MiB with keys of usual length: what an entity asks for is added to one of 4,096 sums, and what is stored
// is taken off the same one. Where a sum is not zero in the end, the rows behind it are read once more and joined; what has no
// counterpart is a candidate, and each candidate is looked at by itself.
//
// There is no false alarm. A candidate counts where two readings of one row with the same ETag enclose the reading of the other:
// then both were there at one moment. ETags do not come again, so that of a row outside, which is written later than the
// entity, more is known: a copy that was wrong at one moment is wrong for as long as it keeps its ETag, whatever becomes of
// its entity, since every write of the entity writes it again. So it counts when it has the same ETag still after Lag; and what
// is missing counts when the entity has. A candidate that has changed is looked at again, three times at most: what changes
// all the time is set right by its own writes. A difference that was there all the time is found.
//
// An entity that a concurrent writer deletes or replaces while the scan reads its blobs or further rows is skipped by the scan;
// its copies are candidates then, and looked at by themselves.
//
// A table that holds several types of entities needs Schema.RowPrefix, so that they are told apart.
//
// Requests: 1 for each page of at most 1,000 rows of the table, and of each table outside; the same again for runs of
// partitions, some 50,000 rows each, in which sums differ, and for all where sums of outside copies do; 3 to 10 for each
// candidate. One more for each entity that a Layout spreads over rows.
func (r *Repository[T]) Verify(ctx context.Context, options *VerifyOptions) iter.Seq2[Discrepancy, error] {
	return verifyAll(ctx, r.engine, options)
}

// Repair is Verify that mends what it finds, and yields what became of each. What cannot be mended is told and does not end it.
// An error of the service comes once, last.
//
// Each discrepancy is mended by a write that is right whenever it arrives, so that a crash, a repetition or a rival does no
// harm and another Repair finds what is left:
//
//   - what is missing or different in the entity's partition: the entity is written again as it was read, under its ETag, with
//     all its rows. A row in the way that belongs to another entity is left alone;
//   - what is spurious: deleted under the ETag with which it was found to be wrong. A claim that says something else than its name
//     is made right where a copy has a claim of this name, since without it the copy would have none;
//   - a copy outside that is missing or different: by an intent, as with every write of the entity;
//   - what a pattern with an Audit holds: by Audit.Remove or by writing the entity again; where it has OutsideKeys, by an intent.
//
// What cannot be decoded is only reported. Requests: those of Verify, and for each discrepancy 2 to 5 to look at it again, and
// those of one write of the entity, or 1 delete; for a claim that says something else than its name 1 for each page of its partition.
func (r *Repository[T]) Repair(ctx context.Context, options *RepairOptions) iter.Seq2[Repaired, error] {
	return repairAll(ctx, r.engine, options)
}

// Rebuild fills patterns that were attached to a table that has entities already, while writers go on. An entity whose row does
// not list an index is written again as it is, under its ETag, with all its rows; copies outside, and what auditors hold, are
// looked at, and where they are not right they are brought into agreement under an intent.
//
// First all programs that write the entities are given the pattern, then Rebuild is run: what is written behind it by a program
// without the pattern is not entered. What cannot be entered is told in the report and does not end the run. It can be
// interrupted anywhere and run again: what is right already is not written. Entities that share a row or list, such as those
// with one value of an indexentities index, are written one after another, so the run does not conflict with itself.
//
// Requests: 1 for each page of at most 1,000 rows, 1 for each entity that an index in its partition does not list, 1 for each
// copy outside and each fact, and those of an intent for each entity where one of these is not right.
func (r *Repository[T]) Rebuild(ctx context.Context, options *RebuildOptions) (RebuildReport, error) {
	return rebuildAll(ctx, r.engine, options)
}
