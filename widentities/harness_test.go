package widentities_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
	"github.com/tablepatterns/tablepatterns/widentities"
)

// profile is an employee with any number of properties.
type profile struct {
	tables.Meta
	Team  string
	ID    int
	Email string
	More  map[string]tables.Value `table:",rest"`
}

func at(id int) tables.Key { return schema.Key(&profile{Team: "red", ID: id}) }

var schema = patterns.Schema[profile]{
	Key: func(p *profile) tables.Key {
		return tables.Key{Partition: p.Team, Row: compoundkey.Join("profile", compoundkey.Int(p.ID, 4))}
	},
	Prefix: "profile",
}

// withNumbers makes a profile of so many properties in all.
func withNumbers(id, properties int) *profile {
	p := &profile{Team: "red", ID: id, Email: fmt.Sprintf("p%d@contoso.com", id), More: map[string]tables.Value{}}
	for i := range properties - 3 {
		p.More[fmt.Sprintf("Answer%05d", i)] = tables.Int32(int32(i * id))
	}
	return p
}

// withText makes a profile with one text of so many characters.
func withText(id, size int) *profile {
	return &profile{Team: "red", ID: id, Email: fmt.Sprintf("p%d@contoso.com", id), More: map[string]tables.Value{"Text": tables.String(strings.Repeat("x", size))}}
}

// process is one process's view of the profiles.
type process struct {
	profiles *patterns.Repository[profile]
	byEmail  *intrapartition.Unique[profile, string]
}

func start(s *storagetest.Service, table string) (*process, error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	p := &process{byEmail: intrapartition.NewUnique("email", func(p *profile) string { return p.Email }, nil)}
	wide := widentities.New[profile](&widentities.Options{FirstRow: []string{"Team", "ID", "Email"}})
	p.profiles, err = patterns.NewRepository(account.Table(table), schema, wide, p.byEmail)
	return p, err
}

// open makes a new table on the service that the tests share.
func open(t testing.TB, s *storagetest.Service) (*process, string) {
	t.Helper()
	table := s.TableName(t)
	p, err := start(s, table)
	if err == nil {
		err = p.profiles.Table().Create(t.Context())
	}
	assert.Check(t, err)
	return p, table
}

// same compares what is stored of two profiles.
func same(t testing.TB, got, want *profile) {
	t.Helper()
	if got.Team != want.Team || got.ID != want.ID || got.Email != want.Email || !maps.Equal(got.More, want.More) {
		t.Fatalf("%d properties of %s were read, and %d of %s written", len(got.More), got.Email, len(want.More), want.Email)
	}
}

// rowKeys lists the rows of the partition, with the mark of further rows as a star.
func rowKeys(ctx context.Context, p *process) ([]string, error) {
	var keys []string
	for row, err := range p.profiles.Table().Entities().Query().Partition("red").Select("RowKey").All(ctx) {
		if err != nil {
			return nil, err
		}
		keys = append(keys, strings.ReplaceAll(row.Key.Row, "\uFFFB\uFFFB", "*"))
	}
	return keys, nil
}

// versions are the ETags of all rows of the partition.
func versions(ctx context.Context, p *process) (map[string]string, error) {
	etags := map[string]string{}
	for row, err := range p.profiles.Table().Entities().Query().Partition("red").Select("RowKey").All(ctx) {
		if err != nil {
			return nil, err
		}
		etags[row.Key.Row] = string(row.ETag)
	}
	return etags, nil
}

// bareProfiles is a repository of the same table without an index.
func bareProfiles(t testing.TB, s *storagetest.Service, table string) *patterns.Repository[profile] {
	t.Helper()
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	assert.Check(t, err)
	bare := assert.Must[*patterns.Repository[profile]](t)(patterns.NewRepository(account.Table(table), schema, widentities.New[profile](nil)))
	return bare
}
