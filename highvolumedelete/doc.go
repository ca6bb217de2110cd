// Package highvolumedelete keeps entities in a table for each hour, day, week or month, so that old ones are deleted
// by dropping a table: the guide's "High volume delete pattern".
//
// # Stored tables
//
// Login requests, a table for each day, with a retention mark at 23 June:
//
//	LoginsD20140623   PartitionKey=june  RowKey=at_635390814320000000  ...   the oldest day that is kept
//	...
//	LoginsD20140822   PartitionKey=june  RowKey=at_635442654320000000  ...   today
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
// Insert chooses the table by the entity's own time, and creates it if it does not exist; several writers may do so
// at once. An entity that is late, such as one of 23:59:59 that is sent after midnight, goes to the table of its own
// period as long as that is not below the retention mark; Schema.Late and Schema.Early refuse it earlier, with
// ErrLate and ErrEarly. Between reads across tables in order of time.
//
// A table that was dropped never comes back. A writer that finds no table cannot see whether it was dropped or not
// yet created. The retention mark distinguishes these: one row, which Drop moves forward before it drops anything,
// and never back. These are the rules, and why they are enough:
//
//   - A table is created only after a look at the mark that was made for this purpose, by a request that is sent within 10 s
//     of the look, by whichever of the writer's own clocks says more, or not at all. The clocks of two machines are not compared.
//   - Drop waits between the mark and the first table: for these 10 s, and the 30 s for which the service works at a request
//     at most. So when it lists the tables, whoever saw an older mark has created its table, and that is in the list, or
//     never will. Whoever looks later sees the mark and is refused.
//   - A writer keeps nothing about which tables there are. It sends the insert, which creates nothing, and looks at the mark when it
//     hears TableNotFound. TableBeingDeleted is ErrLate at once, since names do not come back.
//   - For an entity of an earlier period, it also looks at the mark before, and trusts that for 10 s: so what is sent from then on,
//     and served within the grace of Drop, is not accepted into a table that is about to go. A write that takes longer, such as
//     by the SDK's repetitions, may be, and goes with the table.
//
// Drop never touches the present period, by its own clock, nor any above the mark. It drops the tables below it one
// after the other, oldest first.
//
// # Crashes
//
// Between the mark and the drops: writers are refused already, readers see what is left, and the next Drop, with
// whatever time, drops all that is below the mark. Before the mark: nothing has happened. A writer that dies after it
// has made a table leaves an empty one, which goes with its period. Nobody must delete the control table: without the
// mark, late writers make dropped periods again, up to Schema.Late.
//
// An Insert whose first attempt was not answered, and whose next one met a missing table, is tables.ErrUnknownOutcome
// where it fails then, also where the table was refused to this writer: the first attempt may arrive when somebody
// has made the table.
//
// # Requests
//
//	Insert                                  1
//	Insert of an earlier period             1, and 1 in 10 s for the mark
//	Insert, the period's first              4: the attempt, the mark, the table, the entity
//	Upsert                                  as Insert, and 1 to read
//	Get, Replace, Delete                    1
//	Prepare                                 2 for each period
//	Drop                                    1 for each table; 2 for the mark, 1 to list; the very first 2 more
//	Drop, dry                               2; with Count 1 for each 1,000 rows more
//	Between                                 1 for each page; 1 for a period without a table; 1 to list where it has no bounds
//	List                                    1 for each 1,000 tables
//
// # When not to use it
//
// When entities are looked for without knowing when they were made: every table must be asked. When single entities
// expire at times of their own. A new table is slow at first, and throttles, until the service has learned its load:
// do not make periods so short that most traffic meets new tables, and use Prepare. Unique keys are unique within a
// period.
package highvolumedelete
