// Package relationships keeps and reads relationships of entities: one to many, with the number of children;
// one to one; and joins in the client over references and cached look-up tables. It implements the guide's
// "Modelling relationships".
//
// # Stored rows
//
// One to many, the children in their parent's partition. Count keeps their number in a row of its own, ParentCount in a property
// of the parent. Summary keeps number, sum, minimum and maximum of a value, in a row for each group of children:
//
//	PartitionKey  RowKey         properties
//	Sales         empid_000223   Name ...                        a child
//	Sales         employeecount  Count=2                         Count
//	Sales         salaries       Count=2 Sum=9100 Min=... Max=...  Summary; with groups salaries_<group>
//	Sales         dept_Sales     DepartmentName EmployeeCount=2  a parent with a ParentCount
//
// One to many, wherever parent and children are. Members keeps a row for each child in the parent's
// partition, of the table that it was given, and the number of children in a further row before them:
//
//	projects      members_P                           Count=2
//	projects      members_P!_Sales!_empid^1000223     the child (Sales, empid_000223) of the parent (projects, P)
//
// The third form, a child that holds its parent's properties, is package denormalization. References, pairs and caches store nothing: a
// Reference follows a link that its entity stores, or a convention of keys.
//
// # Guarantee
//
// Count, ParentCount and Summary: the number is written in the child's own transaction, under the ETag with
// which it was read. So it is exact at every moment, even with concurrent writers, crashes and repeated
// requests. After a conflict the change is tried again, up to the Schema.MaxAttempts of the children's
// repository. ParentCount refuses a child whose parent does not exist. If the number would become negative, or
// if a Count or a group has no row yet, the library counts the stored children. Summary also reads them if the
// child with the least or greatest value leaves the group.
//
// Members: the row of a child and the number are written in one transaction, under an intent. The number always
// equals the number of rows, and the rows converge to the children as package eventual describes.
//
// Programs without the pattern do not count their changes. Recount corrects Count, ParentCount and Summary exactly, while writers continue.
// Verify of the children's repository compares the rows of Count and Summary, and Repair and Rebuild correct them.
// Verify and Repair of the children's repository check and correct the rows of Members, and Members.Recount the number.
//
// A Cache returns entities that are at most TTL old. While it reads them again, with one read for all callers,
// or if the service is down, it returns entities that are up to TTL plus Stale old. A read runs in a goroutine
// of its own, which Close ends.
//
// # Crashes
//
// A transaction is applied whole or not at all. The intent of Members outlives the process, and a worker
// carries it out. Pair writes both entities in one transaction. Recount writes at most one row, or one parent.
// References and caches only read.
//
// # Requests
//
//	                                        Count          ParentCount    Members            Members, Async
//	a child is inserted or deleted          2              2              7                  3
//	  the first child of a parent           3              2              8                  3
//	a child changes its parent              2              3              10                 3
//	any other change of a child             1              1              1                  1
//	reading the number                      1              0 (in parent)  1                  1
//	Recount, for each attempt               2 and 1 for each page of children; of Members, of members
//
//	Summary: as Count; 1 more if the child changes its group, and 1 for each page of a group's children (of the partition, without
//	SummaryOptions.Rows) if the group has no row yet, or if the least or greatest value leaves and others stay;
//	All 1 for each page of 1,000 groups
//	Pair: Insert, Delete 1; Get 2
//	Reference: Get 1; Join 1 for each different parent in a batch of 100 children; from a Cache as below
//	Cache: 0 while its entities are at most TTL old; then 1 for each page of its query
//	Members.All: 1 for each page of 1,000 members, and 1 for each member
//
// # When not to use it
//
// One number is one row: if many writers insert and delete children of one parent all the time, their changes
// conflict. In that case count the children when you need the number, or spread the number over several rows.
// If each parent can have a partition of its own, put its children there; then Members is not needed. A Cache
// is for entities that fit in memory and may be as old as TTL and Stale together, by default two minutes.
package relationships
