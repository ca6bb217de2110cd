// Package heterogeneous keeps entities of several types, in several versions, in one table: the guide's "Working with
// heterogeneous entity types" and "Inheritance relationships".
//
// # Stored rows
//
// Each type has a patterns.Repository of its own, with its own patterns. A Type, given to it as a pattern, adds the property
// EntityType, the name of the type and its version:
//
//	PartitionKey  RowKey        properties
//	Sales         dept_Sales    EntityType="Department@1" DepartmentName EmployeeCount
//	Sales         empid_000223  EntityType="Employee@3" FirstName LastName Age Email
//	Sales         empid_000224  EntityType="Employee@1" FullName Age                   an older version
//
// A text without a version, "Employee", is read as version 1. With TypeOptions.ByKey there is no such property: the prefix of
// the row key is the type's name. Prefixes are the better choice beside the property, too: they keep the entities of a type
// together, and apart from others with the same id.
//
// # Guarantee
//
// Registry.Query yields what is there, in the order of the keys, as typed values of the registered types, made for a type
// switch; of a type or a version that the program does not know as the property bag. Nothing is left out but index copies and
// further rows of one entity. What was read is written through the repository of its type, which keeps all its patterns in
// step; a bag of a row that a repository keeps in step with others cannot be written.
//
// An older version is brought up to the current one on reading, step by step, by whatever reads it: the repository, its indexes,
// the registry. Every write of the entity leaves the current version, and so does Type.Upgrade, under the ETag.
//
// A program that meets a later version than its own neither reads it as its own nor writes over it: its repository's reads
// and writes of the entity are tables.ErrGarbled, with a *VersionError, and the registry yields the bag. So the program that
// writes a new version comes after the one that can read it everywhere. It is the same with entities of other types.
//
// # Crashes
//
// A write is one transaction. Modify and Upgrade read, and write under the ETag of what they have read; Upgrade that was cut
// off is run again, and goes on with what is left.
//
// # Requests
//
//	Insert, Replace, Delete, Get of a repository     as without a type: 1
//	Merge                                            2
//	a page of Registry.Query                         1
//	Registry.Get                                     1
//	  of entities in several rows, or with           1 more for each
//	  properties that patterns rewrite
//	Replace, Registry.Delete of what they yield      2
//	Modify                                           2; with patterns, or of an older version, 4
//	Upgrade                                          1 for each page of older rows, 2 for each of them
//
// # Limits
//
// A layout must keep EntityType in the first row. Where a type has steps, a projection has to select EntityType, and an index that
// keeps some properties only has to keep it, both of which need a field of that name; a condition may only be on properties that
// all its versions have. Steps do not change keys, of the entity or in its indexes. Entities that have no EntityType are read as
// they are while their type has no steps: Upgrade gives it to them before the first step is declared.
//
// # When not to use it
//
// For one type of one version. For types that are never read together, or whose traffic is not alike: tables of their own
// cost nothing. Repository reads of one type are the same as ever, so that this package is for reads of several, and for
// types that live long enough to change.
package heterogeneous
