package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// driftLag is for how long a difference in the other table has to last. Nobody writes meanwhile, so a moment is enough; where
// others do, it is longer than a worker takes to come to an intent.
const driftLag = 100 * time.Millisecond

// drift damages what is stored, as a program that does not know the patterns would, and has it found and repaired.
func drift() scenario {
	return scenario{
		title: "Drift found and repaired",
		guide: "Ensuring consistency in your stored entities",
		shows: []show{
			{"Verify and repair", "Repository.Verify", "", "all damage is found, and nothing else"},
		},
		run: func(ctx context.Context, c *company, s *section) error {
			d, err := c.openDrifting(ctx)
			if err != nil {
				return err
			}
			return steps(ctx, s, d.load, d.doDamage, d.find, d.repair, d.addIndex)
		},
	}
}

// drifting is employees with copies and lists beside them, and copies in another table.
type drifting struct {
	c       *company
	staff   []*Employee // as they are stored, by their ids from reviewed to jones
	repo    *patterns.Repository[Employee]
	emails  *tables.Table // of the copies elsewhere
	damages []damage
}

func (c *company) openDrifting(ctx context.Context) (*drifting, error) {
	d := &drifting{c: c}
	employees, err := c.table(ctx, "Drift")
	if err != nil {
		return nil, err
	}
	if d.emails, err = c.table(ctx, "DriftEmails"); err != nil {
		return nil, err
	}
	d.repo, err = d.repository(employees)
	return d, err
}

// repository attaches the patterns to the employees' table, and more of them.
func (d *drifting) repository(employees *tables.Table, more ...patterns.Pattern[Employee]) (*patterns.Repository[Employee], error) {
	byEmail := func(e *Employee) compoundkey.Part { return compoundkey.String(e.Email) }
	return patterns.NewRepository(employees, newSchema(), append([]patterns.Pattern[Employee]{
		intrapartition.NewIndex("email", byEmail, nil),
		besideEmployees(),
		interpartition.NewIndex("everybody", byEmail, &interpartition.Options[Employee]{
			Group: func(*Employee) string { return interpartition.Global },
			Table: d.emails,
		}),
	}, more...)...)
}

// load inserts the employees. The first and the last one, both of Sales, have one last name here.
func (d *drifting) load(ctx context.Context, s *section) error {
	for _, e := range d.c.staff[reviewed-1 : jones] {
		d.staff = append(d.staff, e.unwritten())
	}
	d.employee(reviewed).LastName = d.employee(jones).LastName
	if err := d.c.exposed(s, "employees with three patterns", func() (string, error) {
		return counted(len(d.staff), "employee"), insertByName(ctx, d.repo, d.staff)
	}); err != nil {
		return err
	}
	return d.c.drainIntents(ctx)
}

func (d *drifting) employee(id int) *Employee { return d.staff[id-reviewed] }

// damage is one thing that is done behind the library's back.
type damage struct {
	what string
	do   func(ctx context.Context) error
	want patterns.Finding // what Verify is to say of it
}

// doDamage writes to the tables with the Azure SDK alone.
func (d *drifting) doDamage(ctx context.Context, s *section) error {
	d.damages = []damage{
		d.deleteCopy(d.employee(reviewed + 1)),
		d.changeCopy(d.employee(reviewed + 2)),
		d.addCopy(d.employee(reviewed + 3)),
		d.deleteCopyElsewhere(d.employee(reviewed + 4)),
		d.leaveOut(d.employee(jones)),
	}
	for _, x := range d.damages {
		if err := d.c.act(s, "damage: "+x.what, func() (string, error) {
			return "with the Azure SDK alone", x.do(ctx)
		}); err != nil {
			return err
		}
	}
	return nil
}

// emailKey is where the copy by email is, beside the employee.
func emailKey(department, email string) tables.Key {
	return tables.Key{Partition: department, Row: compoundkey.Join("email", compoundkey.String(email))}
}

