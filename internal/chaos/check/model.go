package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// Model says where an entity type is stored, and what its primary rows ask for.
type Model struct {
	Table     *aztables.Client // of the primary rows and the copies in their partition
	RowPrefix string           // of the primary rows, with its separator
	// Key returns the key that a primary row's properties stand for. An error says that the row does not decode as the type.
	Key     func(Row) (Key, error)
	Near    []Index // copies in the entities' partition
	Outside []Index // copies in other partitions
	Lists   []Index // lists in rows of other partitions
	Blobs   []Blob
}

// Index says which key a primary row asks for.
type Index struct {
	Name  string           // the pattern's name: keys begin with it
	Table *aztables.Client // nil for Model.Table; indexes in one table have the same client
	Key   func(Row) (key Key, wanted bool)
	Keep  []string // the properties that a copy has, nil for all
}

// Blob is a property of bytes whose large values are in blobs.
type Blob struct {
	Property  string
	Container *container.Client
	Prefix    string // of the blobs' names, without a slash at its end
}

// Kind says how what is stored differs from what the primary rows ask for.
type Kind string

// The kinds of findings.
const (
	Missing    Kind = "missing"
	Spurious   Kind = "spurious"
	Different  Kind = "different"
	Unreadable Kind = "undecodable"
)

// Finding is one difference.
type Finding struct {
	Kind   Kind
	Name   string // of the index, list or blob property; "" for a primary row
	Place  string // a row key in the entity's partition, a partition and a row key with a tab between, or a blob's name
	Entity Key    // whose it is
	Detail string
}

// String tells the finding in one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s %s %q of (%q, %q) %s", f.Kind, f.Name, f.Place, f.Entity.Partition, f.Entity.Row, f.Detail)
}

// checker is one run.
type checker struct {
	*Model
	tables   map[*aztables.Client][]Row // which this run has read once
	primary  map[Key]Row                // those that decode
	other    []Row                      // those that do not
	broken   map[Key]bool               // those that do not, or whose blob is missing or different: nothing is said of their copies
	findings []Finding
}

// Check reads everything that is stored and returns what is wrong with it, in a fixed order.
func (m *Model) Check(ctx context.Context) ([]Finding, error) {
	c := &checker{Model: m, tables: map[*aztables.Client][]Row{}, primary: map[Key]Row{}, broken: map[Key]bool{}}
	for _, step := range []func(context.Context) error{c.readPrimary, c.checkBlobs, c.checkNear, c.checkOutside, c.checkLists} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(c.findings, func(a, b Finding) int { return cmp.Compare(a.String(), b.String()) })
	return c.findings, nil
}

func (c *checker) report(kind Kind, name, place string, entity Key, detail string, of ...any) {
	c.findings = append(c.findings, Finding{kind, name, place, entity, fmt.Sprintf(detail, of...)})
}

// rows are those of a table, nil for the primary one.
func (c *checker) rows(ctx context.Context, table *aztables.Client) ([]Row, error) {
	table = cmp.Or(table, c.Table)
	if rows, read := c.tables[table]; read {
		return rows, nil
	}
	rows, err := readTable(ctx, table)
	if err != nil {
		return nil, err
	}
	c.tables[table] = rows
	return rows, nil
}

// readPrimary finds the primary rows.
func (c *checker) readPrimary(ctx context.Context) error {
	rows, err := c.rows(ctx, nil)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.has("_tpPartition") || row.has("_tpPrimary") || row.has("_tpShared") || !strings.HasPrefix(row.Key.Row, c.RowPrefix) {
			continue
		}
		key, err := c.Key(row)
		if err == nil && key != row.Key {
			err = fmt.Errorf("its properties stand for the key (%q, %q)", key.Partition, key.Row)
		}
		if err != nil {
			c.broken[row.Key], c.other = true, append(c.other, row)
			c.report(Unreadable, "", "", row.Key, "%v", err)
			continue
		}
		c.primary[row.Key] = row
	}
	return nil
}

// keeps reports whether a key is that of an entity of the model of which something can be said.
func (c *checker) keeps(entity Key) bool {
	return strings.HasPrefix(entity.Row, c.RowPrefix) && !c.broken[entity]
}

// nameOf tells whose a key is, by how it begins.
func nameOf(text string, indexes []Index) string {
	for _, x := range indexes {
		if text == x.Name || strings.HasPrefix(text, x.Name+"_") {
			return x.Name
		}
	}
	return ""
}
