package projectrules

// costCases say for each operation of docs/reference/costs.md where a test wants its number: operation | values of the units |
// test | what stands in the test, with the number between « and ». A line "# ..." is the section of the page. Where a test is
// changed, change the line here; where its number is changed, the page has to change, too.
const costCases = `
# Tables and rows
Create, CreateIfMissing, Drop of a table |  | patterns.TestRequestCountsOfTables | {"Create", «1»,
Create, CreateIfMissing, Drop of a table |  | patterns.TestRequestCountsOfTables | {"CreateIfMissing", «1»,
Create, CreateIfMissing, Drop of a table |  | patterns.TestRequestCountsOfTables | {"Drop", «1»,
every verb of Rows |  | patterns.TestRequestCounts | {"Insert of a bag", «1»,
every verb of Rows |  | patterns.TestRequestCounts | {"Replace of a bag", «1»,
every verb of Rows |  | patterns.TestRequestCounts | {"Merge of a bag", «1»,
every verb of Rows |  | patterns.TestRequestCounts | {"Upsert of a bag", «1»,
every verb of Rows |  | patterns.TestRequestCounts | {"Delete of a bag", «1»,
every verb of Rows |  | patterns.TestRequestCountsOfTables | {"DeleteUnconditional of a row", «1»,
a row that the library refuses as ErrInvalid or ErrTooLarge |  | patterns.TestRequestCountsOfTables | {"a refused row", «0»,
Transaction.Commit of rows |  | patterns.TestRequestCountsOfTables | {"Commit", «1»,
StageInsert, StageReplace, StageDelete |  | patterns.TestRequestCountsOfTables | {"StageInsert", «0»,
Commit of two entities with two new outside copies each, of one partition for each index |  | interpartition.TestSetRequests | {6, «7»},
Commit of two entities with two new Unique keys each, of one partition for each index |  | interpartition.TestSetRequests | {8, «9»}}
BulkNonAtomic of 1,000 entities in 10 partitions, with two outside indexes of one group each and lists of 20 values in the partition |  | interpartition.TestBulkInSets | requests != «140»
BulkNonAtomic of small rows | 100 rows of a partition=30 | patterns.TestRequestCountsOfTables | {"3,000 rows of two partitions in bulk", «30»,
Store.Ready of tables, containers, storage queues and poison queues | resource=5 | patterns.TestReady | n != «5» {
# Queries
a point query: Get, or Query with partition and row |  | patterns.TestRequestCounts | {"Get", «1»,
a point query: Get, or Query with partition and row |  | patterns.TestRequestCounts | {"point query by Query", «1»,
a point query: Get, or Query with partition and row |  | patterns.TestRequestCountsOfReads | {"a point query", «1»,
All of any other query | page=2 | patterns.TestRequestCountsOfReads | {"a partition of 1,500 rows", «2»,
All of any other query | page=15 | patterns.TestRequestCountsOfReads | {"1,500 rows in pages of 100", «15»,
Page, and First or Top that one page answers |  | patterns.TestRequestCountsOfReads | {"First", «1»,
Page, and First or Top that one page answers |  | patterns.TestRequestCountsOfReads | {"one page", «1»,
Page, and First or Top that one page answers |  | patterns.TestRequestCountsOfReads | {"the first 10 of 1,500 rows", «1»,
Plan, a refused table scan, a filter whose keys contradict each other |  | patterns.TestRequestCountsOfReads | {"Plan", «0»,
Plan, a refused table scan, a filter whose keys contradict each other |  | patterns.TestRequestCountsOfReads | {"a contradiction", «0»,
Plan, a refused table scan, a filter whose keys contradict each other |  | patterns.TestRequestCountsOfReads | {"a refused table scan", «0»,
GetMany | key=4 | patterns.TestRequestCountsOfReads | {"3 of 4 keys that are there", «4»,
AllPartitions | page of each partition=4 | patterns.TestRequestCountsOfReads | {"two partitions of 1,500 rows side by side", «4»,
# Repositories
Insert, Replace, Delete, Get |  | patterns.TestRequestCounts | {"Insert with three indexes", «1»,
Insert, Replace, Delete, Get |  | patterns.TestRequestCounts | {"Replace with three indexes", «1»,
Insert, Replace, Delete, Get |  | patterns.TestRequestCounts | {"Delete with three indexes", «1»,
Insert, Replace, Delete, Get |  | patterns.TestRequestCounts | {"Get", «1»,
Merge without patterns |  | patterns.TestRequestCountsOfTables | {"Merge without patterns", «1»,
with patterns |  | patterns.TestRequestCounts | {"Merge with three indexes", «2»,
Update |  | patterns.TestRequestCounts | {"Update", «2»,
Update | conflict=1 | patterns.TestRequestCountsOfConflicts | {"Update with one concurrent writer", «4»,
Update | conflict=3 | patterns.TestRequestCountsOfConflicts | {"Update with three concurrent writers", «8»,
Upsert, ReplaceUnconditional, DeleteUnconditional |  | patterns.TestRequestCounts | {"Upsert", «2»,
Upsert, ReplaceUnconditional, DeleteUnconditional |  | patterns.TestRequestCounts | {"ReplaceUnconditional", «2»,
Upsert, ReplaceUnconditional, DeleteUnconditional |  | patterns.TestRequestCountsOfTables | {"DeleteUnconditional of an entity", «2»,
Explain, Check |  | patterns.TestRequestCounts | {"Explain", «0»,
Explain, Check |  | patterns.TestRequestCounts | {"Check", «0»,
a change whose index key is taken, ErrDuplicate | without=1 | examples/contoso.TestRun | "a new employee with that email": «3»,
a change that removes a copy which is gone already | without=4 | intrapartition.TestRequestCounts | {"removal of a copy that is gone, read and Replace", «5»,
the first change after a program without the index has written the entity | without=2, key in that index=12 | patterns.TestRepositoryOrphanedCopies | n != «2+12»
# Indexes within a partition
Get |  | intrapartition.TestRequestCounts | {"Get", «1»,
Get |  | intrapartition.TestRequestCounts | {"Get with a Tuple", «1»,
GetFull |  | intrapartition.TestRequestCounts | {"GetFull", «2»,
Range, Query | page=1 | intrapartition.TestRequestCounts | {"Range", «1»,
Get, and a Replace, Merge or Delete of what it gave |  | intrapartition.TestRequestCounts | {"read through a copy, and Replace", «3»,
Get, and a Replace, Merge or Delete of what it gave |  | intrapartition.TestRequestCounts | {"read through a projection, and Merge", «3»,
Get, and a Replace, Merge or Delete of what it gave |  | intrapartition.TestRequestCounts | {"read through a projection, and Delete", «3»,
# Indexes across partitions, and messages
Insert, Replace, Delete | copy=2, step.reads=0, step.stay=2, step.come=0, remove=0 | interpartition.TestRequestCounts | own := «step.reads + 1 + 2» … own += «step.stay + step.come + remove + 1»
Insert, Replace, Delete | copy=3, step.reads=0, step.stay=1, step.come=1, step.gone=1, remove=1 | interpartition.TestRequestCounts | own := «step.reads + 1 + 2» … remove := step.gone … own += «step.stay + step.come + remove + 1»
the same with Unique | without=7, new key=1, key that goes=1, step.reads=0, step.stay=1, step.come=1, remove=3 | interpartition.TestRequestCounts | own := «step.reads + 1 + 2» … own += «step.come» … remove = 3 * step.gone … own += «step.stay + step.come + remove + 1»
the same with Async | step.reads=0 | interpartition.TestRequestCounts | own := «step.reads + 1 + 2»
Upsert, or Replace of what was read through the index |  | interpartition.TestRequestCounts | {"Upsert", none, func(*employee) error { return c.repo.Upsert(ctx, jones()) }, 0, 2, 2, «1»},
Upsert, or Replace of what was read through the index |  | interpartition.TestRequestCounts | {"Replace of what was read through an index", through, replace(rename), 2, 0, 0, «1»},
Get |  | interpartition.TestRequestCountsOfReads | {"Get", «1»,
GetFull, Verified().Get |  | interpartition.TestRequestCountsOfReads | {"GetFull", «2»,
GetFull, Verified().Get |  | interpartition.TestRequestCountsOfReads | {"Verified.Get", «2»,
Range, Query | page=1 | interpartition.TestRequestCountsOfReads | {"Range", «1»,
Range, Query | page=1 | interpartition.TestRequestCountsOfReads | {"Query", «1»,
Verified().Range | page=1, entity=3 | interpartition.TestRequestCountsOfReads | {"Verified.Range", «1 + 3»,
Queue.Send |  | eventual.TestRequestsOfSend | {{"a", "", «1», 1},
with a large body |  | eventual.TestRequestsOfSend | {"a", large, «2», 3},
a worker, for a message with a short handler, beside the polls |  | eventual.TestRequestsOfSend | {{"a", "", 1, «1»},
for one with a large body |  | eventual.TestRequestsOfSend | {"a", large, 2, «3»},
an idle worker's first ten minutes, at least |  | eventual.TestIdlePolls | polls < «17»
at most |  | eventual.TestIdlePolls | polls > «25»
an Insert with an OnCommit that calls the handler |  | eventual.TestOnCommitRequests | {name: "an outbox", want: «4»,
the same with patterns.Async |  | eventual.TestOnCommitRequests | {name: "an asynchronous outbox", want: «3»,
with Ordered |  | eventual.TestOnCommitRequests | {name: "an ordered outbox", want: «7»,
an Insert with an outside index and an OnCommit, as without the OnCommit |  | eventual.TestOnCommitRequests | {name: "an index", want: «5»,
an Insert with an outside index and an OnCommit, as without the OnCommit |  | eventual.TestOnCommitRequests | {name: "an index and an outbox", want: «5»,
a Delete with an OnCommit without Deletes, and nothing else outside |  | eventual.TestOnCommitRequests | !c.byEmail && n != «1»
Mover.Move |  | eventual/archive.TestMoverMoves | if n := counter.Reset(); n != «1» {
the worker's part, to a repository or a container |  | eventual/archive.TestMoverMoves | n != «7»+emptyPolls
the worker's part for an order with lines |  | eventual/archive.TestMoverMovesAlong | 1+«8»+emptyPolls
the worker's part for a message that comes again after the move |  | eventual/archive.TestMoverRedelivery | counter.Count() - emptyPolls; n != «5» {
# Lists, and copies of other entities' properties
Insert, Replace or Delete with indexentities.NewInPartition | list that the entity is in or enters=1 | indexentities.TestRequestCounts | {world{option: inPartition}, «2», 2, 3, 3, 2},
Insert, Replace or Delete with indexentities.NewInPartition | list that the entity is in or enters=2 | indexentities.TestRequestCounts | {world{option: inPartition}, 2, 2, «3», 3, 2},
Insert, Delete, or Replace of a value, with NewInTable or NewInBlobs | list that it enters or leaves=1 | indexentities.TestRequestCounts | {world{option: outside}, «6», 1, 8, 2, 6},
Insert, Delete, or Replace of a value, with NewInTable or NewInBlobs | list that it enters or leaves=2 | indexentities.TestRequestCounts | {world{option: inBlobs}, 6, 1, «8», 2, 6},
either with Async |  | indexentities.TestRequestCounts | {world{option: outside, async: true}, «3», 1, 3, 2, 3},
either with Async |  | indexentities.TestRequestCounts | {world{option: inBlobs, async: true}, 3, 1, «3», 2, 3},
Keys |  | indexentities.TestRequestCounts | {"Keys", «1»,
Find, Page | key=2 | indexentities.TestRequestCounts | {"Find", «3»,
Find, Page | key=1 | indexentities.TestRequestCounts | {"Page", «2»,
Insert, Replace or Delete of a source with denormalization.NewInPartition | holder=1 | denormalization.TestRequestCounts | one, two = «1+1», 1+2
Insert, Replace or Delete of a source with denormalization.NewInPartition | holder=2 | denormalization.TestRequestCounts | one, two = 1+1, «1+2»
a holder that is inserted with its copy in the partition |  | denormalization.TestRequestCounts | cost(«1+1», "Insert of a holder in the partition"
the same with denormalization.New, if the copy of its one holder changes |  | denormalization.TestRequestCounts | one, two := «1+2+2+1», 1+2+2+1+1
the same with many holders whose keys lie close together | group of holders in a partition=1 | denormalization.TestRequestsOfManyHolders | partitions: 1, named: «1 + 2 + 1 + 1 + 1»
the same with many holders whose keys lie close together | group of holders in a partition=4 | denormalization.TestRequestsOfManyHolders | partitions: 4, named: «1 + 2 + 4 + 4 + 1»
one of these holders changes meanwhile | without=6 | denormalization.TestRequestsOfManyHolders | hot: true, named: «1 + 2 + 1 + 1 + 1 + 3»
its holders found by Find without an index | page=1, group of holders in a partition=1 | denormalization.TestRequestCountsOfFanOut | cost(«1+2+1+1+1», "Insert",
the same with Async |  | denormalization.TestRequestCounts | one, two = «1+2», 1+2
with Find, an insert of a holder with its copy, or a write that gives a holder another source |  | denormalization.TestRequestCountsOfFanOut | cost(«1+2+1+1+1», "Insert of a holder"
a holder with its copy |  | denormalization.TestRequestCounts | cost(«1», "reading a department with its manager"
# Verify, Repair, Rebuild
Verify of indexes without findings | page of the tables that hold something=2 | patterns.TestRepairRequests | want("a table without discrepancies", cost(verify), pages(«2»))
Verify where one copy in the partition is missing | without=2 | patterns.TestRepairRequests | storagetest.QueryEntities: «3», storagetest.GetEntity: «4»
Repair of 100 missing copies of a partition, beside Verify |  | patterns.TestRequestCountsOfRepair | {"missing", «8»,
of 100 missing copies in one other partition |  | patterns.TestRequestCountsOfRepair | {"outside", «8»,
of 100 spurious rows of a partition |  | patterns.TestRequestCountsOfRepair | {"spurious", «1»,
RemoveUnattached of an index of 200 entities of a partition |  | patterns.TestRequestCountsOfRemoveUnattached | want = «1 + 1 + 2 + 2»
Rebuild of a complete index in the partition | page=1 | patterns.TestRepairRequests | Patterns: []string{"email"}}); err != nil { t.Error(err) } }), pages(«1»))
Rebuild of an index in the partition | page=1, set of entities that it lacks=1 | patterns.TestRequestCountsOfRebuild | {"Rebuild of an index that 7 entities lack", «2»,
Rebuild of an index in the partition | page=1 | patterns.TestRequestCountsOfRebuild | {"Rebuild once more", «1»,
Rebuild of 1,000 entities that lack a unique copy in one other partition |  | patterns.TestRequestCountsOfRebuildOutside | {{1, «38», 45, 197}
Rebuild of 1,000 entities in 20 lists of NewInTable |  | patterns.TestRequestCountsOfRebuildOutside | {{1, 38, «45», 197}
of NewInBlobs |  | patterns.TestRequestCountsOfRebuildOutside | {{1, 38, 45, «197»}
# Answers that are lost
a transaction of inserts whose answer is lost, with the SDK's repetition | row=4, rows=4 | patterns.TestRequestCountsAfterLostAnswers | got != «2+rows» {
# Entities over several rows
Get of an entity in one row |  | widentities.TestSizes | {withNumbers(1, 244), 1, «1»},
in several |  | widentities.TestSizes | {withNumbers(2, 245), 2, «2»},
Insert |  | widentities.TestSizes | n != «1» { t.Errorf("the insert took
Merge into an entity in several rows |  | widentities.TestMergeTouchesFewRows | n != «3» { t.Errorf("the merge took
Update, Upsert, ReplaceUnconditional, DeleteUnconditional of one in several rows |  | widentities.TestRequestCountsOfVerbs | {"Update", «3»,
Update, Upsert, ReplaceUnconditional, DeleteUnconditional of one in several rows |  | widentities.TestRequestCountsOfVerbs | {"Upsert", «3»,
Update, Upsert, ReplaceUnconditional, DeleteUnconditional of one in several rows |  | widentities.TestRequestCountsOfVerbs | {"ReplaceUnconditional", «3»,
Update, Upsert, ReplaceUnconditional, DeleteUnconditional of one in several rows |  | widentities.TestRequestCountsOfVerbs | {"DeleteUnconditional", «3»,
a query that finds one entity in one row |  | widentities.TestFirstRow | {nil, tables.Eq("Email", "p2@contoso.com"), «1»},
one in several |  | widentities.TestFirstRow | {nil, tables.Eq("Email", "p1@contoso.com"), «2»},
the same with Select of properties of FirstRow |  | widentities.TestFirstRow | {[]string{"Email"}, tables.Eq("Email", "p1@contoso.com"), «1»},
of one in a further row |  | widentities.TestFirstRow | {[]string{"Email", "Answer00003"}, tables.Eq("Email", "p1@contoso.com"), «2»},
of two in further rows apart |  | widentities.TestFirstRow | {[]string{"Answer00003", "Answer04900"}, tables.Eq("Email", "p1@contoso.com"), «3»},
# Large properties in blobs
Insert, or a small value that becomes large | blob=1 | largeentities.TestRequestCounts | "sync": {world{}, «5», 1, 6, 7, 5, 8},
Replace of a []byte or string by another large value | blob=1 | largeentities.TestRequestCounts | "sync": {world{}, 5, 1, «6», 7, 5, 8},
Insert with Async | blob=1 | largeentities.TestRequestCounts | "async": {world{async: true}, «4», 1, 4, 5, 3, 5},
Merge of a Stream whose blob is replaced |  | largeentities.TestRequestCounts | "sync": {world{}, 5, 1, 6, 7, 5, «8»},
with Async |  | largeentities.TestRequestCounts | "async": {world{async: true}, 4, 1, 4, 5, 3, «5»},
Merge of a large []byte | without=7, c.merge=7 | largeentities.TestRequestCounts | {"Merge, another value", «c.merge + 1»,
a worker that deletes a blob which only a message names |  | largeentities.TestRequestsOfWorkers | n := asked + deleted; asked != 1 || n != «2»
Replace with an unchanged value |  | largeentities.TestRequestCounts | {"Replace, same value", «1»,
Insert of small values |  | largeentities.TestRequestCounts | "sync": {world{}, 5, «1», 6, 7, 5, 8},
Delete without Streams in blobs | blob=1 | largeentities.TestRequestCounts | "sync": {world{}, 5, 1, 6, 7, «5», 8},
Get | []byte or string in a blob=1 | largeentities.TestRequestCounts | {"Get", «2»,
Get with a Stream |  | largeentities.TestRequestCounts | {"Get with a Stream", «1»,
Stream.Open |  | largeentities.TestRequestCounts | {"Open", «1»,
# Series
Set, SetMany in a row or rows |  | dataseries.TestRequestCounts | {world{place: inRow, slots: 24}, «1», 2, 3, 1, 2, 1},
Set, SetMany in a row or rows |  | dataseries.TestRequestCounts | {world{place: inRows, slots: 365}, «1», 2, 3, 1, 2, 2},
in a blob |  | dataseries.TestRequestCounts | {world{place: inBlob, slots: 365}, «2», 2, 1,
Set of a Counter |  | dataseries.TestRequestCounts | {"Set of a counter", «2»,
Add |  | dataseries.TestRequestCounts | {"Add", «2»,
AddOnce |  | dataseries.TestRequestCounts | {world{place: inRow, slots: 24}, 1, «2», 3, 1, 2, 1},
AddOnce of what was counted before |  | dataseries.TestRequestCounts | {world{place: inRow, slots: 24}, 1, 2, «3», 1, 2, 1},
the same in a blob |  | dataseries.TestRequestCounts | {world{place: inBlob, slots: 365}, 2, 2, «1»,
StageAddOnce |  | dataseries.TestRequestCounts | requests.Count() != «2» { t.Errorf("StageAddOnce
Read |  | dataseries.TestRequestCounts | {"Read", «1»,
ReadMany | page=1 | dataseries.TestRequestCounts | {world{place: inRows, slots: 365}, 1, 2, 3, «1», 2, 2},
ReadMany in blobs | page of the list=1, series=2 | dataseries.TestRequestCounts | {world{place: inBlob, slots: 365}, 2, 2, 1, «1 + 2»,
Delete of a series in one row or a blob |  | dataseries.TestRequestCounts | {world{place: inRow, slots: 24}, 1, 2, 3, 1, 2, «1»},
Delete of a series in one row or a blob |  | dataseries.TestRequestCounts | {world{place: inBlob, slots: 365}, 2, 2, 1, 1 + 2, 1 + 2, «1»},
in several rows |  | dataseries.TestRequestCounts | {world{place: inRows, slots: 365}, 1, 2, 3, 1, 2, «2»},
SweepMarkers in rows | page of old markers=1, 100 markers of a partition=4 | dataseries.TestSweepRequests | requests.Count() != «2+4»
# Spread keys
Spread.Insert, Replace, Delete, Get below the known horizon |  | scatter.TestRequestCounts | cost(«1», "Insert",
Spread.Insert, Replace, Delete, Get below the known horizon |  | scatter.TestRequestCounts | cost(«1», "Replace",
Spread.Insert, Replace, Delete, Get below the known horizon |  | scatter.TestRequestCounts | cost(«1», "Delete",
Spread.Insert, Replace, Delete, Get below the known horizon |  | scatter.TestRequestCounts | cost(«1», "Get",
Update, Upsert, DeleteUnconditional there |  | scatter.TestRequestCounts | cost(«2», "Update",
Update, Upsert, DeleteUnconditional there |  | scatter.TestRequestCounts | cost(«2», "Upsert",
Update, Upsert, DeleteUnconditional there |  | scatter.TestRequestCounts | cost(«2», "DeleteUnconditional",
GetMany with keys above the known horizon | key below the stored horizon=2 | scatter.TestRequestCounts | cost(«1+2», "GetMany of some rows above the horizon"
the first insert above the horizon | without=1 | scatter.TestRequestCounts | cost(«3», "the Insert that moves the horizon",
of another program | without=1 | scatter.TestRequestCounts | cost(«2», "the first Insert of another program",
the first inserts of many goroutines at once, all together | without=16 | scatter.TestOneAsksForAll | got != «16+2» {
Range | page of each partition=6 | scatter.TestRequestCounts | cost(«1+6», "Range of everything",
below the known horizon | page of each partition=4 | scatter.TestRequestCounts | cost(«4», "Range below the last change of n",
Resize |  | scatter.TestRequestCounts | cost(«2», "Resize",
Sync, Epochs, Partitions |  | scatter.TestRequestCounts | cost(«1», "Sync",
Sync, Epochs, Partitions |  | scatter.TestRequestCounts | cost(«1», "Epochs",
Sync, Epochs, Partitions |  | scatter.TestRequestCounts | cost(«1», "Partitions",
# Logs newest first, and tables for periods
Log.Append |  | logtail.TestAppendAgain | range []int{«1», 2} {
of an entry that is there |  | logtail.TestAppendAgain | range []int{1, «2»} {
Log.Latest | 1,000 entries=1 | logtail.TestLatestIsOneRequest | requests.Count() != «1» { t.Errorf("the latest %d of
Log.Latest | 1,000 entries=3 | logtail.TestLatestIsOneRequest | len(got) != 2500 || requests.Count() != «3» {
Log.Between | page=1 | logtail.TestBetween | if want := «1»; c.name != "backwards"
Follower.Poll with 1,500 entries in the window |  | logtail.TestFollowIdle | {{1500, «3», 30_000},
with nothing new behind it |  | logtail.TestFollowIdle | {0, «1», 200}}
Tables.Insert |  | highvolumedelete.TestRequestCounts | {"Insert", «1»,
Tables.Insert |  | highvolumedelete.TestRequestCounts | {"late Insert", «1»,
the first of a period |  | highvolumedelete.TestRequestCounts | {"Insert, no table", «4»,
Tables.Get, Replace, Delete |  | highvolumedelete.TestRequestCounts | {"Get", «1»,
Tables.Get, Replace, Delete |  | highvolumedelete.TestRequestCounts | {"Replace", «1»,
Tables.Get, Replace, Delete |  | highvolumedelete.TestRequestCounts | {"Delete", «1»,
Prepare | period=2 | highvolumedelete.TestRequestCounts | {"Prepare", «4»,
Drop | table=60 | highvolumedelete.TestDropSaves | requests.Count() != «63»
the very first | table=1 | highvolumedelete.TestRequestCounts | {"the first Drop", «6»,
a dry run |  | highvolumedelete.TestRequestCounts | {"dry run", «2»,
Tables.Between with both bounds, of one partition, each period's rows in a page | period=5 | highvolumedelete.TestBetween | {"june", at(18, 0), at(23, 0), june, []string{"june 18T09:00", "june 18T10:00", "june 20T00:00", "june 20T23:00", "june 22T08:00"}, «5»},
# Log records
the first durable Write of a period |  | logdata.TestRequestCounts | want("the first Write", kinds{storagetest.PutBlob: «1», storagetest.AppendBlock: «1»})
durable Writes after that | Write=5 | logdata.TestRequestCounts | range 5 { … want("5 Writes", kinds{storagetest.AppendBlock: «5»})
a buffered Write |  | logdata.TestRequestCounts | want("1,000 buffered Writes", kinds{})
the first flush of a period in which another writer has the number |  | logdata.TestRequestCounts | kinds{storagetest.PutBlob: «2», storagetest.ListBlobs: «1», storagetest.AppendBlock: «1»}
Close with nothing buffered | blob=1 | logdata.TestRequestCounts | want("Close", kinds{storagetest.SetBlobMetadata: «1»})
Query of hours or days | hour or whole day=2, blob up to a MiB=4 | logdata.TestQueryTouchesOnlyWhatCanHoldTheRange | 16*time.Hour + time.Minute, 4, «2», «4», 0, 0},
Query of hours or days | hour or whole day=1, blob up to a MiB=156 | logdata.TestQueryTouchesOnlyWhatCanHoldTheRange | {"the day", 0, 24 * time.Hour, 1560, «1», «156», 0, 0},
# Several types in a table, and relationships
Registry.Get |  | heterogeneous.TestRequestCounts | cost(«1», "Get", err)
a page |  | heterogeneous.TestRequestCounts | cost(«1», "a page", err)
a page of entities that their repository must read | entity=2 | heterogeneous.TestRequestCounts | cost(«1+2», "a page of two that the repository reads", err)
Replace, Delete of what a registry has read |  | heterogeneous.TestRequestCounts | cost(«2», "Replace of what a query has read",
Replace, Delete of what a registry has read |  | heterogeneous.TestRequestCounts | cost(«2», "Delete of what the registry has read",
Modify |  | heterogeneous.TestRequestCounts | cost(«2», "Modify, known",
Modify |  | heterogeneous.TestRequestCounts | cost(«2», "Modify, unknown",
with patterns, or of an older version |  | heterogeneous.TestRequestCounts | cost(«4», "Modify, an older version",
with patterns, or of an older version |  | heterogeneous.TestRequestCounts | cost(«4», "Modify, with copies",
Upgrade | page of older rows=1, set of older entities in a partition=1 | heterogeneous.TestRequestCounts | cost(«1+1», "Upgrade of one", err)
Upgrade of 1,000 entities of a partition |  | heterogeneous.TestUpgradeRequests | {1000, «1 + 10», nil}
Merge of a typed repository |  | heterogeneous.TestRequestCounts | cost(«2», "Merge",
Count: a child comes |  | relationships.TestRequestCounts | ownRow: {3, «2», 1, 2, 2, 1}
the first of a partition |  | relationships.TestRequestCounts | ownRow: {«3», 2, 1, 2, 2, 1}
the number |  | relationships.TestRequestCounts | ownRow: {3, 2, 1, 2, 2, «1»}
Summary: a value comes |  | relationships.TestRequestCounts | summed: {3, «2», 1, 5, 2, 1}
the first of its group |  | relationships.TestRequestCounts | summed: {«3», 2, 1, 5, 2, 1}
one moves to a new group and was the maximum |  | relationships.TestRequestCounts | summed: {3, 2, 1, «5», 2, 1}
the aggregate |  | relationships.TestRequestCounts | summed: {3, 2, 1, 5, 2, «1»}
ParentCount: a child comes or goes |  | relationships.TestRequestCounts | inParent: {2, «2», 1, 3, 2, 1}
changes its parent |  | relationships.TestRequestCounts | inParent: {2, 2, 1, «3», 2, 1}
Members: a child comes or goes |  | relationships.TestRequestCounts | members: {8, «7», 1, 11, 7, 1}
the first of a parent |  | relationships.TestRequestCounts | members: {«8», 7, 1, 11, 7, 1}
changes to a parent without children |  | relationships.TestRequestCounts | members: {8, 7, 1, «11», 7, 1}
the number of members |  | relationships.TestRequestCounts | members: {8, 7, 1, 11, 7, «1»}
Members with Async |  | relationships.TestRequestCounts | async: {3, «3», 1, 3, 3, 1}
Pair: Insert, Delete |  | relationships.TestRequestCountsOfPairs | cost(«1», "Insert of a pair",
Pair: Insert, Delete |  | relationships.TestRequestCountsOfPairs | cost(«1», "Delete of a pair",
Get |  | relationships.TestRequestCountsOfPairs | cost(«2», "Get of a pair",
Join over a query | page=1, different key in a batch=3 | relationships.TestJoin | 0: «1 + 3»,
with a Cache | page=1, page of the cache=1 | relationships.TestJoin | counter.Count() != «2» { t.Errorf("through a cache
# Encryption
the first write with a data key | without=1 | encryption.TestRequestCounts | cost(«3», 1, "the first Insert",
its requests to the vault |  | encryption.TestRequestCounts | cost(3, «1», "the first Insert",
the first read with a data key | without=1 | encryption.TestRequestCounts | cost(«2», 1, "the first Get",
its requests to the vault, to read |  | encryption.TestRequestCounts | cost(2, «1», "the first Get",
Insert, Replace, Get after that |  | encryption.TestRequestCounts | cost(«1», 0, "Replace",
Insert, Replace, Get after that |  | encryption.TestRequestCounts | cost(«1», 0, "Get",
CreateDataKey of the next |  | encryption.TestRequestCounts | cost(«3», 1, "CreateDataKey",
its requests to the vault, to unwrap the last |  | encryption.TestRequestCounts | cost(3, «1», "CreateDataKey",
a read through an index that keeps less, attached after the entity was sealed |  | encryption.TestCopiesThatProveNothing | requests("before", «2»)
once the entity was written again |  | encryption.TestCopiesThatProveNothing | requests("afterwards", «1»)
Rewrap of keys that stay |  | encryption.TestRequestCounts | cost(«1+2», 2, "Rewrap of two keys that stay",
its requests to the vault, to unwrap | key=2 | encryption.TestRequestCounts | cost(1+2, «2», "Rewrap of two keys that stay",
Reencrypt of what has the present data key | page=1 | encryption.TestRequestCounts | cost(«1+1», 0, "Reencrypt of none",
with a data key that is new to the program | page=1, set of entities in a partition=1 | encryption.TestRequestCounts | cost(«1+1+1+1+1», 1, "Reencrypt of one entity, with the new data key",
Reencrypt of 200 entities of a partition |  | encryption.TestReencryptRequests | "plain": «1 + 1 + 2»,
with an index in the partition |  | encryption.TestReencryptRequests | "indexed": «1 + 1 + 4»,
# Shared access signatures
what a client refuses |  | access.TestClientsAskOnlyForWhatTheyMay | if counter.Count() != «0» || !errors.Is(err, want)
Policies.List |  | access.TestPoliciesCost | GetTableACL) != «1»+2+2
Policies.Create, or Revoke |  | access.TestPoliciesCost | GetTableACL) != 1+«2»+2 … SetTableACL) != «2»+2 {
`
