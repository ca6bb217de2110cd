//go:build unix

package check_test

import (
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// damage is a way to harm what is stored. Which rows it may begin with, which property it sets or removes, and where else it
// puts the row; without all three, it removes the row.
type damage struct {
	what   string
	victim func(w *world, r victim) bool
	set    map[string]any
	remove []string
	move   string // is added to the row's key; the row stays where it was, too
}

// of selects the rows of a table by the beginnings of their keys.
func of(table func(*world) *aztables.Client, partition, row string, has ...string) func(*world, victim) bool {
	return func(w *world, r victim) bool {
		if r.row["_tpMark"] != nil {
			return false // whatever a marked copy holds, its readers do not believe it
		}
		for _, name := range has {
			if value, _ := r.row[name].(string); value == "" {
				return false
			}
		}
		return r.table == table(w) && strings.HasPrefix(r.partition(), partition) && strings.HasPrefix(r.key(), row)
	}
}

func inPeople(w *world) *aztables.Client { return w.people }
func inBadges(w *world) *aztables.Client { return w.badges }
func inTeams(w *world) *aztables.Client  { return w.team }

// damages are what the checker must find, each in any world that has such rows.
var damages = []damage{
	{what: "a person is removed", victim: of(inPeople, "D", "empid_", "Name")},
	{what: "a person's email is another", victim: of(inPeople, "D", "empid_", "Email"), set: map[string]any{"Email": "another"}},
	{what: "a person's badge is gone", victim: of(inPeople, "D", "empid_", "Badge"), remove: []string{"Badge"}},
	{what: "a person's team is another", victim: of(inPeople, "D", "empid_", "Team"), set: map[string]any{"Team": "another"}},
	{what: "a person's name is another", victim: of(inPeople, "D", "empid_", "Name"), set: map[string]any{"Name": "another"}},
	{what: "a person's number does not fit the key", victim: of(inPeople, "D", "empid_"), set: map[string]any{"ID": 777}},
	{what: "a person does not decode", victim: of(inPeople, "D", "empid_"), set: map[string]any{"Version": "many"}},
	{what: "a copy beside its person is removed", victim: of(inPeople, "D", "name_")},
	{what: "a copy beside its person is twice there", victim: of(inPeople, "D", "name_"), move: "x"},
	{what: "a kept property of a copy beside its person is another", victim: of(inPeople, "D", "name_", "Name"), set: map[string]any{"Name": "another"}},
	{what: "a full copy beside its person lacks a property", victim: of(inPeople, "D", "email_", "Life"), remove: []string{"Life"}},
	{what: "an outside copy is removed", victim: of(inPeople, "mail_", "", "Name")},
	{what: "an outside copy is twice there", victim: of(inPeople, "mail_", "", "Name"), move: "x"},
	{what: "an outside copy is out of date", victim: of(inPeople, "mail_", "", "Name"), set: map[string]any{"Name": "old"}},
	{what: "a unique copy is removed", victim: of(inBadges, "badge", "", "Name")},
	{what: "a unique copy is out of date", victim: of(inBadges, "badge", "", "Name"), set: map[string]any{"Name": "old"}},
	{what: "a unique copy is twice there", victim: of(inBadges, "badge", "", "Name"), move: "x"},
	{what: "an entry of a list is removed", victim: of(inTeams, "team_", "", "_tpIncarnation")},
	{what: "an entry of a list names a person who is not there", victim: of(inTeams, "team_", "", "_tpIncarnation"), set: map[string]any{"_tpPrimary": "empid_000999"}},
	{what: "an entry of a list is twice there", victim: of(inTeams, "team_", "", "_tpIncarnation"), move: "x"},
	{what: "an entry of a list has a property", victim: of(inTeams, "team_", "", "_tpIncarnation"), set: map[string]any{"Name": "another"}},
}

// added are the findings that were not there before.
func added(before, now map[string]bool) (found []string) {
	for f := range now {
		if !before[f] {
			found = append(found, f)
		}
	}
	return found
}

// plant does each of the damages to a world in which nothing is wrong, and puts the row back.
func plant(t *testing.T, w *world, dice *rand.Rand) {
	v := &vandal{t: t, w: w, dice: dice}
	findings := func() map[string]bool {
		all, err := w.model.Check(t.Context())
		ok(t, err)
		set := map[string]bool{}
		for _, f := range all {
			set[f.String()] = true
		}
		return set
	}
	found, before := 0, findings()
	for _, d := range damages {
		var candidates []victim
		for _, r := range v.victims() {
			if d.victim(w, r) {
				candidates = append(candidates, r)
			}
		}
		if len(candidates) == 0 {
			t.Errorf("%s: there is no such row", d.what)
			continue
		}
		r := candidates[dice.IntN(len(candidates))]
		harmed := victim{r.table, maps.Clone(r.row)}
		for name, value := range d.set {
			delete(harmed.row, name+"@odata.type")
			harmed.row[name] = value
		}
		for _, name := range d.remove {
			delete(harmed.row, name)
		}
		harmed.row["RowKey"] = r.key() + d.move
		if d.set == nil && d.remove == nil && d.move == "" {
			v.remove(r)
		} else {
			v.write(harmed)
		}
		if now := findings(); len(added(before, now)) > 0 {
			found++
		} else {
			t.Errorf("%s: the checker does not find it at %q, %q", d.what, r.partition(), r.key())
		}
		if d.move != "" {
			v.remove(harmed)
		}
		v.write(r)
		// A person's row has another ETag then, so that the copies outside are of another version.
		before = findings()
	}
	t.Logf("the checker found %d of %d planted damages", found, len(damages))
}
