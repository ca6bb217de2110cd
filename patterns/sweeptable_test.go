package patterns_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// bagsText is the state of a table of bags.
func bagsText(rows stored) (string, error) {
	var all []string
	for key, row := range rows {
		all = append(all, fmt.Sprintf("%s/%s=%s", key.Partition, key.Row, unquoted(row["Text"])))
	}
	slices.Sort(all)
	return strings.Join(all, " "), nil
}

// sweptTransaction replaces one row, removes another and adds a third.
func sweptTransaction() swept {
	return swept{summary: bagsText, states: []string{"p/a=old p/b=old", "p/a=new p/c=new"},
		prepare: func(ctx context.Context, s *storagetest.Service, table string) error {
			x, err := openTable(s, table)
			if err != nil {
				return err
			}
			return errors.Join(x.Entities().Insert(ctx, harness.Bag("p", "a", "old")), x.Entities().Insert(ctx, harness.Bag("p", "b", "old")))
		},
		operate: func(ctx context.Context, s *storagetest.Service, name string) error {
			table, err := openTable(s, name)
			if err != nil {
				return err
			}
			bags := table.Entities()
			a, err := bags.Get(ctx, tables.Key{Partition: "p", Row: "a"})
			if err != nil {
				return err
			}
			b, err := bags.Get(ctx, tables.Key{Partition: "p", Row: "b"})
			if err != nil {
				return err
			}
			a.Set("Text", tables.String("new"))
			x := table.NewTransaction()
			x.Replace(a)
			x.Delete(b)
			x.Insert(harness.Bag("p", "c", "new"))
			etags, err := x.Commit(ctx)
			if err == nil && (etags[0] == "" || etags[2] == "") {
				return fmt.Errorf("without concurrent writers, the ETags are %q", etags)
			}
			return err
		},
	}
}

func TestSweepTransaction(t *testing.T) {
	c := sweptTransaction()
	c.floor = 120
	c.run(t)
}

// A transaction of the caller's own with staged changes of entities.
func TestSweepStaged(t *testing.T) {
	other := func() *member { m := sweptMember(); m.ID, m.Email = 9, "eve@contoso.com"; return m }
	swept{floor: 152, prepare: insertAll(sweptMember(), sweptNeighbour()), states: []string{"", textOf(moved(sweptMember()), other())},
		operate: onMembers(func(ctx context.Context, repo *members) error {
			m, err := repo.byEmail.In("red").Get(ctx, compoundkey.String("ann@contoso.com"))
			if err != nil {
				return err
			}
			gone, err := repo.Get(ctx, sweptNeighbour().keyOf())
			if err != nil {
				return err
			}
			x := repo.Table().NewTransaction()
			repo.StageReplace(x, moved(m))
			repo.StageDelete(x, gone)
			repo.StageInsert(x, other())
			_, err = x.Commit(ctx)
			return err
		})}.run(t)
}

// bulkCase is a bulk write that each process resumes where it knows to be, and its successor from the beginning.
type bulkCase struct {
	rows    int
	write   func(ctx context.Context, s *storagetest.Service, table string, options *tables.BulkOptions) (tables.BulkReport, error)
	summary func(stored) (int, error) // counts the entities, and fails if one of them is incomplete
	floor   int
	service func(testing.TB) *storagetest.Service
	faults  []storagetest.Fault
	callers []storagetest.Caller
}

func (c bulkCase) run(t *testing.T) {
	every := 1
	if c.service == nil { // the chosen points on Azurite are few
		every = harness.SweepEvery()
	}
	storagetest.Sweep(t, storagetest.SweepCase{World: c.world, Floor: c.floor, Service: c.service, Faults: c.faults, Callers: c.callers, Every: every})
}

func (c bulkCase) world(t testing.TB, s *storagetest.Service) storagetest.World {
	name := s.TableName(t)
	table := assert.Must[*tables.Table](t)(openTable(s, name))
	if err := table.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	resume := map[*storagetest.Service]string{} // of each process
	var furthest, attempts int64
	return storagetest.World{
		Operate: func(ctx context.Context, s *storagetest.Service) error {
			before := resume[s]
			done, err := c.write(ctx, s, name, &tables.BulkOptions{Concurrency: 1, Resume: before, SkipExisting: attempts > 0})
			attempts++
			if err == nil && done.Resume != "" {
				t.Errorf("done, and Resume is %q", done.Resume)
			}
			reached := int64(c.rows)
			if resume[s] = done.Resume; err != nil {
				reached, _ = strconv.ParseInt(cmp.Or(done.Resume, "0"), 10, 64)
			}
			furthest = max(furthest, reached)
			return err
		},
		Check: func(ctx context.Context, _ *storagetest.Service, end storagetest.Ending) error {
			rows, err := readStored(ctx, table, "")
			if err != nil {
				return err
			}
			n, err := c.summary(rows)
			if err == nil && (int64(n) < furthest || end.Succeeded() && n != c.rows) {
				return fmt.Errorf("%d of %d are there, Resume was %d", n, c.rows, furthest)
			}
			return err
		},
	}
}

