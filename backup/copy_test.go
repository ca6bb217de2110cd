package backup_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tablepatterns/tablepatterns/backup"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestCopy: a copy has all rows with all properties, and a second one writes nothing.
func TestCopy(t *testing.T) {
	const n = 1200 // more than a page
	account := harness.Account(t)
	from, to := newTable(t, account), newTable(t, account)
	fill(t, from, n)
	result, err := backup.Copy(t.Context(), from, to, nil)
	if err != nil || result.Read != n || result.Written != n || result.Unchanged != 0 || result.Resume != "" || result.Outside != 0 {
		t.Fatal(result, err)
	}
	wantSame(t, from, to, n)
	if result, err = backup.Copy(t.Context(), from, to, nil); err != nil || result.Written != 0 || result.Unchanged != n {
		t.Fatal(result, err)
	}
	// The write ID is the source's.
	e := assert.Must[*tables.Entity](t)(to.Entities().Get(t.Context(), keyOf(7)))
	if e.ETag == "" || len(e.Properties) != len(rowOf(7).Properties) {
		t.Errorf("%+v", e)
	}
}

// TestCopyParts: partitions, and a range of keys within and across partitions.
func TestCopyParts(t *testing.T) {
	const n = 300
	account := harness.Account(t)
	from := newTable(t, account)
	fill(t, from, n)
	for name, c := range map[string]struct {
		options backup.Options
		in      func(tables.Key) bool
	}{
		"partitions": {backup.Options{Partitions: []string{"z", "a", "none", "a"}}, func(k tables.Key) bool { return k.Partition == "a" || k.Partition == "z" }},
		"rows": {backup.Options{From: tables.Key{Partition: "big", Row: "000100"}, Before: tables.Key{Partition: "big", Row: "000200"}},
			func(k tables.Key) bool { return k.Partition == "big" && k.Row >= "000100" && k.Row < "000200" }},
		"from":   {backup.Options{From: tables.Key{Partition: "big", Row: "000100"}}, func(k tables.Key) bool { return k.Partition > "big" || k.Partition == "big" && k.Row >= "000100" }},
		"before": {backup.Options{Before: tables.Key{Partition: "it's"}}, func(k tables.Key) bool { return k.Partition < "it's" }},
		"none":   {backup.Options{From: tables.Key{Partition: "b"}, Before: tables.Key{Partition: "a"}}, func(tables.Key) bool { return false }},
		"empty":  {backup.Options{Partitions: []string{}}, func(tables.Key) bool { return false }},
	} {
		t.Run(name, func(t *testing.T) {
			want := 0
			for i := range n {
				if c.in(keyOf(i)) {
					want++
				}
			}
			to := newTable(t, account)
			result, err := backup.Copy(t.Context(), from, to, &c.options)
			if err != nil || result.Written != int64(want) {
				t.Fatal(want, result, err)
			}
			found, err := differences(t.Context(), from, to, &c.options)
			if err != nil || len(found) > 0 {
				t.Error(found, err)
			}
			if found, err = differences(t.Context(), from, to, nil); err != nil || len(found) != n-want {
				t.Error(len(found), n-want, err)
			}
			v := opened(t)
			if report, err := v.Backup(t.Context(), "part", []*tables.Table{from}, &c.options); err != nil || report.Written != int64(want) {
				t.Fatal(report, err)
			}
			restored := newTable(t, account)
			if result, err := v.Restore(t.Context(), "part", []backup.Target{{Name: from.Name(), To: restored}}, &c.options); err != nil || result.Written != int64(want) {
				t.Fatal(result, err)
			}
			wantSame(t, to, restored, want)
			assert.Check(t, to.Drop(t.Context()), restored.Drop(t.Context()))
		})
	}
}

