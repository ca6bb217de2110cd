package widentities_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
	"github.com/tablepatterns/tablepatterns/widentities"
)

func account(t testing.TB, s *storagetest.Service) *tables.Account {
	a, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	assert.Check(t, err)
	return a
}

// program is one version of a program: what it has in the first row, what its index keeps.
func program(t testing.TB, s *storagetest.Service, table string, first, keep []string) (*patterns.Repository[profile], *intrapartition.Unique[profile, string]) {
	t.Helper()
	ix := intrapartition.NewUnique("email", func(p *profile) string { return p.Email }, &intrapartition.Options{Project: keep})
	r, err := patterns.NewRepository(account(t, s).Table(table), schema, widentities.New[profile](&widentities.Options{FirstRow: first}), ix)
	assert.Check(t, err)
	return r, ix
}

// TestTopReadsNoMore: further rows are read of the entities that are asked for, and not of all in the page.
func TestTopReadsNoMore(t *testing.T) {
	s, n := harness.CountedService(storagetest.Simulator(t, nil))
	p, _ := open(t, s)
	for i := range 20 {
		assert.Check(t, p.profiles.Insert(t.Context(), withNumbers(i+1, 300)))
	}
	n.Reset()
	assert.Check(t, assert.Err(p.profiles.Query().Partition("red").First(t.Context())))
	assert.Equal(t, n.Count(), 2, "First: requests")
}

// TestSelectOfKeys reads no further row.
func TestSelectOfKeys(t *testing.T) {
	s, n := harness.CountedService(storagetest.Simulator(t, nil))
	p, _ := open(t, s)
	for i := range 5 {
		v := withNumbers(i+1, 300)
		v.More["Aaa"] = tables.Int32(1)
		assert.Check(t, p.profiles.Insert(t.Context(), v))
	}
	n.Reset()
	for _, err := range p.profiles.Query().Partition("red").Select("RowKey").All(t.Context()) {
		assert.Check(t, err)
	}
	assert.Equal(t, n.Count(), 1, "Select(RowKey): requests")
	n.Reset()
	for _, err := range p.profiles.Query().Partition("red").Select("PartitionKey", "RowKey", "Timestamp").All(t.Context()) {
		assert.Check(t, err)
	}
	assert.Equal(t, n.Count(), 1, "Select of keys: requests")
}

// TestFirstRowGrows: what an older program has left in further rows is read, and found once Repair has written it again.
func TestFirstRowGrows(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	_, table := open(t, s)
	older, _ := program(t, s, table, []string{"Team", "ID"}, nil)
	newer, _ := program(t, s, table, []string{"Team", "ID", "Email"}, nil)
	assert.Check(t, older.Insert(t.Context(), withNumbers(1, 300)))
	for v, err := range newer.Query().Partition("red").Select("Email").All(t.Context()) {
		assert.Check(t, err)
		assert.Equal(t, v.Email, "p1@contoso.com", "Select(Email)")
	}
	assert.Check(t, assert.Err(harness.Findings(t.Context(), newer.Repair, nil)))
	v := assert.Must[*profile](t)(newer.Query().Partition("red").Where(tables.Eq("Email", "p1@contoso.com")).First(t.Context()))
	same(t, v, withNumbers(1, 300))
}

// TestMergeAfterFirstRowChanged: a copy that keeps some, laid out by an older program, is readable after a Merge.
func TestMergeAfterFirstRowChanged(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	_, table := open(t, s)
	keep := []string{"Team", "ID", "Email", "Extra"}
	for i := range 297 {
		keep = append(keep, fmt.Sprintf("Answer%05d", i))
	}
	older, byEmail := program(t, s, table, []string{"Team", "ID", "Email"}, keep)
	newer, newByEmail := program(t, s, table, []string{"Team", "ID", "Email", "Answer00000"}, keep)
	v := withNumbers(1, 300)
	v.More["Extra"] = tables.Int32(7)
	assert.Check(t, older.Insert(t.Context(), v))
	assert.Check(t, assert.Err(byEmail.In("red").Get(t.Context(), "p1@contoso.com")))
	got := assert.Must[*profile](t)(newer.Get(t.Context(), at(1)))
	got.More["NotKept"] = tables.Int32(1)
	assert.Check(t, newer.Merge(t.Context(), got, "NotKept"))
	assert.NoError(t, assert.Err(newByEmail.In("red").Get(t.Context(), "p1@contoso.com")), "the index")
}

// TestMergeAfterKeepChanged is the same where the index keeps more.
func TestMergeAfterKeepChanged(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	_, table := open(t, s)
	keep := []string{"Team", "ID", "Email"}
	for i := range 297 {
		keep = append(keep, fmt.Sprintf("Answer%05d", i))
	}
	first := []string{"Team", "ID", "Email"}
	older, byEmail := program(t, s, table, first, keep)
	newer, newByEmail := program(t, s, table, first, append(keep[:len(keep):len(keep)], "Answer00297", "Answer00298"))
	assert.Check(t, older.Insert(t.Context(), withNumbers(1, 310)))
	assert.Check(t, assert.Err(byEmail.In("red").Get(t.Context(), "p1@contoso.com")))
	got := assert.Must[*profile](t)(newer.Get(t.Context(), at(1)))
	got.More["NotKept"] = tables.Int32(1)
	assert.Check(t, newer.Merge(t.Context(), got, "NotKept"))
	assert.NoError(t, assert.Err(newByEmail.In("red").Get(t.Context(), "p1@contoso.com")), "the index")
}