// sweptBulkInsert writes members with their copies into two partitions, in three transactions.
func sweptBulkInsert() bulkCase {
	const rows = 36
	return bulkCase{rows: rows, floor: 168,
		write: func(ctx context.Context, s *storagetest.Service, table string, options *tables.BulkOptions) (tables.BulkReport, error) {
			repo, err := openMembers(s, table)
			if err != nil {
				return tables.BulkReport{}, err
			}
			return repo.BulkNonAtomic(ctx, func(yield func(*member, error) bool) {
				for i := range rows {
					m := &member{Team: []string{"red", "red", "blue"}[i%3], ID: i, Name: "Ann", Email: fmt.Sprint("ann", i), Tags: []string{"a", "b"}}
					if !yield(m, nil) {
						return
					}
				}
			}, options)
		},
		summary: func(rows stored) (int, error) {
			found, err := rows.members()
			return len(found), err
		},
	}
}

func TestSweepBulkInsert(t *testing.T) { sweptBulkInsert().run(t) }

func TestSweepBulk(t *testing.T) {
	const rows = 150
	for _, verb := range []tables.BulkVerb{tables.BulkInsert, tables.BulkUpsert, tables.BulkUpsertMerge} {
		t.Run(fmt.Sprint("verb ", verb), func(t *testing.T) {
			bulkCase{rows: rows, floor: 112,
				write: func(ctx context.Context, s *storagetest.Service, name string, options *tables.BulkOptions) (tables.BulkReport, error) {
					table, err := openTable(s, name)
					if err != nil {
						return tables.BulkReport{}, err
					}
					options.Verb = verb
					return table.Entities().BulkNonAtomic(ctx, func(yield func(*tables.Entity, error) bool) {
						for i := range rows {
							if !yield(harness.Bag("p", fmt.Sprintf("%03d", i), "new"), nil) {
								return
							}
						}
					}, options)
				},
				summary: func(rows stored) (int, error) { return len(rows), nil },
			}.run(t)
		})
	}
}

// sweptLife is an operation on a whole table.
func sweptLife(before, after bool, operate func(context.Context, *tables.Table) error) storagetest.SweepCase {
	return storagetest.SweepCase{Floor: 28, World: func(t testing.TB, s *storagetest.Service) storagetest.World {
		name := s.TableName(t)
		if before {
			if err := assert.Must[*tables.Table](t)(openTable(s, name)).Create(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		said := &outcomes{}
		return storagetest.World{
			Operate: func(ctx context.Context, s *storagetest.Service) error {
				table, err := openTable(s, name)
				if err == nil {
					err = operate(ctx, table)
				}
				said.add(err)
				return err
			},
			Check: func(ctx context.Context, s *storagetest.Service, _ storagetest.Ending) error {
				there, err := tableThere(ctx, s, name)
				if err != nil {
					return err
				}
				least, most := said.bounds()
				if least > 0 && there != after || most == 0 && there != before {
					return fmt.Errorf("there: %v, and the attempts said %q", there, said.errs)
				}
				return nil
			},
		}
	}}
}

func tableThere(ctx context.Context, s *storagetest.Service, name string) (bool, error) {
	client, err := aztables.NewServiceClientFromConnectionString(s.ConnectionString, &aztables.ClientOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return false, err
	}
	for pager := client.NewListTablesPager(nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return false, err
		}
		for _, table := range page.Tables {
			if *table.Name == name {
				return true, nil
			}
		}
	}
	return false, nil
}

func TestSweepTableLife(t *testing.T) {
	ifMissing := func(ctx context.Context, table *tables.Table) error { return table.CreateIfMissing(ctx) }
	for name, c := range map[string]storagetest.SweepCase{
		"Create":                   sweptLife(false, true, func(ctx context.Context, table *tables.Table) error { return table.Create(ctx) }),
		"CreateIfMissing":          sweptLife(false, true, ifMissing),
		"CreateIfMissing of there": sweptLife(true, true, ifMissing),
		"Drop":                     sweptLife(true, false, func(ctx context.Context, table *tables.Table) error { return table.Drop(ctx) }),
	} {
		c.Every = harness.SweepEvery()
		t.Run(name, func(t *testing.T) { storagetest.Sweep(t, c) })
	}
}
