package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/examples/quickstart/baresdk/employees"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// slashed is an email that cannot be a key as it is.
const slashed = "june/sales@contoso.com"

// program is one of the two that README.md compares.
type program struct {
	create func(ctx context.Context, s *storagetest.Service) error
	insert func(ctx context.Context, s *storagetest.Service) error
	// other inserts another employee, whose email has a character that keys must not have.
	other func(ctx context.Context, s *storagetest.Service) error
	find  func(ctx context.Context, s *storagetest.Service) error
	// later is what the system does by itself in the next minutes, without anybody who calls insert.
	later func(ctx context.Context, s *storagetest.Service) error
}

func bareSDK() program {
	with := func(do func(ctx context.Context, service *aztables.ServiceClient) error) func(context.Context, *storagetest.Service) error {
		return func(ctx context.Context, s *storagetest.Service) error {
			service, err := aztables.NewServiceClientFromConnectionString(s.ConnectionString, &aztables.ClientOptions{ClientOptions: s.ClientOptions})
			if err != nil {
				return err
			}
			return do(ctx, service)
		}
	}
	return program{
		create: with(employees.Create),
		insert: with(func(ctx context.Context, service *aztables.ServiceClient) error {
			return employees.Insert(ctx, service, employees.Employee{Department: "Sales", ID: 223, Email: "June@contoso.com"})
		}),
		other: with(func(ctx context.Context, service *aztables.ServiceClient) error {
			return employees.Insert(ctx, service, employees.Employee{Department: "Sales", ID: 224, Email: slashed})
		}),
		find: with(func(ctx context.Context, service *aztables.ServiceClient) error {
			_, err := employees.FindByEmail(ctx, service, "june@contoso.com")
			return err
		}),
		later: func(context.Context, *storagetest.Service) error { return nil },
	}
}

func withLibrary() program {
	type action = func(context.Context, *patterns.Store, *patterns.Repository[Employee], *interpartition.Unique[Employee, compoundkey.Folded]) error
	with := func(do action) func(context.Context, *storagetest.Service) error { // each call is a process of its own
		return func(ctx context.Context, s *storagetest.Service) error {
			account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{
				ClientOptions: s.ClientOptions, Logger: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				return err
			}
			store, staff, byEmail, err := declare(&patterns.StoreOptions{Account: account})
			if err != nil {
				return err
			}
			return do(ctx, store, staff, byEmail)
		}
	}
	insert := func(e Employee) func(context.Context, *storagetest.Service) error {
		return with(func(ctx context.Context, store *patterns.Store, staff *patterns.Repository[Employee], _ *interpartition.Unique[Employee, compoundkey.Folded]) error {
			return errors.Join(staff.Insert(ctx, &e), harness.Settle(ctx, store))
		})
	}
	return program{
		create: with(func(ctx context.Context, store *patterns.Store, _ *patterns.Repository[Employee], _ *interpartition.Unique[Employee, compoundkey.Folded]) error {
			return store.Create(ctx)
		}),
		insert: insert(Employee{Department: "Sales", ID: 223, Email: "June@contoso.com"}),
		other:  insert(Employee{Department: "Sales", ID: 224, Email: slashed}),
		find: with(func(ctx context.Context, _ *patterns.Store, _ *patterns.Repository[Employee], byEmail *interpartition.Unique[Employee, compoundkey.Folded]) error {
			_, err := byEmail.Get(ctx, "june@contoso.com")
			return err
		}),
		later: func(context.Context, *storagetest.Service) error {
			time.Sleep(10 * time.Minute)
			return nil
		},
	}
}

// counted runs both calls without faults and returns their requests.
func counted(t *testing.T, p program) (insert, find int) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		check(t, p.create(t.Context(), s))
		var counter storagetest.RequestCounter
		service, _ := s.Faulty(&counter)
		check(t, p.insert(t.Context(), service))
		insert = counter.Reset()
		check(t, p.find(t.Context(), service))
		find = counter.Count()
	})
	return insert, find
}

// stuck breaks call number n of an insert, lets ten minutes pass, tries the insert again in a new process, and reports whether the
// employee cannot be found by email after all that.
func stuck(t *testing.T, p program, n int, fault storagetest.Injector) (wrong bool) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		check(t, p.create(t.Context(), s))
		faulty, _ := s.Faulty(storagetest.OnIndex(n, fault))
		_ = p.insert(t.Context(), faulty) // what the caller is told varies; what is stored in the end must not
		check(t, p.later(t.Context(), s))
		_ = p.insert(t.Context(), s)
		check(t, p.later(t.Context(), s))
		wrong = p.find(t.Context(), s) != nil
	})
	return wrong
}

// TestComparison makes the table of README.md again: the same task by this library and by the SDK alone, on a simulator.
func TestComparison(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	check(t, err)
	programs := []program{withLibrary(), bareSDK()}
	rows := map[string][2]string{"lines": {fmt.Sprint(lines(t, "main.go")), fmt.Sprint(lines(t, "baresdk/main.go", "baresdk/employees/employees.go"))}}
	var inserts, finds [2]int
	for i, p := range programs {
		inserts[i], finds[i] = counted(t, p)
	}
	rows["requests of an insert"] = [2]string{fmt.Sprint(inserts[0]), fmt.Sprint(inserts[1])}
	rows["requests of a search by email"] = [2]string{fmt.Sprint(finds[0]), fmt.Sprint(finds[1])}
	for name, fault := range map[string]storagetest.Injector{"the process ends after a request": storagetest.DiesAfter, "the answer to a request is lost": storagetest.LostAnswer} {
		var row [2]string
		for i, p := range programs {
			bad := 0
			for n := range inserts[i] {
				if stuck(t, p, n, fault) {
					bad++
				}
			}
			row[i] = fmt.Sprintf("wrong for good after %d of %d requests", bad, inserts[i])
		}
		rows[name] = row
	}
	rows["an email with `/`"] = [2]string{"stored", "refused: 400"}
	for i, p := range programs {
		storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
			check(t, p.create(t.Context(), s))
			var refused *azcore.ResponseError
			if err := p.other(t.Context(), s); (i == 0) != (err == nil) || i == 1 && (!errors.As(err, &refused) || refused.StatusCode != 400) {
				t.Errorf("program %d, an email with a slash: %v", i, err)
			}
		})
	}
	for name, row := range rows {
		if want := fmt.Sprintf("| %s | %s | %s |", name, row[0], row[1]); !bytes.Contains(readme, []byte(want)) {
			t.Errorf("README.md must have the row\n%s", want)
		}
	}
}

// lines counts those that are neither blank nor comments.
func lines(t *testing.T, files ...string) (n int) {
	for _, name := range files {
		text, err := os.ReadFile(name)
		check(t, err)
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				n++
			}
		}
	}
	return n
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