// TestTooLarge: whatever is too large says so before any request.
func TestTooLarge(t *testing.T) {
	s, n := harness.CountedService(storagetest.Simulator(t, nil))
	p, _ := open(t, s)
	n.Reset()
	for _, size := range []int{4_200_000, 60_000_000} {
		assert.ErrorIs(t, p.profiles.Insert(t.Context(), withText(1, size)), tables.ErrTooLarge, "%d", size)
	}
	if n.Count() > 0 {
		t.Error(n.Count())
	}
}

// TestForeignRowBetween: a foreign row among the further rows does not belong to the entity.
func TestForeignRowBetween(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	p, _ := open(t, s)
	assert.Check(t, p.profiles.Insert(t.Context(), withNumbers(1, 9000)))
	assert.Check(t, p.profiles.Table().Entities().Insert(t.Context(), &tables.Entity{Key: tables.Key{Partition: "red", Row: at(1).Row + "\uFFFB\uFFFB01x"}}))
	assert.Check(t, assert.Err(p.profiles.Get(t.Context(), at(1))))
}

// TestOldIndexKey: an index key with U+FFFB from before the layout goes with its entity.
func TestOldIndexKey(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	p, table := open(t, s)
	ix := intrapartition.NewUnique("email", func(p *profile) string { return p.Email }, nil)
	old := assert.Must[*patterns.Repository[profile]](t)(patterns.NewRepository(account(t, s).Table(table), schema, ix))
	v := withNumbers(1, 10)
	v.Email = "a\uFFFBb"
	assert.Check(t, old.Insert(t.Context(), v))
	got := assert.Must[*profile](t)(p.profiles.Get(t.Context(), at(1)))
	assert.Check(t, p.profiles.Delete(t.Context(), got))
	if keys, err := rowKeys(t.Context(), p); err != nil || len(keys) > 0 {
		t.Errorf("%q %v is left", keys, err)
	}
	if v, err := ix.In("red").Get(t.Context(), "a\uFFFBb"); !errors.Is(err, tables.ErrNotFound) {
		t.Errorf("the deleted entity is read through the index: %v %v", v.Email, err)
	}
	assert.Check(t, harness.Clean(t.Context(), p.profiles.Verify, nil))
}

// TestReplacementCharacterInKey: compoundkey writes U+FFFB for it, which is no mark of a further row.
func TestReplacementCharacterInKey(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	p, table := open(t, s)
	ix := intrapartition.NewUnique("email", func(p *profile) string { return p.Email }, nil)
	old := assert.Must[*patterns.Repository[profile]](t)(patterns.NewRepository(account(t, s).Table(table), schema, ix))
	v := withNumbers(1, 10)
	v.Email = "J\uFFFDrg"
	assert.Check(t, old.Insert(t.Context(), v)) // without the layout
	got := assert.Must[*profile](t)(p.profiles.Get(t.Context(), at(1)))
	assert.NoError(t, p.profiles.Replace(t.Context(), got), "Replace of a narrow entity")
	v2 := withNumbers(2, 10)
	v2.Email = "J\uFFFDrgen"
	assert.NoError(t, p.profiles.Insert(t.Context(), v2), "Insert of a narrow entity")
	got = assert.Must[*profile](t)(p.profiles.Get(t.Context(), at(1)))
	assert.Check(t, p.profiles.Delete(t.Context(), got))
	if v, err := p.byEmail.In("red").Get(t.Context(), "J\uFFFDrg"); !errors.Is(err, tables.ErrNotFound) {
		t.Errorf("deleted, and read through the index: %v %v", v, err)
	}
}

// TestOthersBesideFurtherRows: no key that compoundkey makes is in the place of a further row.
func TestOthersBesideFurtherRows(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	p, table := open(t, s)
	type note struct {
		tables.Meta
		ID   string
		Text string
	}
	notes, err := patterns.NewRepository(account(t, s).Table(table), patterns.Schema[note]{Key: func(n *note) tables.Key {
		return tables.Key{Partition: "red", Row: compoundkey.Join("profile", compoundkey.String(n.ID))}
	}})
	assert.Check(t, err)
	assert.Check(t, notes.Insert(t.Context(), &note{ID: "0001\uFFFB1", Text: "mine"})) // stored as profile_0001 U+FFFB 01
	assert.Check(t, p.profiles.Insert(t.Context(), withNumbers(1, 300)))
	n, err := notes.Get(t.Context(), notes.KeyOf(&note{ID: "0001\uFFFB1"}))
	if err != nil || n.Text != "mine" {
		t.Errorf("%v %v", n, err)
	}
}