// wrong is a discrepancy of an employee's copy or list.
func (d *drifting) wrong(kind patterns.FindingKind, pattern, place string, e *Employee) patterns.Finding {
	return patterns.Finding{Kind: kind, Pattern: pattern, Location: place, Entity: d.repo.KeyOf(e), Table: d.repo.Table().Name()}
}

func (d *drifting) deleteCopy(e *Employee) damage {
	key := emailKey(e.Department, e.Email)
	return damage{"a copy deleted", func(ctx context.Context) error {
		_, err := d.repo.Table().Client().DeleteEntity(ctx, key.Partition, key.Row, nil)
		return err
	}, d.wrong(patterns.Missing, "email", key.Row, e)}
}

func (d *drifting) changeCopy(e *Employee) damage {
	key := emailKey(e.Department, e.Email)
	return damage{"a copy's property changed", func(ctx context.Context) error {
		return mergeRaw(ctx, d.repo.Table(), key, rawRow{"FirstName": "Somebody"})
	}, d.wrong(patterns.Different, "email", key.Row, e)}
}

// addCopy adds a second copy, by an email that the employee does not have.
func (d *drifting) addCopy(e *Employee) damage {
	from, to := emailKey(e.Department, e.Email), emailKey(e.Department, "nobody@contoso.com")
	return damage{"a copy added that nobody asks for", func(ctx context.Context) error {
		row, err := readRaw(ctx, d.repo.Table(), from)
		if err != nil {
			return err
		}
		row["RowKey"] = to.Row
		body, err := json.Marshal(row)
		if err != nil {
			return err
		}
		_, err = d.repo.Table().Client().AddEntity(ctx, body, nil)
		return err
	}, d.wrong(patterns.Spurious, "email", to.Row, e)}
}

func (d *drifting) deleteCopyElsewhere(e *Employee) damage {
	key := tables.Key{Partition: "everybody", Row: compoundkey.Join("", compoundkey.String(e.Email))}
	want := d.wrong(patterns.Missing, "everybody", key.Partition+"\t"+key.Row, e)
	want.Table = d.emails.Name()
	return damage{"a copy in the other table deleted", func(ctx context.Context) error {
		_, err := d.emails.Client().DeleteEntity(ctx, key.Partition, key.Row, nil)
		return err
	}, want}
}

// leaveOut takes an employee's key out of the list of the last name.
func (d *drifting) leaveOut(e *Employee) damage {
	key := tables.Key{Partition: e.Department, Row: compoundkey.Join("lastname", compoundkey.String(e.LastName))}
	want := d.wrong(patterns.Missing, "lastname", key.Partition+"\t"+key.Row, e)
	want.Table = "" // the place of a list is in the words of its pattern
	return damage{"a key taken out of a list", func(ctx context.Context) error {
		row, err := readRaw(ctx, d.repo.Table(), key)
		if err != nil {
			return err
		}
		text, _ := row["Keys"].(string)
		before := strings.Split(text, "\n")
		after := slices.DeleteFunc(slices.Clone(before), func(row string) bool { return row == d.repo.KeyOf(e).Row })
		if len(after) != len(before)-1 || len(after) == 0 {
			return fmt.Errorf("the list of %s has %s, and employee %d is not one of several", e.LastName, counted(len(before), "key"), e.ID)
		}
		return mergeRaw(ctx, d.repo.Table(), key, rawRow{"Keys": strings.Join(after, "\n"), "Count": len(after)})
	}, want}
}

// rawRow is a row as the service sends and takes it, with the library's own properties.
type rawRow map[string]any

func readRaw(ctx context.Context, table *tables.Table, key tables.Key) (rawRow, error) {
	answer, err := table.Client().GetEntity(ctx, key.Partition, key.Row, nil)
	if err != nil {
		return nil, err
	}
	var row rawRow
	if err := json.Unmarshal(answer.Value, &row); err != nil {
		return nil, err
	}
	for name := range row {
		if strings.HasPrefix(name, "odata.") || strings.HasPrefix(name, "Timestamp") {
			delete(row, name) // which the service makes itself
		}
	}
	return row, nil
}

