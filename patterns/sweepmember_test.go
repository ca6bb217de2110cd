package patterns_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// member is the entity of sweeps, schedules and histories: it has an index of each sort.
type member struct {
	tables.Meta
	Team  string
	ID    int
	Name  string
	Email string   // unique; without one the member is not in the index
	Tags  []string `table:",json"`
	Count int64    // counts updates
	Stamp int64    // which write it was
}

// text is all of a member that was written, to compare and to print.
func (m *member) text() string {
	return fmt.Sprintf("%s/%d %s <%s> %s count %d stamp %d", m.Team, m.ID, m.Name, m.Email, strings.Join(m.Tags, "+"), m.Count, m.Stamp)
}

func memberKey(team string, id int) tables.Key {
	return tables.Key{Partition: team, Row: fmt.Sprintf("member_%04d", id)}
}

// members is a repository of members, as one process has it.
type members struct {
	*patterns.Repository[member]
	byName, byTag, byEmail *intrapartition.Unique[member, compoundkey.Part]
}

// openTable opens a table with a client of its own.
func openTable(s *storagetest.Service, name string) (*tables.Table, error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	return account.Table(name), nil
}

// openMembers makes a process's repository, with all indexes: by name, projected; by tag, several keys; by email,
// sparse and unique.
func openMembers(s *storagetest.Service, table string) (*members, error) {
	m := &members{
		byName: intrapartition.NewUnique("name", func(m *member) compoundkey.Part {
			return compoundkey.Tuple(compoundkey.String(m.Name), compoundkey.Int(m.ID, 4))
		}, &intrapartition.Options{Project: []string{"Name", "Stamp"}}),
		byTag: intrapartition.NewMultiUnique("tag", func(m *member) []compoundkey.Part {
			var parts []compoundkey.Part
			for _, tag := range m.Tags {
				parts = append(parts, compoundkey.Tuple(compoundkey.String(tag), compoundkey.Int(m.ID, 4)))
			}
			return parts
		}, nil),
		byEmail: intrapartition.NewUnique("email", func(m *member) compoundkey.Part {
			if m.Email == "" {
				return compoundkey.Part{}
			}
			return compoundkey.String(m.Email)
		}, nil),
	}
	return m, m.open(s, table, m.byName, m.byTag, m.byEmail)
}

// openBareMembers is a program of before there were indexes.
func openBareMembers(s *storagetest.Service, table string) (*members, error) {
	m := &members{}
	return m, m.open(s, table)
}

func (m *members) open(s *storagetest.Service, name string, indexes ...patterns.Pattern[member]) error {
	table, err := openTable(s, name)
	if err != nil {
		return err
	}
	m.Repository, err = patterns.NewRepository(table, patterns.Schema[member]{
		Key: func(m *member) tables.Key {
			return tables.Key{Partition: m.Team, Row: compoundkey.Join("member", compoundkey.Int(m.ID, 4))}
		},
		Prefix: "member",
	}, indexes...)
	return err
}

// stored is the rows of a table as the service has them: property values in JSON, by key and name.
type stored map[tables.Key]map[string]string

// readStored reads a table past the library. partition is "" for all.
func readStored(ctx context.Context, table *tables.Table, partition string) (stored, error) {
	rows := stored{}
	options := &aztables.ListEntitiesOptions{}
	if partition != "" {
		filter := "PartitionKey eq '" + partition + "'"
		options.Filter = &filter
	}
	for pager := table.Client().NewListEntitiesPager(options); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, entity := range page.Entities {
			var all map[string]json.RawMessage
			if err := json.Unmarshal(entity, &all); err != nil {
				return nil, err
			}
			row := map[string]string{}
			for name, value := range all {
				if !strings.Contains(name, "odata.") {
					row[name] = string(value)
				}
			}
			key := tables.Key{Partition: unquoted(row["PartitionKey"]), Row: unquoted(row["RowKey"])}
			for _, name := range []string{"PartitionKey", "RowKey", "Timestamp"} {
				delete(row, name)
			}
			rows[key] = row
		}
	}
	return rows, nil
}

func unquoted(value string) (text string) {
	_ = json.Unmarshal([]byte(value), &text) // what is no text is ""
	return text
}

