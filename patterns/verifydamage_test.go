package patterns_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// damage is what is done to the table behind the library's back, and what Verify must find of it.
type damage struct {
	t     testing.TB
	d     *desk
	dice  *rand.Rand
	wants []string
	// marked is the number of copies that are marked; their marks are old once age was called.
	marked int64
}

func (x *damage) want(kind patterns.FindingKind, pattern, place string, entity tables.Key) {
	x.wants = append(x.wants, brief(patterns.Finding{Kind: kind, Pattern: pattern, Location: place, Entity: entity}))
}

// Where the rows of a colleague are.
func emailRow(v *staff) tables.Key {
	return tables.Key{Partition: v.Department, Row: "email_" + v.Email}
}
func nameRow(v *staff) tables.Key {
	return tables.Key{Partition: v.Department, Row: compoundkey.Join("name", compoundkey.Tuple(compoundkey.String(v.Name), compoundkey.Int(v.ID, 6)))}
}
func mailRow(v *staff) tables.Key {
	return tables.Key{Partition: "mail_" + v.Department, Row: v.Email}
}
func badgeRow(v *staff) tables.Key { return tables.Key{Partition: "badge", Row: v.Badge} }

func placeOf(key tables.Key) string { return key.Partition + "\t" + key.Row }

// markRow marks a row as a change that died left it; the names of the owner's properties stay if owner is nil.
func (x *damage) markRow(table *tables.Table, key tables.Key, owner *staff) {
	row := readRaw(x.t, table, key)
	if row["_tpMark"] = "DEAD"; owner != nil {
		row["_tpPartition"], row["_tpPrimary"] = owner.Department, staffKey(owner).Row
	}
	row.write(x.t, table)
	x.marked++
}

// stranger is a colleague who does not exist, in the department of another.
func stranger(v *staff) *staff {
	other := *v
	other.ID += 500_000
	return &other
}

// set changes one property of a row.
func (x *damage) set(table *tables.Table, key tables.Key, name string, value any) {
	row := readRaw(x.t, table, key)
	row[name] = value
	delete(row, name+"@odata.type")
	row.write(x.t, table)
}

// damageKind is one way to harm a colleague's rows.
type damageKind struct {
	name string
	do   func(x *damage, v *staff)
}

