package main

// scenarios are the parts in their order. Loading comes first, the check of everything last.
func scenarios() []scenario {
	return append(reads(), []scenario{
		// Changes of one employee, and of employees in one transaction.
		consistency(), concurrency(), compoundKeys(),
		// What reaches beyond a partition.
		organisation(), formerEmployees(), names(), managers(), relations(),
		// Entities of several types, of many properties, and of large ones.
		mixed(), profiles(), photos(),
		// What comes all the time, and goes again.
		messages(), claims(), events(), logins(), logs(),
		// Who may read it.
		ownRows(), salaries(),
		verified(),
	}...)
}

// reads are the scenarios of one table that is only read. The growth of what they cost is measured, too.
func reads() []scenario {
	return []scenario{loading(), querying(), secondaryIndexes(), sorting(), parallelQueries(), projection(), paging()}
}
