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
			{pattern: "Entity group transactions", what: "replaced, with another email and age", proves: "an employee and all copies change together"}}},
		{title: "Concurrent writers", guide: "Managing concurrency", open: concurrency, shows: []show{
			{pattern: "Optimistic concurrency", what: "8 writers raise one salary at once", proves: "no update is lost"}}},
		{title: "An employee with her reviews", guide: "Compound key pattern", plain: "reviews in a table of their own", open: compoundKeys, shows: []show{
			{pattern: "Compound key", what: "an employee and three reviews", proves: "an employee and her reviews are one range"}}},

		// Changes that reach beyond a partition.
		{title: "Employees over the organisation", guide: "Inter-partition secondary index pattern", open: organisation, shows: []show{
			{pattern: "Inter-partition secondary index", what: "one email, anywhere", proves: "an email has one owner in all departments"}}},
		{title: "Former employees", guide: "Eventually consistent transactions pattern", open: formerEmployees, shows: []show{
			{pattern: "Eventually consistent transactions", what: "moved while salaries rise", proves: "each is in one place, as written last"}}},
		{title: "Employees by last name", guide: "Index Entities Pattern", open: names, shows: []show{
			{pattern: "Index entities", what: "Jones anywhere, by row (option 3)", proves: "only who matches is read; lists are exact"}}},
		{title: "Departments with their manager", guide: "Denormalization pattern", plain: "the manager looked up", open: managers, shows: []show{
			{pattern: "Denormalization", what: "Sales with its manager", proves: "the copy changes in the same transaction"}}},
		{title: "Departments, their employees and their lockers", guide: "Modelling relationships", plain: "counted, looked up one by one", open: relations, shows: []show{
			{pattern: "One-to-many relationship", what: "how many employees Sales has", proves: "exact counts among concurrent writers"},
			{pattern: "One-to-one relationship", what: "both read, side by side", proves: "both are there, or none"},
			{pattern: "Join in the client", what: "20 employees with their floor", proves: "departments are read once for all"}}},

		// Entities of several types, of many properties, and of large ones.
		{title: "Several types and versions in one table", guide: "Working with heterogeneous entity types", plain: "a query for each type", open: mixed, shows: []show{
			{pattern: "Heterogeneous entity types", what: "everybody in Sales, of all types", proves: "all in one read, old versions upgraded"}}},
		{title: "Profiles of 1,000 answers", guide: "Wide entities pattern", plain: "rows of 250 answers by hand", open: profiles, shows: []show{
			{pattern: "Wide entities", what: "the profile of 000223 in Sales", proves: "1,000 properties with one ETag"}}},
		{title: "Photos and contracts", guide: "Large entities pattern", plain: "photos in pieces, within the entity", open: photos, shows: []show{
			{pattern: "Large entities", what: "June Jones with her photo", proves: "no blob without entity, none missing"}}},

		// Data that arrives all the time, and is deleted when it is old.
		{title: "Messages by the hour and by the day", guide: "Data series pattern", plain: "an entity an hour", open: messages, shows: []show{
			{pattern: "Data series", what: "a year by the day", proves: "a message that comes twice counts once"}}},
		{title: "The ten latest expense claims", guide: "Log tail pattern", plain: "the same rows, oldest first", open: claims, shows: []show{
			{pattern: "Log tail", what: "the ten latest claims", proves: "the newest first, in one request"}}},
		{title: "Events of everybody, as they come", guide: "Prepend/append anti-pattern", plain: "the anti-pattern: a partition an hour", open: events, shows: []show{
			{pattern: "Prepend/append anti-pattern", what: "a tenth of a second, in order", proves: "no hot partition; a range asks all of them"}}},
		{title: "Login requests of 90 days, of which 60 are kept", guide: "High volume delete pattern", plain: "one table for all days", open: logins, shows: []show{
			{pattern: "High volume delete", what: "the old weeks dropped", naive: "the same in the plain table, by hand", proves: "old data goes by the table"}}},
		{title: "Errors between 15:04 and 15:06", guide: "Log data anti-pattern", plain: "log records as rows of a table", open: logs, shows: []show{
			{pattern: "Log data anti-pattern", what: "errors of two minutes, rows by server", proves: "logs are found by time, in blobs"}}},

		// Access by others.
		{title: "An employee reads her own rows", guide: "Controlling access with Shared Access Signatures", plain: "a server asks for her, with the account's key", open: ownRows, shows: []show{
			{pattern: "Shared access signatures", what: "her appraisals", proves: "she reads her own rows, and no other"}}},
		{title: "Salaries and national ids, encrypted", guide: "Encrypting Table Data", plain: "the department read whole, and decrypted", open: salaries, shows: []show{
			{pattern: "Encryption", what: "one national id in Sales", proves: "nothing in clear; keys are rotated"}}},

		{title: "Everything verified", guide: "Ensuring consistency in your stored entities", open: verified, shows: []show{
			{pattern: "Verify", what: "all repositories, by Store.Verify", proves: "no copy is missing, left over or different"}}},
	}...)
}

// reads returns the scenarios that only read one table, after loading it. measureGrowth plays them, too.
func reads() []scenario {
	return []scenario{
		{title: "Loading", guide: "Entity Group Transactions", open: loading},
		{title: "Point queries, ranges and scans", guide: "How your choice of PartitionKey and RowKey impacts query performance", open: querying, shows: []show{
			{pattern: "Point queries", what: "employee 000223 of Sales", proves: "a key finds a row; scans have to be allowed"}}},
		{title: "Employees by email", guide: "Intra-partition secondary index pattern", open: secondaryIndexes, shows: []show{
			{pattern: "Intra-partition secondary index", what: "jonesj@contoso.com in Sales", proves: "one row, however many employees there are"}}},
		{title: "Employees by name and by hire date", guide: "Sorting data in the Table service", open: sorting, shows: []show{
			{pattern: "Sorting data", what: "the first 20 of Sales by name", proves: "the first ones are read, and no others"}}},
		{title: "All departments side by side", guide: "Asynchronous and parallel operations", open: parallelQueries, shows: []show{
			{pattern: "Parallel operations", what: "everybody named Jones", proves: "ten departments at once, merged in order"}}},
		{title: "Parts of an employee read and written", guide: "Server-side projection; Merge or replace", plain: "whole employees", open: projection, shows: []show{
			{pattern: "Projection, merge or replace", what: "the emails of Sales", proves: "less is sent; a merge loses nothing"}}},
		{title: "Pages", guide: "Retrieving large numbers of entities from a query", open: paging, shows: []show{
			{pattern: "Continuation tokens", what: "the rest, 25 at a time", proves: "each once, in order, from a kept token"}}},
	}
}
