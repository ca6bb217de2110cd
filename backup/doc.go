// Package backup copies tables, backs them up into a folder or a container, restores and compares them: row by row, with all properties as they are
// stored, including the library's own. All functions are safe for concurrent use.
//
// A [Vault] is a local folder or a part of a container. It holds any number of backups, which share their chunks; [Options].Base makes the next one
// incremental. docs/reference/backup.md has the stored objects.
//
// # What a copy is, and what it is not
//
// A copy or a backup beside running writers is not a snapshot: pages are read at different times. If a change writes two rows on different pages,
// the result can have one new and one old version: then run Repair of the Store or the Repository.
//
// ETags and Timestamps are new in the destination. Index copies in other partitions may be outdated there, and hold the ETag of their entity's row
// in the source. So Copy and Restore mark them: reads through them are right without Repair, and cost 1 request more until Rebuild, the next change
// of the entity, or a read 35 s later settles them; [CopyReport].Outside counts them. Use the destination when the job has ended: a read before may
// remove an index copy whose entity is not there yet, which Rebuild writes again.
//
// # Crashes
//
// The manifest is put last, and makes a backup visible. A crash leaves a chunk that a later backup of the same rows uses, or a journal, which
// [Options].Resume continues. Copy and Restore can be repeated, since a row that the destination already has with the same content counts as
// written; with Options.Resume they skip what was done.
//
// # Hostile backups
//
// Anybody who can write to a vault can change a backup; checksums detect damage, not forgery. Only the programs that back up should have that
// right. A forged backup still cannot reach other tables, or files and blobs outside of the vault and BlobSet.Prefix, or take much memory: names
// come from the caller, numbers or checksums, a folder is opened as an os.Root, and sizes are limited before decompression.
package backup
