// Package backup copies tables, backs them up into a folder or a container, restores and compares them. It works row by row, on all
// properties as they are stored, including the library's own.
//
// # Stored objects
//
// A [Vault] is a local folder or a part of a container. It holds any number of backups, which share their chunks:
//
//	chunks/3f/3f9a...    the rows of a range of keys, one JSON object a line, or a part of a blob; zstd. The name is the SHA-256 of the content
//	monday.manifest      SHA-256, tables, and for each chunk: range, rows, bytes, SHA-256 of the lines, SHA-256 of the chunk, times
//	monday.journal/      while the backup is unfinished: begun, and 00000001 and so on, one entry of the manifest each
//
// A line is the row as the service writes it, without ETag and Timestamp, with its properties in the order of their names. docs/reference/backup.md
// and docs/reference/storage-format.md have the details.
//
// # What a copy is, and what it is not
//
// A copy or a backup that runs concurrently with writers is not a snapshot: the pages are read at different
// times. If a change writes two rows on different pages, the result can have the new version of one and the
// old version of the other: then run Repair of the Store or the Repository.
//
// ETags and Timestamps are new in the destination. Index copies in other partitions may be outdated there, and hold the ETag of
// their entity's row in the source. So Copy and Restore mark them: reads through them are right without Repair, and cost 1 request more until
// Rebuild, the next change of the entity, or a read 35 s later settles them; [Result].Outside counts them. Use the destination when the job has
// ended: a read before may remove an index copy whose entity is not there yet, which Rebuild writes again.
//
// # Crashes
//
// Backup puts a chunk, reads it back, and then puts its entry in the journal; it puts the manifest last,
// which makes the backup visible. A crash leaves a chunk that no journal names, which a later backup of the
// same rows uses, or a journal, which [Options].Resume continues. Copy and Restore insert rows in
// transactions. A row that the destination already has with the same content counts as written, so both can
// be repeated after a crash or a lost response; with Options.Resume they skip what was done.
//
// # Hostile backups
//
// Anybody who can write to a vault can change a backup. So the package takes the names of tables and of the vault's
// objects from the caller, from numbers or from checksums, never from a manifest. It checks that the names of
// restored blobs lie below BlobSet.Prefix. It opens a folder as an os.Root, so that no symbolic link leads out of it.
// It limits sizes and the decoder's memory before it decompresses anything. Checksums detect damage, not forgery:
// only the programs that back up should have the right to write to the vault.
//
// All functions are safe for concurrent use.
package backup
