package tables_test

import (
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/tables"
)

// The most frequent query decides the order of a key's parts: put first what it always names. Plan shows the class of each query before
// anything is stored; for a query that is left with a partition scan, such as the last one, add an index.
func ExampleQuery_Plan_orderOfKeyParts() {
	account, err := tables.NewAccountFromConnectionString("UseDevelopmentStorage=true", nil)
	if err != nil {
		log.Fatal(err)
	}
	reviews := account.Table("Reviews").Entities().Query().Partition("Sales")
	employee, year := compoundkey.Int(123, 6), compoundkey.Int(2012, 4)
	for _, c := range []struct {
		question string
		query    tables.Query[tables.Entity]
	}{
		{"review_000123_2012, the review of an employee and a year", reviews.Row(compoundkey.Join("review", employee, year))},
		{"review_000123_2012, all reviews of an employee", reviews.Rows(compoundkey.Starting("review", employee))},
		{"review_2012_000123, all reviews of a year", reviews.Rows(compoundkey.Starting("review", year))},
		{"review_000123_2012, all reviews of a year", reviews.Where(tables.Eq("Year", 2012))},
	} {
		plan, err := c.query.Plan()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s\n", c.question, plan.Class)
	}
	// Output:
	// review_000123_2012, the review of an employee and a year: point query
	// review_000123_2012, all reviews of an employee: range query
	// review_2012_000123, all reviews of a year: range query
	// review_000123_2012, all reviews of a year: partition scan
}
