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

// Model says where an entity type is stored, and which rows its primary rows require.
type Model struct {
	Table     *aztables.Client // the table of the primary rows and the copies in their partition
	RowPrefix string           // prefix of the primary rows' keys, with its separator
	// Key returns the key that follows from a primary row's properties. An error means that the row cannot be decoded as the type.
	Key     func(Row) (Key, error)
	Near    []Index // copies in the entities' partition
	Outside []Index // copies in other partitions
	Blobs   []Blob
}

// Index says which key a primary row requires.
type Index struct {
	Name  string           // name of the pattern, with which its keys begin
	Table *aztables.Client // nil for Model.Table; give indexes in one table the same client
	Key   func(Row) (key Key, wanted bool)
	Keep  []string // the properties that a copy has; nil means all, and a copy outside then has the ETag, too
}

// Blob is a property of bytes whose large values are in blobs.
type Blob struct {
	Property  string
	Container *container.Client
	Prefix    string // beginning of the blobs' names, without the final slash
}

// Kind says how stored data differs from what the primary rows require.
type Kind string

// The kinds of Finding.
const (
	Missing    Kind = "missing"
	Spurious   Kind = "spurious"
	Different  Kind = "different"
	Unreadable Kind = "undecodable"
)

// Finding is one difference.
type Finding struct {
	Kind   Kind
	Name   string // name of the index or blob property; "" for a primary row
	Place  string // a row key in the entity's partition, a partition and a row key with a tab between, or a blob's name
	Entity Key    // key of the entity
	Detail string
}

// String describes the finding in one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s %s %q of (%q, %q) %s", f.Kind, f.Name, f.Place, f.Entity.Partition, f.Entity.Row, f.Detail)
}

// checker is one run of Check.
type checker struct {
	*Model
	tables   map[*aztables.Client][]Row // tables that this run has read
	primary  map[Key]Row                // entities that were decoded
	other    []Row                      // entities that cannot be decoded
	broken   map[Key]bool               // entities that cannot be decoded, or whose blob is missing or different; their copies are not checked
	findings []Finding
}

// Check reads all tables and blobs of the model and returns the differences, in a fixed order.
func (m *Model) Check(ctx context.Context) ([]Finding, error) {
	c := &checker{Model: m, tables: map[*aztables.Client][]Row{}, primary: map[Key]Row{}, broken: map[Key]bool{}}
	for _, step := range []func(context.Context) error{c.readPrimary, c.checkBlobs, c.checkNear, c.checkOutside} {
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

// rows returns the rows of a table; a nil table means Model.Table. It reads each table once.
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

// readPrimary reads the primary rows.
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
			err = fmt.Errorf("its properties give another key, (%q, %q)", key.Partition, key.Row)
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

// keeps reports whether a key belongs to an entity of the model that can be checked.
func (c *checker) keeps(entity Key) bool {
	return strings.HasPrefix(entity.Row, c.RowPrefix) && !c.broken[entity]
}

// nameOf returns the name of the pattern to which a key belongs, from the beginning of the key.
func nameOf(text string, indexes []Index) string {
	for _, x := range indexes {
		if text == x.Name || strings.HasPrefix(text, x.Name+"_") {
			return x.Name
		}
	}
	return ""
}
