package check

import (
	"cmp"
	"context"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// site is a location where a copy or an entry for an entity is stored.
type site struct {
	place  string
	entity Key
}

// checkNear compares the copies in the entities' own partitions.
func (c *checker) checkNear(ctx context.Context) error {
	rows, err := c.rows(ctx, nil)
	if err != nil {
		return err
	}
	stored, marked := map[site]Row{}, map[site]bool{}
	for _, row := range rows {
		owner := Key{row.Key.Partition, row.system("Primary")}
		if row.has("_tpPrimary") && !row.has("_tpShared") && !row.has("_tpPartition") && c.keeps(owner) {
			stored[site{row.Key.Row, owner}] = row
		}
		if row.has("_tpPartition") && row.system("Partition") == owner.Partition && !row.has("_tpShared") {
			marked[site{row.Key.Row, owner}] = true
		}
	}
	for key, primary := range c.primary {
		for _, x := range c.Near {
			wanted, asks := x.Key(primary)
			if !asks || !c.keeps(key) {
				continue
			}
			at := site{wanted.Row, key}
			row, there := stored[at]
			delete(stored, at)
			switch {
			case marked[at]:
				c.report(Different, x.Name, at.place, key, "it is marked as a copy outside of the partition")
			case !there:
				c.report(Missing, x.Name, at.place, key, "")
			case row.content(nil) != primary.content(x.Keep):
				c.report(Different, x.Name, at.place, key, "other properties")
			case row.system("Write") != primary.system("Write") || row.system("Incarnation") != primary.system("Incarnation"):
				c.report(Different, x.Name, at.place, key, "of another write")
			}
		}
	}
	for at := range stored {
		c.report(Spurious, nameOf(at.place, c.Near), at.place, at.entity, "")
	}
	return nil
}

// checkOutside compares the copies in other partitions.
func (c *checker) checkOutside(ctx context.Context) error {
	indexes := map[*aztables.Client][]Index{}
	for _, x := range c.Outside {
		table := cmp.Or(x.Table, c.Table)
		indexes[table] = append(indexes[table], x)
	}
	for table, of := range indexes {
		rows, err := c.rows(ctx, table)
		if err != nil {
			return err
		}
		c.checkOutsideTable(rows, of)
	}
	return nil
}

// checkOutsideTable does what checkOutside does, for the indexes in one table.
func (c *checker) checkOutsideTable(rows []Row, indexes []Index) {
	byKey, settled := map[Key]Row{}, map[site]Row{}
	for _, row := range rows {
		byKey[row.Key] = row
		owner := Key{row.system("Partition"), row.system("Primary")}
		if row.has("_tpPartition") && !row.has("_tpShared") && !row.has("_tpMark") && c.keeps(owner) && nameOf(row.Key.Partition, indexes) != "" {
			settled[site{placeOf(row.Key), owner}] = row
		}
	}
	for key, primary := range c.primary {
		for _, x := range indexes {
			wanted, asks := x.Key(primary)
			if !asks || !c.keeps(key) {
				continue
			}
			at, row := site{placeOf(wanted), key}, byKey[wanted]
			copied, there := settled[at]
			delete(settled, at)
			switch {
			case row.has("_tpMark") && row.names(key): // readers follow it
			case there:
				if wrong := wrong(copied, primary, x); wrong != "" {
					c.report(Different, x.Name, at.place, key, "%s", wrong)
				}
			case !row.has("_tpPartition") && !row.has("_tpShared") && row.has("_tpPrimary") && row.system("Primary") == key.Row:
				c.report(Different, x.Name, at.place, key, "it does not say which partition its entity is in")
			default:
				c.report(Missing, x.Name, at.place, key, "")
			}
		}
	}
	for at := range settled {
		partition, _, _ := strings.Cut(at.place, "\t")
		c.report(Spurious, nameOf(partition, indexes), at.place, at.entity, "")
	}
}

func placeOf(key Key) string { return key.Partition + "\t" + key.Row }

// names reports whether a row names an entity: as its owner, or as the one to which its key passes.
func (r Row) names(entity Key) bool {
	return Key{r.system("Partition"), r.system("Primary")} == entity || r.system("Next") == placeOf(entity)
}

// wrong describes the error in a settled copy, or "" if it is right.
func wrong(copied, primary Row, x Index) string {
	version := primary.ETag
	if x.Keep != nil {
		version = ""
	}
	switch {
	case copied.content(nil) != primary.content(x.Keep):
		return "other properties"
	case copied.system("Version") != version || copied.system("Incarnation") != primary.system("Incarnation"):
		return "of another version"
	}
	return ""
}
