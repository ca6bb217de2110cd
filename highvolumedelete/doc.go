// Package highvolumedelete keeps entities in a table for each hour, day, week or month, so that old ones are deleted
// by dropping a table: the guide's "High volume delete pattern".
//
// # Stored tables
//
// Login requests, a table for each day, with a retention mark at 23 June:
//
//	LoginsD20140623   PartitionKey=june  RowKey=at_0635390814320000000  ...   the oldest day that is kept
//	...
//	LoginsD20140822   PartitionKey=june  RowKey=at_0635442654320000000  ...   today
//	LoginsRetention   PartitionKey=mark  RowKey=D  Before=D20140623
//
// A table is named by Schema.Name, a letter for the unit, and the date at which the period begins: H2014082200,
// D20140822, W20140818 (a Monday), M201408. Names sort as time does and are never used twice. Days, weeks and months
// are those of Schema.Location, as its wall clock shows them; hours are those of UTC. The rows of a table are kept by
// a patterns.Repository, which Schema.Open makes for each table, with patterns that store only in that table: indexes
// and lists of the entity's partition, copies in other partitions of the table. Other patterns are refused, since
// dropping the table would not remove what they store elsewhere.
//
// # Guarantee
//
// Insert chooses the table by the entity's own time, and creates the table if it does not exist; several writers may
// do so at once. A late entity, such as one of 23:59:59 that is sent after midnight, goes to the table of its own
// period unless that period is below the retention mark. Schema.Late and Schema.Early set narrower limits: beyond them
// Insert returns ErrLate or ErrEarly. Between reads across tables in order of time.
//
// A dropped table is never created again. A writer that finds no table cannot see whether the table was
// dropped or not created yet; the retention mark shows which. The mark is one row. Drop moves it forward
// before it drops anything, and no program moves it back. The following rules ensure that no table below the
// mark is created:
//
//   - To create a table, a writer first reads the mark. It sends the request that creates the table within 10 s of that
//     read, measured by both of its own clocks (wall clock and monotonic clock), or not at all. Clocks of different
//     machines are not compared.
//   - Drop moves the mark, waits 40 s (DefaultGrace), and then lists the tables: 10 s, during which writers
//     may still rely on the older mark, and 30 s, after which the service has given up the requests that they
//     sent. So each table that such a writer creates is in the list. Every later read of the mark returns the
//     new one, and Insert returns ErrLate.
//   - A writer does not remember which tables exist. It sends the insert, which creates no table, and reads
//     the mark only if the service answers TableNotFound. For TableBeingDeleted it returns ErrLate at once,
//     since no table name is used twice.
//   - Before an insert into an earlier period, a writer also reads the mark, and relies on it for 10 s. So an insert
//     that the service accepts was sent before Drop lists the tables. An insert that takes longer, for example because
//     the SDK repeats it, may still be accepted; its row is then dropped with the table.
//
// Drop does not move the mark beyond the present period (by the clock of its own machine), and drops no table at or
// above the mark. It drops the tables below the mark one after the other, oldest first.
//
// # Crashes
//
// If Drop dies after it has moved the mark, writers already get ErrLate, readers see the tables that still exist, and
// the next Drop, also with an earlier time, drops all tables below the mark. If it dies before that, no period has
// changed. A writer that dies after it has created a table leaves an empty table, which is dropped with its period. Do
// not delete the control table: without the mark, late writers create dropped periods again, as far back as Schema.Late
// allows.
//
// If the first attempt of an Insert got no response and the next one finds no table, the first attempt may still arrive
// after another writer has created the table. An error that does not exclude this is also tables.ErrUnknownOutcome, even
// if this writer may not create tables. ErrLate, and refusals such as tables.ErrExists and tables.ErrInvalid, exclude it.
//
// # Requests
//
//	Insert                                  1
//	Insert of an earlier period             1, and 1 for the mark, at most once in 10 s
//	Insert, the period's first              4: the attempt, the mark, the table, the entity
//	Upsert                                  as Insert, and 1 to read
//	Get, Replace, Delete                    1
//	Prepare                                 2 for each period
//	Drop                                    1 for each table; 2 for the mark, 1 to list; the very first 2 more
//	Drop, dry                               2; with Count 1 more for each 1,000 rows of a table
//	Between                                 1 for each page of a period and partition; at most 1 for each partition of a period
//	                                        without a table; 1 for each 1,000 tables to list them, if a bound is missing or there
//	                                        are more than 100 periods
//	List                                    1 for each 1,000 tables
//
// # When not to use it
//
// If entities are read without knowing their time: every table must be queried. If each entity expires at a
// time of its own. A new table is slow at first, and throttles, until the service has adapted to its load: do
// not choose periods so short that most requests go to new tables, and call Prepare. Index keys are unique
// only within a period.
package highvolumedelete
