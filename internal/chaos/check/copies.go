package check

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
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
		if row.has("_tpPrimary") && !row.has("_tpShared") && !row.has("_tpPartition") && !row.has("_tpClaim") && c.keeps(owner) {
			stored[site{row.Key.Row, owner}] = row
		}
		if row.has("_tpPartition") && row.system("Partition") == owner.Partition && !row.has("_tpShared") && !row.has("_tpClaim") {
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

// outsideSite holds what is stored at a site in another partition.
type outsideSite struct {
	copied *Row
	claims []Row // rows that name this index and this entity
}

// checkOutside compares the copies in other partitions, and their claims.
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
	byKey := map[Key]Row{}
	for _, row := range rows {
		byKey[row.Key] = row
	}
	stored := c.storedOutside(rows, indexes)
	for key, primary := range c.primary {
		for _, x := range indexes {
			wanted, asks := x.Key(primary)
			if !asks || !c.keeps(key) {
				continue
			}
			at := site{wanted.Partition + "\t" + wanted.Row, key}
			there := stored[at]
			delete(stored, at)
			if there == nil || there.copied == nil {
				row := byKey[wanted]
				if !row.has("_tpPartition") && !row.has("_tpShared") && row.has("_tpPrimary") && row.system("Primary") == key.Row {
					c.report(Different, x.Name, at.place, key, "it does not say which partition its entity is in")
				} else {
					c.report(Missing, x.Name, at.place, key, "")
				}
				continue
			}
			if wrong := there.wrong(primary, x, wanted, byKey); wrong != "" {
				c.report(Different, x.Name, at.place, key, "%s", wrong)
			}
		}
	}
	for at := range stored {
		partition, _, _ := strings.Cut(at.place, "\t")
		c.report(Spurious, nameOf(partition, indexes), at.place, at.entity, "")
	}
}

// storedOutside returns the copies and claims of the model's entities.
func (c *checker) storedOutside(rows []Row, indexes []Index) map[site]*outsideSite {
	stored := map[site]*outsideSite{}
	for _, row := range rows {
		owner := Key{row.system("Partition"), row.system("Primary")}
		if !row.has("_tpPartition") || row.has("_tpShared") || !c.keeps(owner) || nameOf(row.Key.Partition, indexes) == "" {
			continue
		}
		place, isClaim := row.Key.Row, row.has("_tpClaim")
		if isClaim {
			place = row.system("Claim")
		}
		at := site{row.Key.Partition + "\t" + place, owner}
		if stored[at] == nil {
			stored[at] = &outsideSite{}
		}
		if isClaim {
			stored[at].claims = append(stored[at].claims, row)
		} else {
			stored[at].copied = &row
		}
	}
	return stored
}

// wrong describes the error in a copy and its claim, or "" if both are right.
func (o *outsideSite) wrong(primary Row, x Index, key Key, rows map[Key]Row) string {
	name := claimName(key, primary.Key)
	claim, there := rows[Key{key.Partition, name}]
	switch {
	case o.copied.has("_tpReserved"):
		return "it is only reserved"
	case o.copied.content(nil) != primary.content(x.Keep):
		return "other properties"
	case o.copied.system("Version") != primary.ETag || o.copied.system("Incarnation") != primary.system("Incarnation"):
		return "of another version"
	case !there:
		return "its claim is missing"
	case claim.system("Claim") != key.Row || claim.system("Partition") != primary.Key.Partition || claim.system("Primary") != primary.Key.Row:
		return "its claim says something else"
	case len(o.claims) != 1:
		return fmt.Sprintf("it has %d claims", len(o.claims))
	}
	return ""
}

// claimName returns the row key of a copy's claim.
func claimName(copied, entity Key) string {
	h := sha256.New()
	for _, s := range []string{copied.Row, entity.Partition, entity.Row, ""} {
		fmt.Fprintf(h, "%d %s", len(s), s)
	}
	return claimPrefix + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil)[:20])
}
