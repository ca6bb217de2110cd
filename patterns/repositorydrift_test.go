package patterns_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// A tagged entity has an index row for each tag.
type tagged struct {
	tables.Meta
	ID    int
	Tags  []string `table:",json"`
	Email string
	Age   int
	Born  time.Time `table:",omitzero"`
}

func taggedSchema() patterns.Schema[tagged] {
	return patterns.Schema[tagged]{Prefix: "id", Key: func(v *tagged) tables.Key {
		return tables.Key{Partition: "p", Row: compoundkey.Join("id", compoundkey.Int(v.ID, 4))}
	}}
}

func byTag() *intrapartition.Unique[tagged, compoundkey.Part] {
	return intrapartition.NewMultiUnique("tag", func(v *tagged) []compoundkey.Part {
		var keys []compoundkey.Part
		for _, tag := range v.Tags {
			keys = append(keys, compoundkey.Tuple(compoundkey.String(tag), compoundkey.Int(v.ID, 4)))
		}
		return keys
	}, nil)
}

func byAddress() *intrapartition.Unique[tagged, string] {
	return intrapartition.NewUnique("email", func(v *tagged) string { return v.Email }, nil)
}

func taggedRepository(t *testing.T, table *tables.Table, attached ...patterns.Pattern[tagged]) *patterns.Repository[tagged] {
	t.Helper()
	return assert.Must[*patterns.Repository[tagged]](t)(patterns.NewRepository(table, taggedSchema(), attached...))
}

func tags(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("t%02d", i))
	}
	return all
}

func allRows(t *testing.T, table *tables.Table) []string {
	t.Helper()
	var keys []string
	for e, err := range table.Entities().Query().Partition("p").All(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, e.Key.Row)
	}
	return keys
}