// text prints the rows in order.
func (rows stored) text() string {
	var b strings.Builder
	for _, key := range slices.SortedFunc(maps.Keys(rows), compareKeys) {
		fmt.Fprintf(&b, "\n%s %s:", key.Partition, key.Row)
		for _, name := range slices.Sorted(maps.Keys(rows[key])) {
			fmt.Fprintf(&b, " %s=%s", name, rows[key][name])
		}
	}
	return b.String()
}

func compareKeys(a, b tables.Key) int {
	return strings.Compare(a.Partition+"\x00"+a.Row, b.Partition+"\x00"+b.Row)
}

// members finds the entities among the rows, and reports what is wrong with their copies: there must be just those that
// follow from the entity, with its properties of now, its life and its last write.
func (rows stored) members() (map[tables.Key]*member, error) {
	found := map[tables.Key]*member{}
	expected := map[tables.Key]tables.Key{} // whose copy it is
	var wrong []error
	for key, row := range rows {
		if _, isCopy := row["_tpPrimary"]; isCopy {
			continue
		}
		m, err := memberOf(row)
		if err != nil || memberKey(m.Team, m.ID) != key {
			wrong = append(wrong, fmt.Errorf("%v is no member: %v", key, err))
			continue
		}
		found[key] = m
		for copied, want := range copiesOf(m, key, row) {
			if owner, taken := expected[copied]; taken {
				wrong = append(wrong, fmt.Errorf("%v is a copy of both %v and %v", copied, owner, key))
			}
			expected[copied] = key
			if got, there := rows[copied]; !there {
				wrong = append(wrong, fmt.Errorf("%v has no copy %v", key, copied))
			} else if !maps.Equal(got, want) {
				wrong = append(wrong, fmt.Errorf("%v is %v, and of %v should be %v", copied, got, key, want))
			}
		}
	}
	for key, row := range rows {
		if _, known := expected[key]; !known && found[key] == nil {
			wrong = append(wrong, fmt.Errorf("%v is nobody's copy: %v", key, row))
		}
	}
	return found, errors.Join(wrong...)
}

// dropOrphans removes copies that a program without indexes left behind: their entity was written since, or is gone.
func (rows stored) dropOrphans() {
	for key, row := range rows {
		owner, isCopy := row["_tpPrimary"]
		if isCopy && rows[tables.Key{Partition: key.Partition, Row: unquoted(owner)}]["_tpWrite"] != row["_tpWrite"] {
			delete(rows, key)
		}
	}
}

func memberOf(row map[string]string) (*member, error) {
	m := &member{Team: unquoted(row["Team"]), Name: unquoted(row["Name"]), Email: unquoted(row["Email"])}
	var errs []error
	scan := func(name string, to any) {
		_, err := fmt.Sscan(unquoted(row[name]), to)
		errs = append(errs, err)
	}
	scan("ID", &m.ID)
	scan("Count", &m.Count)
	scan("Stamp", &m.Stamp)
	errs = append(errs, json.Unmarshal([]byte(unquoted(row["Tags"])), &m.Tags))
	return m, errors.Join(errs...)
}

// copiesOf says, in words of its own and not the library's, which copies a member's row promises.
func copiesOf(m *member, key tables.Key, row map[string]string) map[tables.Key]map[string]string {
	copies := map[tables.Key]map[string]string{}
	add := func(index, indexKey string, keep ...string) {
		if !slices.Contains(strings.Split(unquoted(row["_tpCopies"]), ","), index) {
			return // written by a program without this index
		}
		copied := map[string]string{"_tpPrimary": `"` + key.Row + `"`}
		for name, value := range row {
			if len(keep) == 0 || strings.HasPrefix(name, "_tp") || slices.Contains(keep, name) {
				copied[name] = value
			}
		}
		copies[tables.Key{Partition: key.Partition, Row: index + "_" + indexKey}] = copied
	}
	add("name", fmt.Sprintf("%s!_%04d", m.Name, m.ID), "Name", "Stamp")
	for _, tag := range m.Tags {
		add("tag", fmt.Sprintf("%s!_%04d", tag, m.ID))
	}
	if m.Email != "" {
		add("email", m.Email)
	}
	return copies
}

// membersText is the state of a table of members, or what is wrong with it.
func membersText(rows stored) (string, error) {
	found, err := rows.members()
	if err != nil {
		return "", fmt.Errorf("%w; rows:%s", err, rows.text())
	}
	return textOf(slices.Collect(maps.Values(found))...), nil
}

func textOf(all ...*member) string {
	var lines []string
	for _, m := range all {
		lines = append(lines, m.text())
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}