// damages are all kinds of it.
var damages = []damageKind{
	{"copy missing", func(x *damage, v *staff) {
		deleteRaw(x.t, x.d.table, emailRow(v))
		x.want(patterns.Missing, "email", emailRow(v).Row, staffKey(v))
	}},
	{"copy different", func(x *damage, v *staff) {
		x.set(x.d.table, emailRow(v), "Age", 99)
		x.want(patterns.Different, "email", emailRow(v).Row, staffKey(v))
	}},
	{"copy of another write", func(x *damage, v *staff) {
		x.set(x.d.table, nameRow(v), "_tpWrite", "OTHER")
		x.want(patterns.Different, "name", nameRow(v).Row, staffKey(v))
	}},
	{"copy of another incarnation", func(x *damage, v *staff) {
		x.set(x.d.table, emailRow(v), "_tpIncarnation", "OTHER")
		x.want(patterns.Different, "email", emailRow(v).Row, staffKey(v))
	}},
	{"outside copy of another incarnation", func(x *damage, v *staff) {
		x.set(x.d.badge, badgeRow(v), "_tpIncarnation", "OTHER")
		x.want(patterns.Different, "badge", placeOf(badgeRow(v)), staffKey(v))
	}},
	{"copy under an old key", func(x *damage, v *staff) {
		row := readRaw(x.t, x.d.table, emailRow(v))
		row["RowKey"] = "email_old" + v.Email
		row.write(x.t, x.d.table)
		x.want(patterns.Spurious, "email", "email_old"+v.Email, staffKey(v))
	}},
	{"copy of nobody", func(x *damage, v *staff) {
		row := readRaw(x.t, x.d.table, emailRow(v))
		row["RowKey"], row["_tpPrimary"] = "email_none"+v.Email, "empid_999999"
		row.write(x.t, x.d.table)
		x.want(patterns.Spurious, "email", "email_none"+v.Email, tables.Key{Partition: v.Department, Row: "empid_999999"})
	}},
	{"copy's place taken by a row that is none", func(x *damage, v *staff) {
		rawRow{"PartitionKey": v.Department, "RowKey": emailRow(v).Row, "X": 1}.write(x.t, x.d.table)
		x.want(patterns.Missing, "email", emailRow(v).Row, staffKey(v))
	}},
	{"entity gone", func(x *damage, v *staff) {
		deleteRaw(x.t, x.d.table, staffKey(v))
		x.want(patterns.Spurious, "email", emailRow(v).Row, staffKey(v))
		x.want(patterns.Spurious, "name", nameRow(v).Row, staffKey(v))
		x.want(patterns.Spurious, "mail", placeOf(mailRow(v)), staffKey(v))
		x.want(patterns.Spurious, "badge", placeOf(badgeRow(v)), staffKey(v))
		x.want(patterns.Spurious, "roster", v.Tag, staffKey(v))
		x.want(patterns.Spurious, "marks", v.Tag, staffKey(v))
	}},
	{"entity changed by another program", func(x *damage, v *staff) {
		row := readRaw(x.t, x.d.table, staffKey(v))
		row["Email"] = "by.hand" + v.Email
		row.write(x.t, x.d.table)
		x.want(patterns.Missing, "email", "email_by.hand"+v.Email, staffKey(v))
		x.want(patterns.Spurious, "email", emailRow(v).Row, staffKey(v))
		x.want(patterns.Missing, "mail", "mail_"+v.Department+"\tby.hand"+v.Email, staffKey(v))
		x.want(patterns.Spurious, "mail", placeOf(mailRow(v)), staffKey(v))
	}},
	{"entity undecodable", func(x *damage, v *staff) {
		x.set(x.d.table, staffKey(v), "Age", "old")
		x.want(patterns.Undecodable, "", "", staffKey(v))
	}},
	{"projected copy outside missing", func(x *damage, v *staff) {
		deleteRaw(x.t, x.d.badge, badgeRow(v))
		x.want(patterns.Missing, "badge", placeOf(badgeRow(v)), staffKey(v))
	}},
	{"outside copy missing", func(x *damage, v *staff) {
		deleteRaw(x.t, x.d.table, mailRow(v))
		x.want(patterns.Missing, "mail", placeOf(mailRow(v)), staffKey(v))
	}},
	{"outside copy different", func(x *damage, v *staff) {
		x.set(x.d.table, mailRow(v), "Name", "else")
		x.want(patterns.Different, "mail", placeOf(mailRow(v)), staffKey(v))
	}},
	{"outside copy of another version", func(x *damage, v *staff) {
		x.set(x.d.table, mailRow(v), "_tpVersion", `W/"old"`)
		x.want(patterns.Different, "mail", placeOf(mailRow(v)), staffKey(v))
	}},
	{"outside copy of nobody", func(x *damage, v *staff) {
		row := readRaw(x.t, x.d.badge, badgeRow(v))
		row["RowKey"], row["_tpPrimary"] = "X"+v.Badge, "empid_999998"
		row.write(x.t, x.d.badge)
		x.want(patterns.Spurious, "badge", "badge\tX"+v.Badge, tables.Key{Partition: v.Department, Row: "empid_999998"})
	}},
	{"outside copy of another entity", func(x *damage, v *staff) {
		x.set(x.d.badge, badgeRow(v), "_tpPrimary", staffKey(stranger(v)).Row)
		x.want(patterns.Missing, "badge", placeOf(badgeRow(v)), staffKey(v))
		x.want(patterns.Spurious, "badge", placeOf(badgeRow(v)), staffKey(stranger(v)))
	}},
	{"outside copy's place taken by a row that is none", func(x *damage, v *staff) {
		rawRow{"PartitionKey": badgeRow(v).Partition, "RowKey": badgeRow(v).Row, "X": 1}.write(x.t, x.d.badge)
		x.want(patterns.Missing, "badge", placeOf(badgeRow(v)), staffKey(v))
	}},
	{"outside copy marked", func(x *damage, v *staff) { x.markRow(x.d.badge, badgeRow(v), nil) }},
	{"outside copy marked, and of an old key", func(x *damage, v *staff) {
		row := readRaw(x.t, x.d.table, mailRow(v))
		row["RowKey"] = "marked" + v.Email
		row.write(x.t, x.d.table)
		x.markRow(x.d.table, tables.Key{Partition: mailRow(v).Partition, Row: "marked" + v.Email}, nil)
	}},
	{"outside copy marked for another entity", func(x *damage, v *staff) {
		if x.markRow(x.d.badge, badgeRow(v), stranger(v)); x.ages() {
			x.want(patterns.Missing, "badge", placeOf(badgeRow(v)), staffKey(v))
		}
	}},
	{"outside copy under an old key", func(x *damage, v *staff) {
		row := readRaw(x.t, x.d.table, mailRow(v))
		row["RowKey"] = "old" + v.Email
		row.write(x.t, x.d.table)
		x.want(patterns.Spurious, "mail", "mail_"+v.Department+"\told"+v.Email, staffKey(v))
	}},
	{"not in the list", func(x *damage, v *staff) {
		row := readRaw(x.t, x.d.table, tables.Key{Partition: v.Department, Row: "roster_" + v.Tag})
		row["Ids"] = strings.ReplaceAll(row["Ids"].(string), staffKey(v).Row, "")
		row.write(x.t, x.d.table)
		x.want(patterns.Missing, "roster", v.Tag, staffKey(v))
	}},
	{"in the wrong list", func(x *damage, v *staff) {
		rawRow{"PartitionKey": v.Department, "RowKey": "roster_wrong" + v.Email, "_tpShared": "roster", "Ids": staffKey(v).Row}.write(x.t, x.d.table)
		x.want(patterns.Spurious, "roster", "wrong"+v.Email, staffKey(v))
	}},
	{"not marked", func(x *damage, v *staff) {
		deleteRaw(x.t, x.d.marks, tables.Key{Partition: v.Tag, Row: v.Department + "~" + staffKey(v).Row})
		x.want(patterns.Missing, "marks", v.Tag, staffKey(v))
	}},
	{"marked wrong", func(x *damage, v *staff) {
		rawRow{"PartitionKey": "wrong", "RowKey": v.Department + "~" + staffKey(v).Row}.write(x.t, x.d.marks)
		x.want(patterns.Spurious, "marks", "wrong", staffKey(v))
	}},
}

// age lets the marks become older than any change can take: the term, the grace, and what the service's Date leaves out.
func (x *damage) age() {
	if x.ages() {
		x.d.service.Wait(37 * time.Second)
	}
}

// ages reports whether the service's clock can be advanced. Otherwise the marks stay young.
func (x *damage) ages() bool { return x.d.service.Clock != nil }

// harm does every kind of damage, times times, to colleagues chosen at random below n.
func (x *damage) harm(n, departments, times int) {
	x.t.Helper()
	who := x.dice.Perm(n)
	for range times {
		for _, kind := range damages {
			kind.do(x, colleague(who[0], departments))
			who = who[1:]
		}
	}
	x.age()
	slices.Sort(x.wants)
}

// differences lists what is only in one of two sorted lists.
func differences(got, want []string) string {
	var b strings.Builder
	lines := 0
	for _, list := range []struct {
		name string
		a, b []string
	}{{"false alarm", got, want}, {"not found", want, got}} {
		for _, s := range list.a {
			if _, ok := slices.BinarySearch(list.b, s); !ok && lines < 20 {
				fmt.Fprintf(&b, "\n\t%s: %s", list.name, s)
				lines++
			}
		}
	}
	return b.String()
}
