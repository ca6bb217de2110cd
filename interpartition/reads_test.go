package interpartition_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

func emailOf(e *employee) compoundkey.Part { return text(e.Email) }

// TestReadsWithoutARepository: an index that was given to no repository says so, whatever is read through it.
func TestReadsWithoutARepository(t *testing.T) {
	ctx, x := context.Background(), interpartition.NewIndex("email", emailOf, &interpartition.Options[employee]{ByPartition: true})
	key := compoundkey.String("jonesj@contoso.com")
	reads := map[string]func() error{
		"Get":          func() error { _, err := x.In("Sales").Get(ctx, compoundkey.String("jonesj@contoso.com")); return err },
		"GetFull":      func() error { _, err := x.In("Sales").GetFull(ctx, key); return err },
		"Query":        func() error { _, err := x.Query(compoundkey.All()).Partition("p").Top(1).First(ctx); return err },
		"Verified.Get": func() error { _, err := x.In("Sales").Verified().Get(ctx, key); return err },
	}
	for name, read := range reads {
		if err := read(); !errors.Is(err, tables.ErrWiring) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string][]error{
		"Range":          errorsOf(x.In("Sales").Range(ctx, compoundkey.All())),
		"Verified.Range": errorsOf(x.In("Sales").Verified().Range(ctx, compoundkey.All())),
	} {
		if len(err) != 1 || !errors.Is(err[0], tables.ErrWiring) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// errorsOf reads to the end.
func errorsOf(all func(func(*employee, error) bool)) (errs []error) {
	for _, err := range all {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// TestVerifiedRangeOfMany: more copies than are followed at once keep their order, also where the caller stops; of reads
// that fail the error comes once, last.
func TestVerifiedRangeOfMany(t *testing.T) {
	const n = 150
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	w := newWorld(t, s, kind{})
	p := harness.Must[*process](t)(w.start(s))
	for i := range n {
		if err := p.repo.Insert(ctx, &employee{Department: "Sales", ID: n - i, Email: fmt.Sprintf("e%03d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	// One entity goes, and its copy stays: it is passed over.
	if _, err := p.repo.Table().Client().DeleteEntity(ctx, "Sales", compoundkey.Join("empid", compoundkey.Int(n-70, 6)), nil); err != nil {
		t.Fatal(err)
	}
	var all []string
	for e, err := range p.email.In("Sales").Verified().Range(ctx, compoundkey.All()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e.Email)
	}
	if len(all) != n-1 || !slices.IsSorted(all) || slices.Contains(all, "e070") {
		t.Fatalf("%d entities: %q", len(all), all)
	}
	for _, stop := range []int{1, 10, 64, 100} {
		var some []string
		for e, err := range p.email.In("Sales").Verified().Range(ctx, compoundkey.All()) {
			if err != nil {
				t.Fatal(err)
			}
			if some = append(some, e.Email); len(some) == stop {
				break
			}
		}
		if !slices.Equal(some, all[:stop]) {
			t.Errorf("the first %d: %q", stop, some)
		}
	}
	// A copy and an entity that cannot be read hide no others.
	for _, damaged := range []struct {
		table *tables.Table
		key   tables.Key
	}{
		{p.repo.Table(), tables.Key{Partition: "email_Sales", Row: "e010"}},
		{p.repo.Table(), tables.Key{Partition: "Sales", Row: compoundkey.Join("empid", compoundkey.Int(n-90, 6))}},
	} {
		body := fmt.Sprintf(`{"PartitionKey":%q,"RowKey":%q,"ID":"no number"}`, damaged.key.Partition, damaged.key.Row)
		if _, err := damaged.table.Client().UpsertEntity(ctx, []byte(body), nil); err != nil {
			t.Fatal(err)
		}
	}
	var read, bad int
	for _, err := range p.email.In("Sales").Verified().Range(ctx, compoundkey.All()) {
		if err == nil {
			read++
		} else if errors.Is(err, tables.ErrGarbled) {
			bad++
		}
	}
	if read != n-3 || bad != 2 {
		t.Errorf("%d entities and %d damaged rows, want %d and 2", read, bad, n-3)
	}
	for _, fails := range []storagetest.Kind{storagetest.QueryEntities, storagetest.GetEntity} {
		faulty, _ := s.Faulty(storagetest.On(fails, storagetest.Always(storagetest.NotSent)))
		broken := harness.Must[*process](t)(w.start(faulty.WithRetries(0)))
		if errs := errorsOf(broken.email.In("Sales").Verified().Range(ctx, compoundkey.All())); len(errs) != 1 {
			t.Errorf("%v fails: %v", fails, errs)
		}
	}
}

// TestVerifyOfIndexesInOneTable: a row that is nobody's any more is reported of the index whose key it has, although the
// other's name begins with the same text.
func TestVerifyOfIndexesInOneTable(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	w := newWorld(t, s, kind{})
	p := harness.Must[*process](t)(w.start(s))
	shared := p.badges
	mail := interpartition.NewIndex("mail", emailOf, &interpartition.Options[employee]{Table: shared})
	byDepartment := interpartition.NewIndex("mail-2", emailOf, &interpartition.Options[employee]{ByPartition: true, Table: shared})
	repo := harness.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(harness.In(p.repo.Table(), p.queue),
		patterns.Schema[employee]{Name: "staff", Key: keyOf, Rows: compoundkey.Starting("empid")}, mail, byDepartment))
	if err := repo.Insert(ctx, jones()); err != nil {
		t.Fatal(err)
	}
	options := &patterns.JobOptions{Lag: time.Millisecond}
	if got := discrepancies(t, repo, options); len(got) != 0 {
		t.Fatalf("right after the write: %q", got)
	}
	for _, x := range []*interpartition.Index[employee]{mail, byDepartment} {
		partition := map[bool]string{true: "mail-2_Sales", false: "mail"}[x == byDepartment]
		moveRow(t, shared, tables.Key{Partition: partition, Row: compoundkey.Join("", compoundkey.String("jonesj@contoso.com"))},
			compoundkey.Join("", compoundkey.String("old@contoso.com")))
	}
	want := []string{"missing mail", "missing mail-2", "spurious mail", "spurious mail-2"}
	if got := discrepancies(t, repo, options); !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
}

func discrepancies(t testing.TB, repo *patterns.Repository[employee], options *patterns.JobOptions) (all []string) {
	t.Helper()
	found, err := harness.Findings(t.Context(), repo.Verify, options)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range found {
		all = append(all, fmt.Sprintf("%v %s", d.Kind, d.Pattern))
	}
	slices.Sort(all)
	return all
}

// moveRow gives a stored row another row key.
func moveRow(t testing.TB, table *tables.Table, key tables.Key, row string) {
	t.Helper()
	answer, err := table.Client().GetEntity(t.Context(), key.Partition, key.Row, nil)
	if err != nil {
		t.Fatal(err)
	}
	var e aztables.EDMEntity
	if err := e.UnmarshalJSON(answer.Value); err != nil {
		t.Fatal(err)
	}
	e.RowKey, e.Timestamp, e.ETag = row, aztables.EDMDateTime{}, ""
	moved, err := e.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.Client().AddEntity(t.Context(), moved, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := table.Client().DeleteEntity(t.Context(), key.Partition, key.Row, nil); err != nil {
		t.Fatal(err)
	}
}
