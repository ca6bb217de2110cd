package main

import "context"

// scenario is one part of the run, about one section of the guide.
type scenario struct {
	title string
	guide string // the section of the guide
	plain string // how the questions are answered without the patterns; empty means a table of one row an employee
	shows []show // the rows that the scenario has in the summary
	// open makes the repositories and patterns of the scenario. It sends nothing: Store.Create then makes the tables of all scenarios at
	// once. What open returns runs the scenario.
	open func(s *scene) (run func(ctx context.Context))
}

// scenarios returns the parts in their order. Loading comes first, the check of everything last.
func scenarios() []scenario {
	return append(reads(), []scenario{
		// Changes of one employee, and of employees in one transaction.
		{title: "Changes that keep the copies consistent", guide: "Ensuring consistency in your stored entities", open: consistency, shows: []show{
			{Pattern: "Entity group transactions", What: "replaced, with another email and age", Proves: "an employee and all copies change together"}}},
		{title: "Concurrent writers", guide: "Managing concurrency", open: concurrency, shows: []show{
			{Pattern: "Optimistic concurrency", What: "8 writers raise one salary at once", Proves: "no update is lost"}}},
		{title: "An employee with her reviews", guide: "Compound key pattern", plain: "reviews in a table of their own", open: compoundKeys, shows: []show{
			{Pattern: "Compound key", What: "an employee and three reviews", Proves: "an employee and her reviews are one range"}}},

		// Changes that reach beyond a partition.
		{title: "Employees over the organisation", guide: "Inter-partition secondary index pattern", open: organisation, shows: []show{
			{Pattern: "Inter-partition secondary index", What: "one email, anywhere", Proves: "an email has one owner in all departments"}}},
		{title: "Former employees", guide: "Eventually consistent transactions pattern", open: formerEmployees, shows: []show{
			{Pattern: "Eventually consistent transactions", What: "moved while salaries rise", Proves: "each is in one place, as written last"}}},
		{title: "Employees by last name", guide: "Index Entities Pattern", open: names, shows: []show{
			{Pattern: "Index entities", What: "Jones anywhere, by row (option 3)", Proves: "only who matches is read; lists are exact"}}},
		{title: "Departments with their manager", guide: "Denormalization pattern", plain: "the manager looked up", open: managers, shows: []show{
			{Pattern: "Denormalization", What: "Sales with its manager", Proves: "the copy changes in the same transaction"}}},
		{title: "Departments, their employees and their lockers", guide: "Modelling relationships", plain: "counted, looked up one by one", open: relations, shows: []show{
			{Pattern: "One-to-many relationship", What: "how many employees Sales has", Proves: "exact counts among concurrent writers"},
			{Pattern: "One-to-one relationship", What: "both read, side by side", Proves: "both are there, or none"},
			{Pattern: "Join in the client", What: "20 employees with their floor", Proves: "departments are read once for all"}}},

		// Entities of several types, of many properties, and of large ones.
		{title: "Several types and versions in one table", guide: "Working with heterogeneous entity types", plain: "a query for each type", open: mixed, shows: []show{
			{Pattern: "Heterogeneous entity types", What: "everybody in Sales, of all types", Proves: "all in one read, old versions upgraded"}}},
		{title: "Profiles of 1,000 answers", guide: "Wide entities pattern", plain: "rows of 250 answers by hand", open: profiles, shows: []show{
			{Pattern: "Wide entities", What: "the profile of 000223 in Sales", Proves: "1,000 properties with one ETag"}}},
		{title: "Photos and contracts", guide: "Large entities pattern", plain: "photos in pieces, within the entity", open: photos, shows: []show{
			{Pattern: "Large entities", What: "June Jones with her photo", Proves: "no blob without entity, none missing"}}},

		// Data that arrives all the time, and is deleted when it is old.
		{title: "Messages by the hour and by the day", guide: "Data series pattern", plain: "an entity an hour", open: messages, shows: []show{
			{Pattern: "Data series", What: "a year by the day", Proves: "a message that comes twice counts once"}}},
		{title: "The ten latest expense claims", guide: "Log tail pattern", plain: "the same rows, oldest first", open: claims, shows: []show{
			{Pattern: "Log tail", What: "the ten latest claims", Proves: "the newest first, in one request"}}},
		{title: "Events of everybody, as they come", guide: "Prepend/append anti-pattern", plain: "the anti-pattern: a partition an hour", open: events, shows: []show{
			{Pattern: "Prepend/append anti-pattern", What: "a tenth of a second, in order", Proves: "no hot partition; a range asks all of them"}}},
		{title: "Login requests of 90 days, of which 60 are kept", guide: "High volume delete pattern", plain: "one table for all days", open: logins, shows: []show{
			{Pattern: "High volume delete", What: "the old weeks dropped", Naive: "the same in the plain table, by hand", Proves: "old data goes by the table"}}},
		{title: "Errors between 15:04 and 15:06", guide: "Log data anti-pattern", plain: "log records as rows of a table", open: logs, shows: []show{
			{Pattern: "Log data anti-pattern", What: "errors of two minutes, rows by server", Proves: "logs are found by time, in blobs"}}},

		// Access by others.
		{title: "An employee reads her own rows", guide: "Controlling access with Shared Access Signatures", plain: "a server asks for her, with the account's key", open: ownRows, shows: []show{
			{Pattern: "Shared access signatures", What: "her appraisals", Proves: "she reads her own rows, and no other"}}},
		{title: "Salaries and national ids, encrypted", guide: "Encrypting Table Data", plain: "the department read whole, and decrypted", open: salaries, shows: []show{
			{Pattern: "Encryption", What: "one national id in Sales", Proves: "nothing in clear; keys are rotated"}}},

		{title: "Everything verified", guide: "Ensuring consistency in your stored entities", open: verified, shows: []show{
			{Pattern: "Verify", What: "all repositories, by Store.Verify", Proves: "no copy is missing, left over or different"}}},
	}...)
}

// reads returns the scenarios that only read one table, after loading it. measureGrowth plays them, too.
func reads() []scenario {
	return []scenario{
		{title: "Loading", guide: "Entity Group Transactions", open: loading},
		{title: "Point queries, ranges and scans", guide: "How your choice of PartitionKey and RowKey impacts query performance", open: querying, shows: []show{
			{Pattern: "Point queries", What: "employee 000223 of Sales", Proves: "a key finds a row; scans have to be allowed"}}},
		{title: "Employees by email", guide: "Intra-partition secondary index pattern", open: secondaryIndexes, shows: []show{
			{Pattern: "Intra-partition secondary index", What: "jonesj@contoso.com in Sales", Proves: "one row, however many employees there are"}}},
		{title: "Employees by name and by hire date", guide: "Sorting data in the Table service", open: sorting, shows: []show{
			{Pattern: "Sorting data", What: "the first 20 of Sales by name", Proves: "the first ones are read, and no others"}}},
		{title: "All departments side by side", guide: "Asynchronous and parallel operations", open: parallelQueries, shows: []show{
			{Pattern: "Parallel operations", What: "everybody named Jones", Proves: "ten departments at once, merged in order"}}},
		{title: "Parts of an employee read and written", guide: "Server-side projection; Merge or replace", plain: "whole employees", open: projection, shows: []show{
			{Pattern: "Projection, merge or replace", What: "the emails of Sales", Proves: "less is sent; a merge loses nothing"}}},
		{title: "Pages", guide: "Retrieving large numbers of entities from a query", open: paging, shows: []show{
			{Pattern: "Continuation tokens", What: "the rest, 25 at a time", Proves: "each once, in order, from a kept token"}}},
	}
}
