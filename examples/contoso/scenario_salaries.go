package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	keyLifetime = 300 * time.Millisecond // for which a program keeps keys in memory while they rotate; minutes outside of an example
	payrolls    = 4                      // programs that raise salaries during the rotation
	raise       = 100
)

// salaries keeps salaries and national ids so that only the program can read them.
func salaries() scenario {
	return scenario{
		title: "Salaries and national ids, encrypted",
		guide: "Encrypting Table Data",
		shows: []show{
			{"Encryption", "one national id in Sales", "", "nothing in clear; keys rotate under writers"},
		},
		run: func(ctx context.Context, c *company, s *section) error {
			v, err := c.openVault(ctx)
			if err != nil {
				return err
			}
			s.Plain = "the department read whole, and decrypted"
			s.Text = append(s.Text, "What is done while salaries rise is counted with the requests of those who raise them.")
			return steps(ctx, s, v.load, v.askByNationalID, v.findByBeacon, v.searchClearText, v.tamper, v.rotate, v.check)
		},
	}
}

// vault is the confidential table, the table of data keys, and the keys that wrap those.
type vault struct {
	c        *company
	table    *tables.Table
	keys     *tables.Table
	old, new encryption.KeyWrapper
	registry *encryption.Registry
	people   *confidentials
	staff    []*Confidential // as they are stored
}

func (c *company) openVault(ctx context.Context) (v *vault, err error) {
	v = &vault{c: c}
	if v.table, err = c.table(ctx, "Confidential"); err != nil {
		return nil, err
	}
	if v.keys, err = c.table(ctx, "DataKeys"); err != nil {
		return nil, err
	}
	if v.old, err = newWrappingKey("2025"); err != nil {
		return nil, err
	}
	if v.new, err = newWrappingKey("2026"); err != nil {
		return nil, err
	}
	if v.registry, err = encryption.NewRegistry(v.keys, v.old, nil); err != nil {
		return nil, err
	}
	if _, err = v.registry.CreateDataKey(ctx); err != nil {
		return nil, err
	}
	if err = v.registry.CreateBeacon(ctx, "nationalid"); err != nil {
		return nil, err
	}
	v.people, err = openConfidentials(ctx, v.table, v.registry)
	return v, err
}

// newRegistry is a registry of a program that is about to see keys rotated.
func (v *vault) newRegistry(wrapper encryption.KeyWrapper) (*encryption.Registry, error) {
	return encryption.NewRegistry(v.keys, wrapper, &encryption.RegistryOptions{TTL: keyLifetime})
}

// june is June Jones as she is stored.
func (v *vault) june() *Confidential { return v.staff[jones-1] }

func (v *vault) load(ctx context.Context, s *section) error {
	for _, e := range v.c.staff[:minEmployees] {
		v.staff = append(v.staff, newConfidential(e))
	}
	return v.c.exposed(s, "employees inserted, encrypted", func() (string, error) {
		done, err := v.people.repo.BulkNonAtomic(ctx, each(v.staff), nil)
		return fmt.Sprintf("%s, each with a copy by a keyed hash of the national id", counted(int(done.Written), "employee")), err
	})
}

// askByNationalID: what is encrypted cannot be asked for, so without the index a department is decrypted.
func (v *vault) askByNationalID(ctx context.Context, s *section) error {
	june := v.june()
	has := func(e *Confidential) bool { return e.NationalID == june.NationalID }
	query, err := v.people.byNationalID.Query(v.people.havingBeacon(june.NationalID))
	if err != nil {
		return err
	}
	hits, err := collect(query.Partition(sales).All(ctx))
	if err != nil {
		return err
	}
	with := wayTo[Confidential]{class: tables.RangeQuery, searched: len(hits), ask: func(ctx context.Context) iter.Seq2[*Confidential, error] {
		return encryption.Matching(query.Partition(sales).All(ctx), has)
	}}
	without := wayTo[Confidential]{class: tables.RangeQuery, ask: func(ctx context.Context) iter.Seq2[*Confidential, error] {
		return encryption.Matching(v.people.repo.Query().Partition(sales).All(ctx), has)
	}}
	for _, e := range v.staff {
		if e.Department == sales {
			without.searched++
		}
	}
	return ask(ctx, v.c, s, asked[Confidential, confidentialRecord]{text: "one national id in Sales", with: with, without: without, record: (*Confidential).record})
}

// findByBeacon: the query by beacon also finds employees with the same few bits of hash; Matching filters them out.
func (v *vault) findByBeacon(ctx context.Context, s *section) error {
	return v.c.act(s, "everybody looked up by national id", func() (string, error) {
		var mu sync.Mutex
		others := 0
		err := together(ctx, v.staff, func(ctx context.Context, want *Confidential) error {
			hits, err := collect(v.people.byNationalID.Range(ctx, want.Department, v.people.havingBeacon(want.NationalID)))
			if err != nil {
				return err
			}
			found, err := collect(encryption.Matching(each(hits), func(e *Confidential) bool { return e.NationalID == want.NationalID }))
			if err != nil {
				return err
			}
			if len(found) != 1 || found[0].record() != want.record() {
				return fmt.Errorf("employee %d was found %d times, or not as written", want.ID, len(found))
			}
			mu.Lock()
			defer mu.Unlock()
			others += len(hits) - len(found)
			return nil
		})
		return fmt.Sprintf("each is found; %s with the same hash filtered out", counted(others, "other")), err
	})
}

