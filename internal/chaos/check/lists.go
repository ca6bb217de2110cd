package check

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// checkLists compares the lists with the entries that the entities require.
func (c *checker) checkLists(ctx context.Context) error {
	for _, x := range c.Lists {
		rows, err := c.rows(ctx, x.Table)
		if err != nil {
			return err
		}
		c.checkList(x, rows)
	}
	return nil
}

func (c *checker) checkList(x Index, rows []Row) {
	held, unreadable := map[site]bool{}, map[string]bool{}
	for _, row := range rows {
		if nameOf(row.Key.Partition, []Index{x}) == "" {
			continue
		}
		place := row.Key.Partition + "\t" + firstRow(row.Key.Row)
		ids, err := idsOf(row)
		if err != nil {
			unreadable[place] = true
			c.report(Unreadable, x.Name, place, Key{}, "%v", err)
		}
		for _, id := range ids {
			partition, key, ok := strings.Cut(id, "\t")
			entity := Key{partition, key}
			switch {
			case !ok:
				c.report(Unreadable, x.Name, place, Key{}, "%q is no key of an entity", id)
			case c.keeps(entity):
				held[site{place, entity}] = true
			}
		}
	}
	for key, primary := range c.primary {
		wanted, asks := x.Key(primary)
		if !asks || !c.keeps(key) {
			continue
		}
		at := site{wanted.Partition + "\t" + wanted.Row, key}
		if !held[at] && !unreadable[at.place] {
			c.report(Missing, x.Name, at.place, key, "")
		}
		delete(held, at)
	}
	for at := range held {
		if !unreadable[at.place] {
			c.report(Spurious, x.Name, at.place, at.entity, "")
		}
	}
}

// firstRow returns the row key of a list's first row; further rows append '!' and four digits.
func firstRow(row string) string {
	at := len(row) - 5
	if at < 0 || row[at] != '!' {
		return row
	}
	if _, err := strconv.ParseUint(row[at+1:], 10, 16); err != nil {
		return row
	}
	return row[:at]
}

// idsOf returns the entities in a row of a list: partition key, tab, row key.
func idsOf(row Row) ([]string, error) {
	value, annotation := row.Raw("Count")
	count, err := strconv.Atoi(value)
	if err != nil || annotation != "" {
		return nil, fmt.Errorf("property Count is %q, and must be an Edm.Int32", value)
	}
	var ids []string
	for i := 0; ; i++ {
		name := "Keys"
		if i > 0 {
			name += strconv.Itoa(i)
		}
		text, ok := row.Text(name)
		if !ok {
			break
		}
		ids = append(ids, strings.Split(text, "\n")...)
	}
	if len(ids) != count {
		return nil, fmt.Errorf("property Count is %d, and the row has %d keys", count, len(ids))
	}
	return ids, nil
}