// TestRepositoryOrphanedCopies: a program without the index leaves more copies behind than there are attempts.
func TestRepositoryOrphanedCopies(t *testing.T) {
	ctx := context.Background()
	a, requests := harness.Counted(t)
	table := harness.NewTable(t, a)
	with, without := taggedRepository(t, table, byTag()), taggedRepository(t, table)
	v := &tagged{ID: 1, Tags: tags(12)}
	if err := with.Insert(ctx, v); err != nil {
		t.Fatal(err)
	}
	unindexed := func() {
		t.Helper()
		if _, err := without.Update(ctx, v.Key(), func(v *tagged) error { v.Age++; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	unindexed()
	before := requests.Load()
	if _, err := with.Update(ctx, v.Key(), func(v *tagged) error { v.Tags = tags(13)[1:]; return nil }); err != nil {
		t.Fatal(err)
	}
	if n := requests.Load() - before; n != 2+12 {
		t.Errorf("%d requests", n)
	}
	if rows := allRows(t, table); len(rows) != 13 || slices.Contains(rows, "tag_t00!_0001") {
		t.Fatalf("rows are %q", rows)
	}
	unindexed()
	if err := with.DeleteUnconditional(ctx, v.Key()); err != nil {
		t.Fatal(err)
	}
	if rows := allRows(t, table); len(rows) != 0 {
		t.Fatalf("the delete left %q", rows)
	}
	if err := with.Insert(ctx, v); err != nil {
		t.Fatal(err)
	}
	for _, row := range allRows(t, table) { // more copies removed by hand than there are attempts
		if row != "id_0001" {
			if err := table.Entities().DeleteUnconditional(ctx, tables.Key{Partition: "p", Row: row}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := with.DeleteUnconditional(ctx, v.Key()); err != nil {
		t.Fatal(err)
	}
	if rows := allRows(t, table); len(rows) != 0 {
		t.Fatalf("the delete left %q", rows)
	}
}

// TestRepositoryStaleCopyIsAConflict: what a program without the index changed is not overwritten through the index.
func TestRepositoryStaleCopyIsAConflict(t *testing.T) {
	ctx := context.Background()
	table := harness.NewTable(t, harness.Account(t))
	index := byAddress()
	with, without := taggedRepository(t, table, index), taggedRepository(t, table)
	v := &tagged{ID: 1, Email: "a", Age: 1}
	if err := with.Insert(ctx, v); err != nil {
		t.Fatal(err)
	}
	if _, err := without.Update(ctx, v.Key(), func(v *tagged) error { v.Age = 2; return nil }); err != nil {
		t.Fatal(err)
	}
	stale := assert.Must[*tagged](t)(index.In("p").Get(ctx, "a"))
	harness.WantKind(t, with.Replace(ctx, stale), tables.ErrConflict)
	harness.WantKind(t, with.Delete(ctx, stale), tables.ErrConflict)
	x := table.NewTransaction()
	with.StageReplace(x, stale)
	_, err := x.Commit(ctx)
	harness.WantKind(t, err, tables.ErrConflict)
	if got := assert.Must[*tagged](t)(with.Get(ctx, v.Key())); got.Age != 2 {
		t.Fatalf("%+v", got)
	}
	// A concurrent writer who has the index and moves the key: still a conflict, not an entity that is gone.
	if _, err := with.Update(ctx, v.Key(), func(v *tagged) error { v.Age = 3; return nil }); err != nil {
		t.Fatal(err)
	}
	read := assert.Must[*tagged](t)(index.In("p").Get(ctx, "a"))
	if _, err := with.Update(ctx, v.Key(), func(v *tagged) error { v.Email = "b"; return nil }); err != nil {
		t.Fatal(err)
	}
	harness.WantKind(t, with.Replace(ctx, read), tables.ErrConflict)
	harness.WantKind(t, with.Delete(ctx, read), tables.ErrConflict)
}

// TestRepositoryMergeKeepsNoLie: a merge without indexes leaves no list that names outdated copies.
func TestRepositoryMergeKeepsNoLie(t *testing.T) {
	ctx := context.Background()
	table := harness.NewTable(t, harness.Account(t))
	index := byAddress()
	with, without := taggedRepository(t, table, index), taggedRepository(t, table)
	one, two := &tagged{ID: 1, Email: "a"}, &tagged{ID: 2, Email: "b"}
	for _, v := range []*tagged{one, two} {
		if err := with.Insert(ctx, v); err != nil {
			t.Fatal(err)
		}
	}
	v := assert.Must[*tagged](t)(without.Get(ctx, one.Key()))
	v.Email = "b"
	if err := without.Merge(ctx, v, "Email"); err != nil {
		t.Fatal(err)
	}
	_, err := with.Update(ctx, one.Key(), func(v *tagged) error { v.Age++; return nil })
	harness.WantKind(t, err, tables.ErrDuplicate)
	if got := assert.Must[*tagged](t)(index.In("p").Get(ctx, "b")); got.ID != 2 {
		t.Fatalf("b is of %+v", got)
	}
}

// TestRepositoryLeavesOtherTypesAlone: a copy of an entity of another type, which this one cannot judge, is taken.
func TestRepositoryLeavesOtherTypesAlone(t *testing.T) {
	ctx := context.Background()
	type contractor struct {
		tables.Meta
		ID   int
		Mail string
	}
	table := harness.NewTable(t, harness.Account(t))
	mail := intrapartition.NewUnique("email", func(v *contractor) string { return v.Mail }, nil)
	contractors := assert.Must[*patterns.Repository[contractor]](t)(patterns.NewRepository(table, patterns.Schema[contractor]{Key: func(v *contractor) tables.Key {
		return tables.Key{Partition: "p", Row: compoundkey.Join("contractor", compoundkey.Int(v.ID, 4))}
	}}, mail))
	if err := contractors.Insert(ctx, &contractor{ID: 1, Mail: "a"}); err != nil {
		t.Fatal(err)
	}
	harness.WantKind(t, taggedRepository(t, table, byAddress()).Insert(ctx, &tagged{ID: 1, Email: "a"}), tables.ErrDuplicate)
	if got := assert.Must[*contractor](t)(mail.In("p").Get(ctx, "a")); got.ID != 1 {
		t.Fatalf("%+v", got)
	}
}

// TestRepositoryRefusesFleetingKeys: keys that depend on what is not stored would be others after the next read.
func TestRepositoryRefusesFleetingKeys(t *testing.T) {
	ctx := context.Background()
	table := harness.NewTable(t, harness.Account(t))
	day := intrapartition.NewUnique("day", func(v *tagged) string { return v.Born.Format(time.DateOnly) }, nil)
	r := taggedRepository(t, table, day)
	v := &tagged{ID: 1, Born: time.Date(2024, 1, 1, 0, 30, 0, 0, time.FixedZone("CET", 3600))}
	if e := harness.WantKind(t, r.Insert(ctx, v), tables.ErrInvalid); e.Pattern != "day" {
		t.Fatalf("%+v", e)
	}
	v.Born = v.Born.UTC()
	if err := r.Insert(ctx, v); err != nil {
		t.Fatal(err)
	}
	type unstored struct {
		tables.Meta
		ID int `table:"-"`
	}
	fleeting := assert.Must[*patterns.Repository[unstored]](t)(patterns.NewRepository(table, patterns.Schema[unstored]{Key: func(v *unstored) tables.Key {
		return tables.Key{Partition: "q", Row: fmt.Sprint(v.ID)}
	}}))
	harness.WantKind(t, fleeting.Insert(ctx, &unstored{ID: 1}), tables.ErrInvalid)
	schema := taggedSchema()
	schema.Prefix = "other"
	misplaced := assert.Must[*patterns.Repository[tagged]](t)(patterns.NewRepository(table, schema))
	harness.WantKind(t, misplaced.Insert(ctx, &tagged{ID: 5}), tables.ErrInvalid)
}

// TestRepositoryKeyFields: fields PartitionKey and RowKey are the entity's, also when it was read through a copy.
func TestRepositoryKeyFields(t *testing.T) {
	ctx := context.Background()
	type keyed struct {
		tables.Meta
		PartitionKey, RowKey string
		Name                 string
		Age                  int
	}
	table := harness.NewTable(t, harness.Account(t))
	name := intrapartition.NewUnique("name", func(v *keyed) compoundkey.Part {
		return compoundkey.Tuple(compoundkey.String(v.Name), compoundkey.String(v.RowKey))
	}, nil)
	r := assert.Must[*patterns.Repository[keyed]](t)(patterns.NewRepository(table, patterns.Schema[keyed]{Key: func(v *keyed) tables.Key {
		return tables.Key{Partition: v.PartitionKey, Row: v.RowKey}
	}}, name))
	if err := r.Insert(ctx, &keyed{PartitionKey: "p", RowKey: "1", Name: "Jones"}); err != nil {
		t.Fatal(err)
	}
	get := func(n string) *keyed {
		t.Helper()
		return assert.Must[*keyed](t)(name.In("p").Get(ctx, compoundkey.Tuple(compoundkey.String(n), compoundkey.String("1"))))
	}
	v := get("Jones")
	if v.RowKey != "1" {
		t.Fatalf("%+v", v)
	}
	v.Name = "Smith"
	if err := r.Replace(ctx, v); err != nil {
		t.Fatal(err)
	}
	v.Age = 7
	if err := r.Merge(ctx, v, "Age"); err != nil {
		t.Fatal(err)
	}
	if err := r.Delete(ctx, get("Smith")); err != nil {
		t.Fatal(err)
	}
	if rows := allRows(t, table); len(rows) != 0 {
		t.Fatalf("left %q", rows)
	}
}

// TestRepositoryPartialValues: what a projection left of an entity does not take its place.
func TestRepositoryPartialValues(t *testing.T) {
	ctx := context.Background()
	r := taggedRepository(t, harness.NewTable(t, harness.Account(t)))
	v := &tagged{ID: 1, Email: "a", Age: 1}
	if err := r.Insert(ctx, v); err != nil {
		t.Fatal(err)
	}
	part := assert.Must[*tagged](t)(r.Query().Partition("p").Select("ID", "Age").First(ctx))
	harness.WantKind(t, r.Insert(ctx, part), tables.ErrInvalid)
	harness.WantKind(t, r.Upsert(ctx, part), tables.ErrInvalid)
	harness.WantKind(t, r.ReplaceUnconditional(ctx, part), tables.ErrInvalid)
	part.ID = 2
	harness.WantKind(t, r.Merge(ctx, part, "ID"), tables.ErrInvalid) // would change the key
	if got := assert.Must[*tagged](t)(r.Get(ctx, v.Key())); got.Email != "a" || got.ID != 1 {
		t.Fatalf("%+v", got)
	}
}

// TestRepositoryUnreadableKeys: a key function that refuses what is stored stops neither reads nor the delete.
func TestRepositoryUnreadableKeys(t *testing.T) {
	ctx := context.Background()
	table := harness.NewTable(t, harness.Account(t))
	if err := taggedRepository(t, table).Insert(ctx, &tagged{ID: 1, Age: 1000}); err != nil {
		t.Fatal(err)
	}
	narrow := intrapartition.NewUnique("age", func(v *tagged) compoundkey.Part { return compoundkey.Int(v.Age, 2) }, nil)
	r := taggedRepository(t, table, narrow)
	v := assert.Must[*tagged](t)(r.Get(ctx, tables.Key{Partition: "p", Row: "id_0001"}))
	if e := harness.WantKind(t, r.Replace(ctx, v), tables.ErrInvalid); e.Pattern != "age" {
		t.Fatalf("%+v", e)
	}
	if err := r.Delete(ctx, v); err != nil {
		t.Fatal(err)
	}
}
