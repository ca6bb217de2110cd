package projectrules

// costCases say for each operation of docs/reference/costs.md where a test wants its number: operation | values of the units |
// test | what stands in the test, with the number between « and ». A line "# ..." is the section of the page. Where a test is
// changed, change the line here; where its number is changed, the page has to change, too.
const costCases = `
# Tables and rows
Create, CreateIfMissing, Drop of a table, every verb of Rows, Transaction.Commit of rows |  | patterns.TestRequestCountsOfTables | {"Create", «1»,
Create, CreateIfMissing, Drop of a table, every verb of Rows, Transaction.Commit of rows |  | patterns.TestRequestCountsOfTables | {"CreateIfMissing", «1»,
Create, CreateIfMissing, Drop of a table, every verb of Rows, Transaction.Commit of rows |  | patterns.TestRequestCountsOfTables | {"Drop", «1»,
Create, CreateIfMissing, Drop of a table, every verb of Rows, Transaction.Commit of rows |  | patterns.TestRequestCounts | {"Insert of a bag", «1»,
Create, CreateIfMissing, Drop of a table, every verb of Rows, Transaction.Commit of rows |  | patterns.TestRequestCounts | {"Replace of a bag", «1»,
Create, CreateIfMissing, Drop of a table, every verb of Rows, Transaction.Commit of rows |  | patterns.TestRequestCounts | {"Merge of a bag", «1»,
Create, CreateIfMissing, Drop of a table, every verb of Rows, Transaction.Commit of rows |  | patterns.TestRequestCounts | {"Upsert of a bag", «1»,
Create, CreateIfMissing, Drop of a table, every verb of Rows, Transaction.Commit of rows |  | patterns.TestRequestCounts | {"Delete of a bag", «1»,
Create, CreateIfMissing, Drop of a table, every verb of Rows, Transaction.Commit of rows |  | patterns.TestRequestCountsOfTables | {"DeleteUnconditional of a row", «1»,
StageInsert, StageReplace, StageDelete, a row that the library refuses as ErrInvalid or ErrTooLarge |  | patterns.TestRequestCountsOfTables | {"a refused row", «0»,
Create, CreateIfMissing, Drop of a table, every verb of Rows, Transaction.Commit of rows |  | patterns.TestRequestCountsOfTables | {"Commit", «1»,
StageInsert, StageReplace, StageDelete, a row that the library refuses as ErrInvalid or ErrTooLarge |  | patterns.TestRequestCountsOfTables | {"StageInsert", «0»,
Commit of 50 entities with indexes across partitions | partition of an index=1, partitions=1 | interpartition.TestRoundTrips | want := requests.Count(), «2*partitions+1»
BulkNonAtomic of 1,000 entities in 10 partitions, with two indexes across partitions of one group each and lists of 20 values in the partition |  | interpartition.TestBulkInSets | requests != «20*(1+2+1+2)»
BulkNonAtomic of small rows | 100 rows of a partition=30 | patterns.TestRequestCountsOfTables | {"3,000 rows of two partitions in bulk", «30»,
Store.Ready of tables, containers, storage queues and poison queues | resource=5 | patterns.TestReady | n != «5» {
# Queries
a point query: Get, or Query with partition and row |  | patterns.TestRequestCounts | {"Get", «1»,
a point query: Get, or Query with partition and row |  | patterns.TestRequestCounts | {"point query by Query", «1»,
a point query: Get, or Query with partition and row |  | patterns.TestRequestCountsOfReads | {"a point query", «1»,
All of any other query | page=2 | patterns.TestRequestCountsOfReads | {"a partition of 1,500 rows", «2»,
All of any other query | page=15 | patterns.TestRequestCountsOfReads | {"1,500 rows in pages of 100", «15»,
Page, and a First or Top that reads one page |  | patterns.TestRequestCountsOfReads | {"First", «1»,
Page, and a First or Top that reads one page |  | patterns.TestRequestCountsOfReads | {"one page", «1»,
Page, and a First or Top that reads one page |  | patterns.TestRequestCountsOfReads | {"the first 10 of 1,500 rows", «1»,
Plan, a refused table scan, a filter whose keys contradict each other |  | patterns.TestRequestCountsOfReads | {"Plan", «0»,
Plan, a refused table scan, a filter whose keys contradict each other |  | patterns.TestRequestCountsOfReads | {"a contradiction", «0»,
Plan, a refused table scan, a filter whose keys contradict each other |  | patterns.TestRequestCountsOfReads | {"a refused table scan", «0»,
GetMany | key=4 | patterns.TestRequestCountsOfReads | {"3 of 4 keys that are there", «4»,
AllPartitions | page of each partition=4 | patterns.TestRequestCountsOfReads | {"two partitions of 1,500 rows side by side", «4»,
# Repositories
Insert, Replace, Delete, Get, Merge without patterns |  | patterns.TestRequestCounts | {"Insert with three indexes", «1»,
Insert, Replace, Delete, Get, Merge without patterns |  | patterns.TestRequestCounts | {"Replace with three indexes", «1»,
Insert, Replace, Delete, Get, Merge without patterns |  | patterns.TestRequestCounts | {"Delete with three indexes", «1»,
Insert, Replace, Delete, Get, Merge without patterns |  | patterns.TestRequestCounts | {"Get", «1»,
Insert, Replace, Delete, Get, Merge without patterns |  | patterns.TestRequestCountsOfTables | {"Merge without patterns", «1»,
Upsert, ReplaceUnconditional, DeleteUnconditional, Merge with patterns |  | patterns.TestRequestCounts | {"Merge with three indexes", «2»,
Update |  | patterns.TestRequestCounts | {"Update", «2»,
Update | conflict=1 | patterns.TestRequestCountsOfConflicts | {"Update with one concurrent writer", «4»,
Update | conflict=3 | patterns.TestRequestCountsOfConflicts | {"Update with three concurrent writers", «8»,
Upsert, ReplaceUnconditional, DeleteUnconditional, Merge with patterns |  | patterns.TestRequestCounts | {"Upsert", «2»,
Upsert, ReplaceUnconditional, DeleteUnconditional, Merge with patterns |  | patterns.TestRequestCounts | {"ReplaceUnconditional", «2»,
Upsert, ReplaceUnconditional, DeleteUnconditional, Merge with patterns |  | patterns.TestRequestCountsOfTables | {"DeleteUnconditional of an entity", «2»,
Explain, Check |  | patterns.TestRequestCounts | {"Explain", «0»,
Explain, Check |  | patterns.TestRequestCounts | {"Check", «0»,
a change that returns ErrDuplicate, because an index key is taken | without=1 | examples/contoso.TestRun | "a new employee with that email": «3»,
a change that removes a copy which no longer exists | without=4 | intrapartition.TestRequestCounts | {"removal of a copy that is gone, read and Replace", «5»,
the first change after a program without the index has written the entity | without=2, key in that index=12 | patterns.TestRepositoryOrphanedCopies | n != «2+12»
# Indexes within a partition
Get |  | intrapartition.TestRequestCounts | {"Get", «1»,
Get |  | intrapartition.TestRequestCounts | {"Get with a Tuple", «1»,
GetFull |  | intrapartition.TestRequestCounts | {"GetFull", «2»,
Range, Query | page=1 | intrapartition.TestRequestCounts | {"Range", «1»,
Get, and a Replace, Merge or Delete of the returned entity |  | intrapartition.TestRequestCounts | {"read through a copy, and Replace", «3»,
Get, and a Replace, Merge or Delete of the returned entity |  | intrapartition.TestRequestCounts | {"read through a projection, and Merge", «3»,
Get, and a Replace, Merge or Delete of the returned entity |  | intrapartition.TestRequestCounts | {"read through a projection, and Delete", «3»,
# Indexes across partitions, and messages
Insert, Replace, Delete | partition of an index=1, partitions=1 | interpartition.TestRoundTrips | want := requests.Count(), «2*partitions+1»
Insert, Replace, Delete | partition of an index=2, partitions=2 | interpartition.TestRoundTrips | want := requests.Count(), «2*partitions+1»
Merge, Update, Upsert, ReplaceUnconditional, DeleteUnconditional, or Delete of an entity read through a projection |  | interpartition.TestRequestCounts | {"Merge", own, merge, 2, «1»},
Merge, Update, Upsert, ReplaceUnconditional, DeleteUnconditional, or Delete of an entity read through a projection |  | interpartition.TestRequestCounts | {"Upsert", none, func(*employee) error { return c.repo.Upsert(ctx, jones()) }, 2, «1»},
Merge, Update, Upsert, ReplaceUnconditional, DeleteUnconditional, or Delete of an entity read through a projection |  | interpartition.TestRequestCounts | {"ReplaceUnconditional", none, func(*employee) error { return c.repo.ReplaceUnconditional(ctx, jones()) }, 2, «1»},
Merge, Update, Upsert, ReplaceUnconditional, DeleteUnconditional, or Delete of an entity read through a projection |  | interpartition.TestRequestCounts | {"Delete of what was read through a projection", projected, remove, 2, «1»},
Merge, Update, Upsert, ReplaceUnconditional, DeleteUnconditional, or Delete of an entity read through a projection |  | interpartition.TestRequestCounts | {"DeleteUnconditional", none, func(*employee) error { return c.repo.DeleteUnconditional(ctx, key) }, 2, «1»},
Get |  | interpartition.TestRequestCountsOfReads | {"Get", «1»,
GetFull, Get of a marked copy |  | interpartition.TestRequestCountsOfReads | {"GetFull", «2»,
GetFull, Get of a marked copy |  | interpartition.TestRequestCountsOfMarkedReads | storagetest.DiesAfter: «2»}
Get of a marked copy whose key no entity has |  | interpartition.TestRequestCountsOfMarkedReads | storagetest.DiesBefore: «3»,
Range, Query | page=1 | interpartition.TestRequestCountsOfReads | {"Range", «1»,
Range, Query | page=1 | interpartition.TestRequestCountsOfReads | {"Query", «1»,
Range, Query | page=1, marked copy=1 | interpartition.TestRequestCountsOfMarkedReads | storagetest.DiesAfter: «2»}
Queue.Send, Mover.Move, a worker for a message with a short handler, without the polls |  | eventual.TestRequestsOfSend | {{"a", "", «1», 1},
Queue.Send with a large body |  | eventual.TestRequestsOfSend | {"a", large, «2», 3},
Queue.Send, Mover.Move, a worker for a message with a short handler, without the polls |  | eventual.TestRequestsOfSend | {{"a", "", 1, «1»},
a worker for a message with a large body, without the polls |  | eventual.TestRequestsOfSend | {"a", large, 2, «3»},
an idle worker's polls in the first ten minutes, at most |  | eventual.TestIdlePolls | polls > «25»
Insert with an OnCommit that calls the handler |  | eventual.TestOnCommitRequests | {name: "an outbox", want: «4»,
Insert with an OnCommit, with patterns.Async |  | eventual.TestOnCommitRequests | {name: "an asynchronous outbox", want: «3»,
Insert with an OnCommit, with Ordered |  | eventual.TestOnCommitRequests | {name: "an ordered outbox", want: «7»,
Insert with one index across partitions and an OnCommit |  | eventual.TestOnCommitRequests | {name: "an index and an outbox", want: «6»,
Delete with only an OnCommit outside, whose Deletes is false |  | eventual.TestOnCommitRequests | !c.byEmail && n != «1»
Queue.Send, Mover.Move, a worker for a message with a short handler, without the polls |  | eventual/archive.TestMoverMoves | if n := counter.Reset(); n != «1» {
a worker for a move to a repository or a container |  | eventual/archive.TestMoverMoves | n != «7»+emptyPolls
# Lists, and copies of other entities' properties
Insert, Replace or Delete with indexentities.NewInPartition, in one or two lists | list that the entity is in or enters=1 | indexentities.TestRequestCounts | {world{option: inPartition}, «2», 2, 3, 3, 2},
Insert, Replace or Delete with indexentities.NewInPartition, in one or two lists | list that the entity is in or enters=2 | indexentities.TestRequestCounts | {world{option: inPartition}, 2, 2, «3», 3, 2},
Insert, Delete, or a Replace that changes the value, with NewInTable |  | indexentities.TestRequestCounts | {world{option: outside}, «3», 1, 3, 2, 3},
Insert, Delete, or a Replace that changes the value, with NewInTable |  | indexentities.TestRequestCounts | {world{option: outside}, 3, 1, «3», 2, 3},
Replace that keeps the value, with NewInTable |  | indexentities.TestRequestCounts | {world{option: outside}, 3, «1», 3, 2, 3},
Keys |  | indexentities.TestRequestCounts | {"Keys", «1»,
Find, Page | key=2 | indexentities.TestRequestCounts | {"Find", «3»,
Find, Page | key=1 | indexentities.TestRequestCounts | {"Page", «2»,
Insert, Replace or Delete of a source with denormalization.NewInPartition | holder=1 | denormalization.TestRequestCounts | one, two = «1+1», 1+2
Insert, Replace or Delete of a source with denormalization.NewInPartition | holder=2 | denormalization.TestRequestCounts | one, two = 1+1, «1+2»
Insert of a holder with its copy in the partition |  | denormalization.TestRequestCounts | cost(«1+1», "Insert of a holder in the partition"
denormalization.New: a change of a source and of the copy in its one holder |  | denormalization.TestRequestCounts | one, two := «1+2+2+1», 1+2+2+1+1
New: a change of a source with many holders whose keys lie close together | group of holders in a partition=1 | denormalization.TestRequestsOfManyHolders | partitions: 1, named: «1 + 2 + 1 + 1 + 1»
New: a change of a source with many holders whose keys lie close together | group of holders in a partition=4 | denormalization.TestRequestsOfManyHolders | partitions: 4, named: «1 + 2 + 4 + 4 + 1»
New with Find: a change of a source whose holders are found without an index | page=1, group of holders in a partition=1 | denormalization.TestRequestCountsOfFanOut | cost(«1+2+1+1+1», "Insert",
New with Async: a change of a source |  | denormalization.TestRequestCounts | one, two = «1+2», 1+2
New with Find: an insert of a holder with its copy, or a write that gives a holder another source |  | denormalization.TestRequestCountsOfFanOut | cost(«1+2+1+1+1», "Insert of a holder"
a read of a holder with its copy |  | denormalization.TestRequestCounts | cost(«1», "reading a department with its manager"
# Verify, Repair, Rebuild
Verify of indexes without findings | page of each table that has rows=2 | patterns.TestRepairRequests | want("a table without discrepancies", cost(verify), pages(«2»))
Verify where one copy in the partition is missing | without=2 | patterns.TestRepairRequests | storagetest.QueryEntities: «3», storagetest.GetEntity: «4»
Repair of 100 missing copies in the partition, without the requests of Verify |  | patterns.TestRequestCountsOfRepair | {"missing", «8»,
Repair of 100 missing copies in one other partition, without the requests of Verify |  | patterns.TestRequestCountsOfRepair | {"outside", «5»,
Repair of 100 spurious rows of a partition, without the requests of Verify |  | patterns.TestRequestCountsOfRepair | {"spurious", «1»,
RemoveUnattached of an index of 200 entities of a partition |  | patterns.TestRequestCountsOfRemoveUnattached | want = «1 + 1 + 2 + 2»
Rebuild of a complete index in the partition | page=1 | patterns.TestRepairRequests | Patterns: []string{"email"}}); err != nil { t.Error(err) } }), pages(«1»))
Rebuild of an index in the partition | page=1, change set of entities that the index lacks=1 | patterns.TestRequestCountsOfRebuild | {"Rebuild of an index that 7 entities lack", «2»,
Rebuild of an index in the partition | page=1 | patterns.TestRequestCountsOfRebuild | {"Rebuild once more", «1»,
Rebuild of 1,000 entities that lack a unique copy in one other partition |  | patterns.TestRequestCountsOfRebuildOutside | {"a new index", n, «25»,
Rebuild of 1,000 entities in 20 lists of NewInTable |  | patterns.TestRebuildOfLists | const n, want = 1000, «24»
# Answers that are lost
a transaction of inserts whose response is lost, with the SDK's retry | row=4, rows=4 | patterns.TestRequestCountsAfterLostAnswers | got != «2+rows» {
# Entities over several rows
Insert, and Get of an entity in one row |  | widentities.TestSizes | {withNumbers(1, 244), 1, «1»},
Get of an entity in several rows |  | widentities.TestSizes | {withNumbers(2, 245), 2, «2»},
Insert, and Get of an entity in one row |  | widentities.TestSizes | assert.Equal(t, requests.Reset(), «1», "the insert
Merge, Update, Upsert, ReplaceUnconditional, DeleteUnconditional of an entity in several rows |  | widentities.TestMergeTouchesFewRows | assert.Equal(t, requests.Reset(), «3», "the merge
Merge, Update, Upsert, ReplaceUnconditional, DeleteUnconditional of an entity in several rows |  | widentities.TestRequestCountsOfVerbs | {"Update", «3»,
Merge, Update, Upsert, ReplaceUnconditional, DeleteUnconditional of an entity in several rows |  | widentities.TestRequestCountsOfVerbs | {"Upsert", «3»,
Merge, Update, Upsert, ReplaceUnconditional, DeleteUnconditional of an entity in several rows |  | widentities.TestRequestCountsOfVerbs | {"ReplaceUnconditional", «3»,
Merge, Update, Upsert, ReplaceUnconditional, DeleteUnconditional of an entity in several rows |  | widentities.TestRequestCountsOfVerbs | {"DeleteUnconditional", «3»,
a query that finds one entity in one row, or selects properties of FirstRow |  | widentities.TestFirstRow | {nil, tables.Eq("Email", "p2@contoso.com"), «1»},
a query that finds one entity in several rows, or selects a property of one further row |  | widentities.TestFirstRow | {nil, tables.Eq("Email", "p1@contoso.com"), «2»},
a query that finds one entity in one row, or selects properties of FirstRow |  | widentities.TestFirstRow | {[]string{"Email"}, tables.Eq("Email", "p1@contoso.com"), «1»},
a query that finds one entity in several rows, or selects a property of one further row |  | widentities.TestFirstRow | {[]string{"Email", "Answer00003"}, tables.Eq("Email", "p1@contoso.com"), «2»},
a query that selects properties of two further rows that are not adjacent |  | widentities.TestFirstRow | {[]string{"Answer00003", "Answer04900"}, tables.Eq("Email", "p1@contoso.com"), «3»},
# Large properties in blobs
Insert of large values, Replace of small values by large ones | blob=1 | largeentities.TestRequestCounts | {"Insert", «2»,
Insert of large values, Replace of small values by large ones | blob=1 | largeentities.TestRequestCounts | {"Replace, large", «2»,
Replace of a []byte or string by another large value | blob=1 | largeentities.TestRequestCounts | {"Replace, another value", «3»,
Merge of a Stream whose blob is replaced |  | largeentities.TestRequestCounts | {"Merge, another Stream", «5»,
Merge of a []byte whose blob is replaced |  | largeentities.TestRequestCounts | {"Merge, another value", «5»,
Replace with an unchanged value, Insert of small values, Get with a Stream, Stream.Open |  | largeentities.TestRequestCounts | {"Replace, same value", «1»,
Replace with an unchanged value, Insert of small values, Get with a Stream, Stream.Open |  | largeentities.TestRequestCounts | {"Insert, all small", «1»,
Delete of an entity with only []byte or string values in blobs | blob=1 | largeentities.TestRequestCounts | {"Delete", «2»,
Get | []byte or string in a blob=1 | largeentities.TestRequestCounts | {"Get", «2»,
Replace with an unchanged value, Insert of small values, Get with a Stream, Stream.Open |  | largeentities.TestRequestCounts | {"Get with a Stream", «1»,
Replace with an unchanged value, Insert of small values, Get with a Stream, Stream.Open |  | largeentities.TestRequestCounts | {"Open", «1»,
# Series
Set, SetMany in a row or rows |  | dataseries.TestRequestCounts | {world{place: inRow, slots: 24}, «1», 2, 3, 1, 2, 1},
Set, SetMany in a row or rows |  | dataseries.TestRequestCounts | {world{place: inRows, slots: 365}, «1», 2, 3, 1, 2, 2},
Set, SetMany in a blob |  | dataseries.TestRequestCounts | {world{place: inBlob, slots: 365}, «2», 2, 1,
Set of a Counter, Add, AddOnce, StageAddOnce |  | dataseries.TestRequestCounts | {"Set of a counter", «2»,
Set of a Counter, Add, AddOnce, StageAddOnce |  | dataseries.TestRequestCounts | {"Add", «2»,
Set of a Counter, Add, AddOnce, StageAddOnce |  | dataseries.TestRequestCounts | {world{place: inRow, slots: 24}, 1, «2», 3, 1, 2, 1},
AddOnce of an operation that was counted before, in a row or rows |  | dataseries.TestRequestCounts | {world{place: inRow, slots: 24}, 1, 2, «3», 1, 2, 1},
AddOnce of an operation that was counted before, in a blob |  | dataseries.TestRequestCounts | {world{place: inBlob, slots: 365}, 2, 2, «1»,
Set of a Counter, Add, AddOnce, StageAddOnce |  | dataseries.TestRequestCounts | requests.Count() != «2» { t.Errorf("StageAddOnce
Read, and Delete of a series in one row or a blob |  | dataseries.TestRequestCounts | {"Read", «1»,
ReadMany | page=1 | dataseries.TestRequestCounts | {world{place: inRows, slots: 365}, 1, 2, 3, «1», 2, 2},
ReadMany in blobs | page of the list=1, series=2 | dataseries.TestRequestCounts | {world{place: inBlob, slots: 365}, 2, 2, 1, «1 + 2»,
Read, and Delete of a series in one row or a blob |  | dataseries.TestRequestCounts | {world{place: inRow, slots: 24}, 1, 2, 3, 1, 2, «1»},
Read, and Delete of a series in one row or a blob |  | dataseries.TestRequestCounts | {world{place: inBlob, slots: 365}, 2, 2, 1, 1 + 2, 1 + 2, «1»},
Delete of a series in several rows |  | dataseries.TestRequestCounts | {world{place: inRows, slots: 365}, 1, 2, 3, 1, 2, «2»},
SweepMarkers in rows | page of old markers=1, 100 markers of a partition=4 | dataseries.TestSweepRequests | requests.Count() != «2+4»
# Spread keys
Spread.Insert, Replace, Delete, Get below the known horizon, Sync, Epochs, Partitions |  | scatter.TestRequestCounts | cost(«1», "Insert",
Spread.Insert, Replace, Delete, Get below the known horizon, Sync, Epochs, Partitions |  | scatter.TestRequestCounts | cost(«1», "Replace",
Spread.Insert, Replace, Delete, Get below the known horizon, Sync, Epochs, Partitions |  | scatter.TestRequestCounts | cost(«1», "Delete",
Spread.Insert, Replace, Delete, Get below the known horizon, Sync, Epochs, Partitions |  | scatter.TestRequestCounts | cost(«1», "Get",
Update, Upsert, DeleteUnconditional below the known horizon, Resize |  | scatter.TestRequestCounts | cost(«2», "Update",
Update, Upsert, DeleteUnconditional below the known horizon, Resize |  | scatter.TestRequestCounts | cost(«2», "Upsert",
Update, Upsert, DeleteUnconditional below the known horizon, Resize |  | scatter.TestRequestCounts | cost(«2», "DeleteUnconditional",
GetMany with keys above the known horizon | key below the stored horizon=2 | scatter.TestRequestCounts | cost(«1+2», "GetMany of some rows above the horizon"
the first insert above the stored horizon, or the first inserts of many goroutines together | without=1 | scatter.TestRequestCounts | cost(«3», "the Insert that moves the horizon",
the first insert above the horizon that a program knows, if another program has moved the horizon | without=1 | scatter.TestRequestCounts | cost(«2», "the first Insert of another program",
the first insert above the stored horizon, or the first inserts of many goroutines together | without=16 | scatter.TestOneAsksForAll | assert.Equal(t, counter.Reset(), «16+2», "requests for 16
Range | page of each partition=6 | scatter.TestRequestCounts | cost(«1+6», "Range of everything",
Range below the known horizon | page of each partition=4 | scatter.TestRequestCounts | cost(«4», "Range below the last change of n",
Update, Upsert, DeleteUnconditional below the known horizon, Resize |  | scatter.TestRequestCounts | cost(«2», "Resize",
Spread.Insert, Replace, Delete, Get below the known horizon, Sync, Epochs, Partitions |  | scatter.TestRequestCounts | cost(«1», "Sync",
Spread.Insert, Replace, Delete, Get below the known horizon, Sync, Epochs, Partitions |  | scatter.TestRequestCounts | cost(«1», "Epochs",
Spread.Insert, Replace, Delete, Get below the known horizon, Sync, Epochs, Partitions |  | scatter.TestRequestCounts | cost(«1», "Partitions",
# Logs newest first, and tables for periods
Log.Append |  | logtail.TestAppendAgain | range []int{«1», 2} {
Log.Append of an entry that exists |  | logtail.TestAppendAgain | range []int{1, «2»} {
Log.Latest | 1,000 entries=1 | logtail.TestLatestIsOneRequest | requests.Count() != «1» { t.Errorf("the latest %d of
Log.Latest | 1,000 entries=3 | logtail.TestLatestIsOneRequest | len(got) != 2500 || requests.Count() != «3» {
Log.Between | page=1 | logtail.TestBetween | if want := «1»; c.name != "backwards"
Follower.Poll with 1,500 entries in the window |  | logtail.TestFollowIdle | {{1500, «3», 30_000},
Follower.Poll with an empty window and no new entry |  | logtail.TestFollowIdle | {0, «1», 200}}
Tables.Insert, Get, Replace, Delete |  | highvolumedelete.TestRequestCounts | {"Insert", «1»,
Tables.Insert, Get, Replace, Delete |  | highvolumedelete.TestRequestCounts | {"late Insert", «1»,
the first Tables.Insert of a period |  | highvolumedelete.TestRequestCounts | {"Insert, no table", «4»,
Tables.Insert, Get, Replace, Delete |  | highvolumedelete.TestRequestCounts | {"Get", «1»,
Tables.Insert, Get, Replace, Delete |  | highvolumedelete.TestRequestCounts | {"Replace", «1»,
Tables.Insert, Get, Replace, Delete |  | highvolumedelete.TestRequestCounts | {"Delete", «1»,
Prepare | period=2 | highvolumedelete.TestRequestCounts | {"Prepare", «4»,
a later Drop that moves the mark | table=60 | highvolumedelete.TestDropSaves | requests.Count() != «63»
Tables.Between with both bounds, of one partition, if each period's rows fit in a page | period=5 | highvolumedelete.TestBetween | {"june", at(18, 0), at(23, 0), june, []string{"june 18T09:00", "june 18T10:00", "june 20T00:00", "june 20T23:00", "june 22T08:00"}, «5»},
# Log records
the first durable Write of a period |  | logdata.TestRequestCounts | want("the first Write", kinds{storagetest.PutBlob: «1», storagetest.AppendBlock: «1»})
later durable Writes of the period | Write=5 | logdata.TestRequestCounts | range 5 { … want("5 Writes", kinds{storagetest.AppendBlock: «5»})
a buffered Write |  | logdata.TestRequestCounts | want("1,000 buffered Writes", kinds{})
Close with nothing buffered | unfinished blob=1 | logdata.TestRequestCounts | want("Close", kinds{storagetest.SetBlobMetadata: «1»})
Query of hours or days | hour or whole day=2, blob of up to a MiB=4 | logdata.TestQueryTouchesOnlyWhatCanHoldTheRange | 16*time.Hour + time.Minute, 4, «2», «4», 0, 0},
Query of hours or days | hour or whole day=1, blob of up to a MiB=156 | logdata.TestQueryTouchesOnlyWhatCanHoldTheRange | {"the day", 0, 24 * time.Hour, 1560, «1», «156», 0, 0},
# Several types in a table, and relationships
Registry.Get, or a page |  | heterogeneous.TestRequestCounts | cost(«1», "Get", err)
Registry.Get, or a page |  | heterogeneous.TestRequestCounts | cost(«1», "a page", err)
a page of entities that their repository must read | entity=2 | heterogeneous.TestRequestCounts | cost(«1+2», "a page of two that the repository reads", err)
Modify, Merge of a typed repository, Replace or Delete of an entity read by a registry |  | heterogeneous.TestRequestCounts | cost(«2», "Replace of what a query has read",
Modify, Merge of a typed repository, Replace or Delete of an entity read by a registry |  | heterogeneous.TestRequestCounts | cost(«2», "Delete of what the registry has read",
Modify, Merge of a typed repository, Replace or Delete of an entity read by a registry |  | heterogeneous.TestRequestCounts | cost(«2», "Modify, known",
Modify, Merge of a typed repository, Replace or Delete of an entity read by a registry |  | heterogeneous.TestRequestCounts | cost(«2», "Modify, unknown",
Modify of an entity with patterns, or of an entity of an older version |  | heterogeneous.TestRequestCounts | cost(«4», "Modify, an older version",
Modify of an entity with patterns, or of an entity of an older version |  | heterogeneous.TestRequestCounts | cost(«4», "Modify, with copies",
Upgrade | page of older rows=1, change set of older entities in a partition=1 | heterogeneous.TestRequestCounts | cost(«1+1», "Upgrade of one", err)
Upgrade of 1,000 entities of a partition |  | heterogeneous.TestUpgradeRequests | {1000, «1 + 10», nil}
Modify, Merge of a typed repository, Replace or Delete of an entity read by a registry |  | heterogeneous.TestRequestCounts | cost(«2», "Merge",
a new child with Count, a new value with Summary, a new or removed child with ParentCount |  | relationships.TestRequestCounts | ownRow: {3, «2», 1, 2, 2, 1}
the first child with Count in a partition, the first value of a group with Summary, a change to another parent with ParentCount, a new or removed child with Members and Async |  | relationships.TestRequestCounts | ownRow: {«3», 2, 1, 2, 2, 1}
a read of the number of Count or Members, or of the aggregate of Summary |  | relationships.TestRequestCounts | ownRow: {3, 2, 1, 2, 2, «1»}
a new child with Count, a new value with Summary, a new or removed child with ParentCount |  | relationships.TestRequestCounts | summed: {3, «2», 1, 5, 2, 1}
the first child with Count in a partition, the first value of a group with Summary, a change to another parent with ParentCount, a new or removed child with Members and Async |  | relationships.TestRequestCounts | summed: {«3», 2, 1, 5, 2, 1}
a read of the number of Count or Members, or of the aggregate of Summary |  | relationships.TestRequestCounts | summed: {3, 2, 1, 5, 2, «1»}
a new child with Count, a new value with Summary, a new or removed child with ParentCount |  | relationships.TestRequestCounts | inParent: {2, «2», 1, 3, 2, 1}
the first child with Count in a partition, the first value of a group with Summary, a change to another parent with ParentCount, a new or removed child with Members and Async |  | relationships.TestRequestCounts | inParent: {2, 2, 1, «3», 2, 1}
a new child after a parent's first child, or a removed child, with Members |  | relationships.TestRequestCounts | members: {8, «7», 1, 11, 7, 1}
a read of the number of Count or Members, or of the aggregate of Summary |  | relationships.TestRequestCounts | members: {8, 7, 1, 11, 7, «1»}
the first child with Count in a partition, the first value of a group with Summary, a change to another parent with ParentCount, a new or removed child with Members and Async |  | relationships.TestRequestCounts | async: {3, «3», 1, 3, 3, 1}
Insert, Delete of a Pair |  | relationships.TestRequestCountsOfPairs | cost(«1», "Insert of a pair",
Insert, Delete of a Pair |  | relationships.TestRequestCountsOfPairs | cost(«1», "Delete of a pair",
Get of a Pair |  | relationships.TestRequestCountsOfPairs | cost(«2», "Get of a pair",
Join over a query | page=1, different key in a batch=3 | relationships.TestJoin | 0: «1 + 3»,
Join over a query with a Cache | page=1, page of the cache=1 | relationships.TestJoin | counter.Count() != «2» { t.Errorf("through a cache
# Encryption
the first write with a data key | without=1 | encryption.TestRequestCounts | cost(«3», 1, "the first Insert",
the first read with a data key | without=1 | encryption.TestRequestCounts | cost(«2», 1, "the first Get",
later Insert, Replace, Get |  | encryption.TestRequestCounts | cost(«1», 0, "Replace",
later Insert, Replace, Get |  | encryption.TestRequestCounts | cost(«1», 0, "Get",
CreateDataKey of the next data key |  | encryption.TestRequestCounts | cost(«3», 1, "CreateDataKey",
a read through an index with Project that was attached after the entity was sealed |  | encryption.TestCopiesThatProveNothing | requests("before", «2»)
Rewrap of keys that already have the newest wrapping key |  | encryption.TestRequestCounts | cost(«2», 2, "Rewrap of two keys that stay",
Reencrypt, if all entities have the current data key | page=1 | encryption.TestRequestCounts | cost(«1+1», 0, "Reencrypt of none",
Reencrypt with a data key that is new to the program | page=1, change set of a partition=1 | encryption.TestRequestCounts | cost(«1+1+1+1+1», 1, "Reencrypt of one entity, with the new data key",
# Shared access signatures
a request that a token's client refuses |  | access.TestClientsAskOnlyForWhatTheyMay | if counter.Count() != «0» || !errors.Is(err, want)
Policies.List |  | access.TestPoliciesCost | GetTableACL) != «1»+2+2
Policies.Create, or Revoke |  | access.TestPoliciesCost | GetTableACL) != 1+«2»+2 … SetTableACL) != «2»+2 {
`
