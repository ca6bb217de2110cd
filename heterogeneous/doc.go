// Package heterogeneous stores entities of several types, in several versions, in one table: the guide's "Working with
// heterogeneous entity types" and "Inheritance relationships".
//
// # Stored rows
//
// Each type has a patterns.Repository of its own, with its own patterns. A Type is one of the patterns of
// that repository. It adds the property EntityType, which has the name of the type and its version:
//
//	PartitionKey  RowKey        properties
//	Sales         dept_Sales    EntityType="Department@1" DepartmentName EmployeeCount
//	Sales         empid_000223  EntityType="Employee@3" FirstName LastName Age Email
//	Sales         empid_000224  EntityType="Employee@1" FullName Age                   an older version
//
// An EntityType without a version, such as "Employee", means version 1. With TypeOptions.ByKey there is no
// such property: the prefix of the row key identifies the type. Even with EntityType, use a prefix for each
// type: it keeps the rows of a type adjacent, and entities of different types can have the same id.
//
// # Guarantee
//
// Registry.Query yields the entities in the order of their keys: as values of the registered types, for a type switch, or as
// property bags if the program does not know the type or the version. It skips index copies and further rows of an entity.
// Write an entity through the repository of its type, which also writes all its patterns. A bag cannot be written if a
// repository stores further rows of the entity.
//
// Every read of an older version, by the repository, its indexes or the registry, upgrades the entity to the
// current version, step by step. Every write of the entity stores the current version, and so does
// Type.Upgrade, under the ETag.
//
// A program never reads or overwrites a version that is newer than its own: its repository's reads and writes
// of the entity return tables.ErrGarbled with a *VersionError, and the registry yields a bag. So deploy the
// program that can read a new version everywhere before you deploy one that writes it. The same errors are
// returned for an entity of another type.
//
// # Crashes
//
// A write is one transaction. Modify and Upgrade read an entity and write it under its ETag. If Upgrade was
// interrupted, run it again; it continues with the remaining entities.
//
// # Requests
//
//	Insert, Replace, Delete, Get of a repository     as without a type: 1
//	Merge                                            2
//	a page of Registry.Query                         1
//	Registry.Get                                     1
//	  of entities of a type with widentities, or     1 more for each, 2 for one in several rows
//	  with properties that patterns rewrite
//	Replace, Registry.Delete of an entity from them  2
//	Modify                                           2; with patterns, or of an older version, 4
//	Upgrade                                          1 for each page of older rows, 1 for each transaction of 100 rows
//
// # Limits
//
// A layout must keep EntityType in the first row. If a type has steps, a projection must select EntityType, and an index with
// Options.Project must contain it; both need a field of that name. Conditions may use only properties that all versions have.
// Steps cannot change an entity's key or its index keys. Entities without EntityType are readable as long as their type has
// no steps; run Upgrade, which adds EntityType if Schema.Prefix is set, before you declare the first step.
//
// # When not to use it
//
// For one type with one version. For types that are never read together, or whose load differs: use separate
// tables, which are free. Reads of one type through its Repository work without this package; it is for reads
// of several types, and for types that change over the years.
package heterogeneous