// searchClearText looks at all rows as who has got at the tables does.
func (v *vault) searchClearText(ctx context.Context, s *section) error {
	return v.c.act(s, "both tables searched for clear text", func() (string, error) {
		rows, values, err := v.storedValues(ctx)
		if err != nil {
			return "", err
		}
		for _, e := range v.staff {
			for _, secret := range []string{e.NationalID, fmt.Sprint("Int64 ", e.Salary)} {
				if strings.Contains(values, secret) {
					return "", fmt.Errorf("a secret of employee %d is stored in clear", e.ID)
				}
			}
			if !strings.Contains(values, e.Name) {
				return "", fmt.Errorf("the name of employee %d is not there, so that the search proves nothing", e.ID)
			}
		}
		return fmt.Sprintf("%s, no national id and no salary in any; the names, which are not encrypted, are there", counted(rows, "row")), nil
	})
}

// storedValues is everything in both tables as text, and how many rows there are.
func (v *vault) storedValues(ctx context.Context) (rows int, values string, err error) {
	var text strings.Builder
	for _, table := range []*tables.Table{v.table, v.keys} {
		for row, err := range table.Entities().Query().AllowTableScan().All(ctx) {
			if err != nil {
				return 0, "", err
			}
			rows++
			fmt.Fprintln(&text, row.Key.Partition, row.Key.Row)
			for _, property := range row.Properties {
				if b, binary := property.Value.Bytes(); binary {
					fmt.Fprintf(&text, "%s\n", b)
					continue
				}
				fmt.Fprintln(&text, property.Value.Type(), property.Value.Any())
			}
		}
	}
	return rows, text.String(), nil
}

// tamper puts a colleague's encrypted salary in the place of June Jones's, as who may write rows could, and takes it back.
func (v *vault) tamper(ctx context.Context, s *section) error {
	june, colleague := v.people.repo.KeyOf(v.june()), v.people.repo.KeyOf(v.staff[reviewed-1])
	if err := v.c.act(s, "a colleague's salary put into her row", func() (string, error) {
		hers, err := v.swapSalary(ctx, june, colleague)
		if err != nil {
			return "", err
		}
		if _, err := v.people.repo.Get(ctx, june); !errors.Is(err, encryption.ErrNotAuthentic) {
			return "", fmt.Errorf("it was read: %w", err)
		}
		return "her row is refused: " + encryption.ErrNotAuthentic.Error(), v.setSalary(ctx, june, hers)
	}); err != nil {
		return err
	}
	return v.c.act(s, "her own salary put back", func() (string, error) {
		got, err := v.people.repo.Get(ctx, june)
		if err == nil && got.record() != v.june().record() {
			err = errors.New("she is not as written")
		}
		return "her row is read again", err
	})
}

// swapSalary writes one row's salary into another, and returns what was there.
func (v *vault) swapSalary(ctx context.Context, to, from tables.Key) (before tables.Value, err error) {
	rows := v.table.Entities()
	a, err := rows.Get(ctx, to)
	if err != nil {
		return before, err
	}
	b, err := rows.Get(ctx, from)
	if err != nil {
		return before, err
	}
	before = a.Get("Salary")
	stolen, _ := b.Get("Salary").Bytes()
	if own, encrypted := before.Bytes(); !encrypted || bytes.Equal(own, stolen) {
		return before, errors.New("the salaries are not two different ciphertexts")
	}
	return before, v.setSalary(ctx, to, b.Get("Salary"))
}

// setSalary writes a property as it stands, by the Azure SDK: the library refuses to.
func (v *vault) setSalary(ctx context.Context, key tables.Key, value tables.Value) error {
	b, _ := value.Bytes()
	return mergeRaw(ctx, v.table, key, rawRow{"Salary": b, "Salary@odata.type": "Edm.Binary"})
}

// check reads everybody through both keys.
func (v *vault) check(ctx context.Context, s *section) error {
	return v.c.act(s, "everybody, by Repository.Verify", func() (string, error) {
		found := 0
		for e, err := range v.people.repo.Query().AllPartitions(ctx, departmentNames(), nil) {
			if err != nil {
				return "", err
			}
			if want := v.staff[e.ID-1]; e.record() != want.record() {
				return "", fmt.Errorf("employee %d is not as written", e.ID)
			}
			found++
		}
		if found != len(v.staff) {
			return "", fmt.Errorf("%d employees of %d", found, len(v.staff))
		}
		return fmt.Sprintf("%s, every raise counted; nothing to repair", counted(found, "employee")), clean(ctx, v.people.repo)
	})
}