// mergeRaw changes some properties of a row, whatever its ETag is.
func mergeRaw(ctx context.Context, table *tables.Table, key tables.Key, properties rawRow) error {
	properties["PartitionKey"], properties["RowKey"] = key.Partition, key.Row
	body, err := json.Marshal(properties)
	if err != nil {
		return err
	}
	_, err = table.Client().UpdateEntity(ctx, body, &aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeMerge})
	return err
}

// find has Verify find the damage, and nothing else.
func (d *drifting) find(ctx context.Context, s *section) error {
	return d.c.act(s, "Repository.Verify", func() (string, error) {
		var found []patterns.Finding
		_, err := d.repo.Verify(ctx, &patterns.JobOptions{Lag: driftLag, Found: func(x patterns.Finding) error {
			found = append(found, x)
			return nil
		}})
		if err != nil {
			return "", err
		}
		s.Text = append(s.Text, "What Verify found and Repair corrected:")
		for _, x := range found {
			s.Text = append(s.Text, "  "+x.String())
		}
		return fmt.Sprintf("%s found, these and no other", counted(len(found), "difference")), d.exactly(found)
	})
}

// exactly is an error unless each damage was found once, and nothing else.
func (d *drifting) exactly(found []patterns.Finding) error {
	var got, want []string
	for _, x := range found {
		x.Err, x.Repaired = nil, false // they say more than what and where
		got = append(got, x.String())
	}
	for _, x := range d.damages {
		want = append(want, x.want.String())
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		return fmt.Errorf("the differences are\n%s\nand should be\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	return nil
}

// repair corrects what Verify has found. After it, Verify finds nothing.
func (d *drifting) repair(ctx context.Context, s *section) error {
	if err := d.c.act(s, "Repository.Repair", func() (string, error) {
		var repaired []patterns.Finding
		_, err := d.repo.Repair(ctx, &patterns.JobOptions{Lag: driftLag, Found: func(x patterns.Finding) error {
			repaired = append(repaired, x)
			if !x.Repaired {
				return fmt.Errorf("%v: %w", x, x.NotRepaired)
			}
			return nil
		}})
		if err != nil {
			return "", err
		}
		return counted(len(repaired), "difference") + " repaired", d.exactly(repaired)
	}); err != nil {
		return err
	}
	return d.c.act(s, "Repository.Verify once more", func() (string, error) {
		return "nothing to repair", clean(ctx, d.repo)
	})
}

// addIndex gives a table that has data one more index, as the next version of a program does: with the store opened again,
// since two repositories of one name cannot have their intents on one queue.
func (d *drifting) addIndex(ctx context.Context, s *section) error {
	store, err := d.c.openStore()
	if err != nil {
		return err
	}
	hired := intrapartition.NewIndex("hired", func(e *Employee) compoundkey.Part {
		return compoundkey.Tuple(compoundkey.Time(e.HireDate), id(e.ID))
	}, nil)
	repo, err := d.repository(store.Table("Drift"), hired)
	if err != nil {
		return err
	}
	if err := d.c.act(s, "an index by hire date, by Rebuild", func() (string, error) {
		done, err := repo.Rebuild(ctx, &patterns.JobOptions{Patterns: []string{"hired"}})
		if err == nil && (done.Written != int64(len(d.staff)) || done.Failed != 0) {
			err = fmt.Errorf("%d of %d employees were entered, %d could not be", done.Written, len(d.staff), done.Failed)
		}
		return counted(int(done.Written), "employee") + " entered", err
	}); err != nil {
		return err
	}
	return d.c.act(s, "the new index, read whole", func() (string, error) {
		query, err := hired.Query(compoundkey.All())
		if err != nil {
			return "", err
		}
		found, err := collect(query.AllPartitions(ctx, departmentNames(), nil))
		if err != nil {
			return "", err
		}
		if err := sameStaff(found, d.staff); err != nil {
			return "", err
		}
		if err := clean(ctx, repo); err != nil {
			return "", err
		}
		return counted(len(found), "employee") + ", as written; nothing to repair, no intent is left", d.c.drainIntents(ctx)
	})
}
