package main

import "context"

// scenario is one part of the run. A scenario adds what it saw to its section, and returns an error for anything that
// is not as it should be.
type scenario struct {
	title string
	guide string // the section of the guide that it is about
	shows []show
	run   func(ctx context.Context, c *company, s *section) error
}

// scenarios are the parts in their order. Loading comes first, the check of everything last.
func scenarios() []scenario {
	return []scenario{
		loading(),
		querying(),
		secondaryIndexes(),
		sorting(),
		parallelQueries(),
		partial(),
		paging(),
		consistency(),
		concurrency(),
		compoundKeys(),
		organisation(),
		formerEmployees(),
		names(),
		managers(),
		relations(),
		mixed(),
		profiles(),
		messages(),
		events(),
		ownRows(),
		claims(),
		logins(),
		logErrors(),
		photos(),
		salaries(),
		drift(),
		checking(),
	}
}

// steps takes a scenario's steps one after the other, up to the first error.
func steps(ctx context.Context, s *section, all ...func(context.Context, *section) error) error {
	for _, step := range all {
		if err := step(ctx, s); err != nil {
			return err
		}
	}
	return nil
}
