package intrapartition_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// silent is a transport that nothing may be sent to.
type silent struct{ t *testing.T }

func (s silent) Do(*http.Request) (*http.Response, error) {
	s.t.Error("a request is sent")
	return nil, errors.New("refused")
}

// bagged takes any property.
type bagged struct {
	tables.Meta
	ID   int
	Rest map[string]tables.Value `table:",rest"`
}

func quietTable(t *testing.T) *tables.Table {
	t.Helper()
	account, err := tables.NewAccountWithSharedKey(tables.Endpoints{Table: "http://table.test/contoso"}, "contoso", "a2V5",
		&tables.AccountOptions{ClientOptions: azcore.ClientOptions{Transport: silent{t}}})
	if err != nil {
		t.Fatal(err)
	}
	return account.Table("Employees")
}

func attach(t *testing.T, attached ...patterns.Pattern[employee]) (*patterns.Repository[employee], error) {
	t.Helper()
	return patterns.NewRepository(quietTable(t), patterns.Schema[employee]{
		Key: func(e *employee) tables.Key {
			return tables.Key{Partition: e.Department, Row: compoundkey.Join("empid", compoundkey.Int(e.ID, 6))}
		}, Prefix: "empid",
	}, attached...)
}

func emailKey(e *employee) compoundkey.Part { return compoundkey.String(e.Email) }

// TestIndexesThatCannotWork: what would fail or find nothing later is refused when it is declared.
func TestIndexesThatCannotWork(t *testing.T) {
	for want, x := range map[string]*intrapartition.Unique[employee, compoundkey.Part]{
		"\"email\": the index's key function is nil": intrapartition.NewUnique[employee, compoundkey.Part]("email", nil, nil),
		"\"tag\": the index's key function is nil":   intrapartition.NewMultiUnique[employee, compoundkey.Part]("tag", nil, nil),
		"Emial":                  intrapartition.NewUnique("email", emailKey, &intrapartition.Options{Project: []string{"LastName", "Emial"}}),
		"Schema.Prefix":          intrapartition.NewUnique("empid", emailKey, nil),
		"property PartitionKey,": intrapartition.NewUnique("email", emailKey, &intrapartition.Options{Project: []string{"PartitionKey"}}),
	} {
		_, err := attach(t, x)
		if !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "pattern \"") {
			t.Errorf("%s: %v", want, err)
		}
	}
	_, err := patterns.NewRepository(quietTable(t), patterns.Schema[bagged]{
		Key: func(b *bagged) tables.Key {
			return tables.Key{Row: compoundkey.Join("id", compoundkey.Int(b.ID, 6))}
		},
	}, intrapartition.NewUnique("x", func(b *bagged) compoundkey.Part { return compoundkey.Int(b.ID, 6) }, &intrapartition.Options{Project: []string{"Whatever"}}))
	if err != nil {
		t.Errorf("a type that takes any property: %v", err)
	}
}

// TestFailedRepositoryReleasesItsIndexes: an index is free again where the repository that it was given to did not come
// to be, and where it did, it is not.
func TestFailedRepositoryReleasesItsIndexes(t *testing.T) {
	x := intrapartition.NewUnique("email", emailKey, nil)
	if _, err := attach(t, x, intrapartition.NewUnique[employee, compoundkey.Part]("broken", nil, nil)); err == nil {
		t.Fatal("a broken index is taken")
	}
	checkUnattached(t, x)
	if _, err := attach(t, x); err != nil {
		t.Errorf("the second try: %v", err)
	}
	if _, err := attach(t, x); !errors.Is(err, tables.ErrWiring) {
		t.Errorf("a second repository: %v", err)
	}
	if _, err := x.In("Sales").GetFull(context.Background(), compoundkey.String("a\xff")); !errors.Is(err, tables.ErrInvalid) {
		t.Errorf("a key that is none: %v", err)
	}
}

// checkUnattached: whatever is read through an index without a repository is ErrWiring.
func checkUnattached(t *testing.T, x *intrapartition.Unique[employee, compoundkey.Part]) {
	t.Helper()
	ctx := context.Background()
	_, get := x.In("Sales").Get(ctx, compoundkey.String("x"))
	_, full := x.In("Sales").GetFull(ctx, compoundkey.String("x"))
	_, query := x.Query().Partition("Sales").PageSize(10).First(ctx)
	for name, err := range map[string]error{"Get": get, "GetFull": full, "Query": query} {
		if !errors.Is(err, tables.ErrWiring) {
			t.Errorf("%s without a repository: %v", name, err)
		}
	}
	n := 0
	for _, err := range x.In("Sales").Range(ctx) {
		if n++; n > 1 || !errors.Is(err, tables.ErrWiring) {
			t.Errorf("Range without a repository: %v", err)
		}
	}
	if n == 0 {
		t.Error("Range without a repository yields no error")
	}
}

// TestKeysThatCannotBeStored: an entity whose index key fits in no row is refused as a whole, before any request.
func TestKeysThatCannotBeStored(t *testing.T) {
	repo, err := attach(t, intrapartition.NewUnique("email", emailKey, nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := repo.Insert(context.Background(), &employee{Department: "Sales", ID: 1, Email: strings.Repeat("x", 600)}); !errors.Is(err, tables.ErrInvalid) && !errors.Is(err, tables.ErrTooLarge) {
		t.Errorf("error is %v", err)
	}
}
