package highvolumedelete_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/highvolumedelete"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// login is the guide's login request: by user, in the order of time.
type login struct {
	tables.Meta
	User    string
	At      time.Time
	Address string
}

func keyOf(l *login) tables.Key {
	return tables.Key{Partition: l.User, Row: compoundkey.Join("at", compoundkey.Time(l.At))}
}

// openLogins is Schema.Open: each table has an index of its own.
func openLogins(table *tables.Table) (*patterns.Repository[login], error) {
	return patterns.NewRepository(table, patterns.Schema[login]{Key: keyOf, Prefix: "at"},
		intrapartition.NewUnique("address", func(l *login) compoundkey.Part {
			if l.Address == "" {
				return compoundkey.Part{}
			}
			return compoundkey.Tuple(compoundkey.String(l.Address), compoundkey.Time(l.At))
		}, nil))
}

// noon is the present of the tests.
var noon = time.Date(2014, 8, 22, 12, 0, 0, 0, time.UTC)

// clock is a clock that tests set.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// noGrace is for tests in which nobody writes meanwhile.
func noGrace() *highvolumedelete.DropOptions {
	return &highvolumedelete.DropOptions{UnsafeGrace: -1}
}

func schemaOf(name string, now func() time.Time) highvolumedelete.Schema[login] {
	return highvolumedelete.Schema[login]{Name: name, Time: func(l *login) time.Time { return l.At }, Open: openLogins,
		RowOrder: highvolumedelete.OldestFirst, Now: now}
}

// start is one process.
func start(s *storagetest.Service, schema highvolumedelete.Schema[login]) (*highvolumedelete.Tables[login], error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	return highvolumedelete.New(account, schema)
}

func mustStart(t testing.TB, s *storagetest.Service, schema highvolumedelete.Schema[login]) *highvolumedelete.Tables[login] {
	t.Helper()
	return assert.Must[*highvolumedelete.Tables[login]](t)(start(s, schema))
}

// nameOf is a name for the tables of a test.
func nameOf(t testing.TB, s *storagetest.Service) string {
	name := s.TableName(t)
	return name[:min(len(name), 10)] + name[max(0, len(name)-20):]
}

func insert(t testing.TB, logins *highvolumedelete.Tables[login], user string, at ...time.Time) {
	t.Helper()
	for _, at := range at {
		assert.Check(t, logins.Insert(t.Context(), &login{User: user, At: at}))
	}
}

// times are those of what a sequence yields.
func times(ctx context.Context, all iter.Seq2[*login, error]) ([]string, error) {
	got := []string{}
	for l, err := range all {
		if err != nil {
			return got, err
		}
		got = append(got, l.User+" "+l.At.UTC().Format("02T15:04"))
	}
	return got, ctx.Err()
}

// surelyNot reports whether a caller who got err knows that nothing was written.
func surelyNot(err error) bool {
	return err != nil && !errors.Is(err, tables.ErrUnknownOutcome) && !errors.Is(err, storagetest.ErrDied) &&
		!errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// labels are the ends of table names.
func labels(names []string, name string) string {
	got := []string{}
	for _, table := range names {
		got = append(got, table[len(name):])
	}
	return fmt.Sprint(got)
}
