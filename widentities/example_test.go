package widentities_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
	"github.com/tablepatterns/tablepatterns/widentities"
)

// Survey is what an employee has answered: as many questions as there are, and an essay.
type Survey struct {
	tables.Meta
	Department string
	ID         int
	Email      string
	Essay      string
	Answers    map[string]tables.Value `table:",rest"`
}

// openSurveys keeps surveys of any size, found by email too.
func openSurveys(store *patterns.Store) (*patterns.Repository[Survey], *intrapartition.Unique[Survey, string], error) {
	byEmail := intrapartition.NewUnique("email", func(s *Survey) string { return s.Email }, nil)
	wide := widentities.New[Survey](&widentities.Options{FirstRow: []string{"Department", "ID", "Email"}})
	surveys, err := patterns.NewRepository(store.Table("Surveys"), patterns.Schema[Survey]{
		Key: func(s *Survey) tables.Key {
			return tables.Key{Partition: s.Department, Row: compoundkey.Join("survey", compoundkey.Int(s.ID, 6))}
		},
		Prefix: "survey",
	}, wide, byEmail)
	return surveys, byEmail, err
}

// An entity of 1,003 properties and a text of 100,000 characters is one to its readers: one ETag, found by its indexes,
// changed as a whole or in part.
func Example() {
	ctx := context.Background()
	service, err := storagetest.OpenShared()
	if err != nil {
		log.Fatal(err)
	}
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	store, err := patterns.Open("surveys", &patterns.StoreOptions{Account: account})
	if err != nil {
		log.Fatal(err)
	}
	surveys, byEmail, err := openSurveys(store)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Create(ctx); err != nil {
		log.Fatal(err)
	}
	june := &Survey{Department: "Sales", ID: 223, Email: "jonesj@contoso.com", Essay: strings.Repeat("I like it here. ", 6_250), Answers: map[string]tables.Value{}}
	for i := range 1_000 {
		june.Answers[fmt.Sprintf("Q%04d", i)] = tables.Int32(int32(i % 5))
	}
	if err := surveys.Insert(ctx, june); err != nil { // 1 request: all rows, with those of the copy by email
		log.Fatal(err)
	}
	found, err := byEmail.In("Sales").Get(ctx, "jonesj@contoso.com") // 2 requests: the first row, and the others
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(found.Answers), "answers, and an essay of", len(found.Essay), "characters")
	june.Answers["Q0007"] = tables.String("I would rather not say")
	if err := surveys.Merge(ctx, june, "Q0007"); err != nil { // writes the first row and the one that holds Q0007, and their copies
		log.Fatal(err)
	}
	for row, err := range account.Table("Surveys").Entities().Query().Partition("Sales").Select("RowKey").All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(strings.ReplaceAll(row.Key.Row, "\uFFFB\uFFFB", " U+FFFB U+FFFB "))
	}
	// Output:
	// 1000 answers, and an essay of 100000 characters
	// email_jonesj@contoso.com
	// email_jonesj@contoso.com U+FFFB U+FFFB 01
	// email_jonesj@contoso.com U+FFFB U+FFFB 02
	// email_jonesj@contoso.com U+FFFB U+FFFB 03
	// email_jonesj@contoso.com U+FFFB U+FFFB 04
	// survey_000223
	// survey_000223 U+FFFB U+FFFB 01
	// survey_000223 U+FFFB U+FFFB 02
	// survey_000223 U+FFFB U+FFFB 03
	// survey_000223 U+FFFB U+FFFB 04
}