// TestExisting: rows that exist with other content are refused, skipped or replaced, and a dry run tells of them and writes nothing.
func TestExisting(t *testing.T) {
	const n, changed = 120, 3
	account := harness.Account(t)
	from := newTable(t, account)
	fill(t, from, n)
	v := opened(t)
	assert.Check(t, assert.Err(v.Backup(t.Context(), "all", []*tables.Table{from}, nil)))
	for name, write := range map[string]func(to *tables.Table, o *backup.Options) (backup.RestoreReport, error){
		"Copy": func(to *tables.Table, o *backup.Options) (backup.RestoreReport, error) {
			return tally.Of[backup.RestoreReport](backup.Copy(t.Context(), from, to, o))
		},
		"Restore": func(to *tables.Table, o *backup.Options) (backup.RestoreReport, error) {
			return v.Restore(t.Context(), "all", []backup.Target{{Name: from.Name(), To: to}}, o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			to := newTable(t, account)
			other := rowOf(changed)
			other.Set("Alpha", tables.Int32(-1))
			other.Set("More", tables.String("x"))
			other.Properties.Delete("Zulu")
			assert.Check(t, to.Entities().Insert(t.Context(), other), to.Entities().Insert(t.Context(), rowOf(4)))
			wantOne := func(found []backup.Difference) {
				t.Helper()
				if len(found) != 1 || found[0].String() != `different: ("a", "000003") in `+to.Name()+`: Alpha, More, Zulu, _tpWrite` {
					// Row 4 differs in its write ID only.
					t.Error(found)
				}
			}
			var found []backup.Difference
			collect := func(d backup.Difference) error {
				if len(d.Properties) > 1 {
					found = append(found, d)
				} else if d.Properties[0] != "_tpWrite" {
					t.Error(d)
				}
				return nil
			}
			result, err := write(to, &backup.Options{DryRun: true, Found: collect})
			if err != nil || result.Written != n-2 || result.Findings != 2 || result.Transactions != 0 {
				t.Fatal(result, err)
			}
			wantOne(found)
			if _, err = write(to, nil); !errors.Is(err, tables.ErrExists) {
				t.Fatal(err)
			}
			found = nil
			result, err = write(to, &backup.Options{Existing: backup.SkipExisting, Found: collect})
			if err != nil || result.Unchanged+result.Written != n || result.Findings != 2 {
				t.Fatal(result, err)
			}
			wantOne(found)
			if rest, err := differences(t.Context(), from, to, nil); err != nil || len(rest) != 2 {
				t.Fatal(rest, err)
			}
			if result, err = write(to, &backup.Options{Existing: backup.ReplaceExisting}); err != nil || result.Written != n || result.Findings != 0 {
				t.Fatal(result, err)
			}
			wantSame(t, from, to, n)
		})
	}
}

// TestCompare: each kind of difference is found, and named.
func TestCompare(t *testing.T) {
	const n = 600
	account := harness.Account(t)
	first, second := newTable(t, account), newTable(t, account)
	fill(t, first, n)
	assert.Check(t, assert.Err(backup.Copy(t.Context(), first, second, nil)))
	v := opened(t)
	assert.Check(t, assert.Err(v.Backup(t.Context(), "all", []*tables.Table{first}, &backup.Options{ChunkBytes: 16 << 10})))
	rows := second.Entities()
	e := assert.Must[*tables.Entity](t)(rows.Get(t.Context(), keyOf(100)))
	e.Set("Alpha", tables.Int32(5))
	assert.Check(t, rows.Replace(t.Context(), e), rows.DeleteUnconditional(t.Context(), keyOf(500)), rows.DeleteUnconditional(t.Context(), keyOf(0)))
	for _, k := range []tables.Key{{Partition: "", Row: ""}, {Partition: "big", Row: "000200x"}, {Partition: "zz", Row: "1"}} {
		assert.Check(t, rows.Insert(t.Context(), harness.Row(k.Partition, k.Row)))
	}
	in := " in " + second.Name()
	want := []string{
		`additional: ("", "")` + in, `additional: ("big", "000200x")` + in, `additional: ("zz", "1")` + in,
		`different: ("big", "000100")` + in + ": Alpha, _tpWrite", `missing: ("big", "000000")` + in, `missing: ("big", "000500")` + in,
	}
	check := func(found []backup.Difference, err error) {
		t.Helper()
		if err != nil || len(found) != len(want) {
			t.Fatal(found, err)
		}
		for i := range want {
			if found[i].String() != want[i] {
				t.Errorf("%s, want %s", found[i], want[i])
			}
		}
	}
	check(differences(t.Context(), first, second, nil))
	check(inBackup(t.Context(), v, "all", first.Name(), second))
	found, err := inBackup(t.Context(), v, "all", first.Name(), first)
	if err != nil || len(found) > 0 {
		t.Error(found, err)
	}
}

// inBackup compares a table of a backup with a table.
func inBackup(ctx context.Context, v *backup.Vault, name, table string, with *tables.Table) (found []backup.Difference, err error) {
	_, err = v.Compare(ctx, name, table, with, &backup.Options{Found: func(d backup.Difference) error {
		found = append(found, d)
		return nil
	}})
	sortDifferences(found)
	return found, err
}

// TestCopyFromCosmos: Azure Cosmos DB returns rows in no order of keys. A copy from there finds the rows that the destination has
// already, whatever the order.
func TestCopyFromCosmos(t *testing.T) {
	ctx := t.Context()
	from := harness.Cosmos(t, []tables.Key{{Partition: "p", Row: "b"}, {Partition: "p", Row: "c"}, {Partition: "p", Row: "a"}, {Partition: "q", Row: "z"}, {Partition: "o", Row: "z"}})
	to := newTable(t, harness.Account(t))
	for _, unchanged := range []int64{0, 5} {
		if result, err := backup.Copy(ctx, from, to, nil); err != nil || result.Read != 5 || result.Unchanged != unchanged {
			t.Fatalf("%+v, %v", result, err)
		}
	}
	changed := assert.Must[*tables.Entity](t)(to.Entities().Get(ctx, tables.Key{Partition: "p", Row: "b"}))
	changed.Properties.Set("Name", tables.String("another"))
	assert.Check(t, to.Entities().Replace(ctx, changed))
	if result, err := backup.Copy(ctx, from, to, &backup.Options{DryRun: true}); err != nil || result.Written != 0 || result.Findings != 1 {
		t.Errorf("%+v, %v", result, err)
	}
}
