package deferred

import "github.com/tablepatterns/tablepatterns/internal/models"

// Cases returns the worlds to walk through, the large ones only if thorough. For each rule there is a world that needs it.
func Cases(thorough bool) (all []models.Case) {
	for _, c := range worlds() {
		if c.thorough && !thorough {
			continue
		}
		c.Case.Walk = c.Walk
		all = append(all, c.Case)
	}
	return all
}

func worlds() []World {
	const a, b = 0, 1
	at := func(name string, shows ...models.Rules) models.Case { return models.Case{Name: name, Shows: shows} }
	one := func(to int8) change { return change{1 << x, [2]int8{to, keep}} }
	other := func(to int8) change { return change{1 << y, [2]int8{keep, to}} }
	both := func(toX, toY int8) change { return change{1<<x | 1<<y, [2]int8{toX, toY}} }
	return []World{
		{Case: at("contents", Wait, Again), keys: [2]int8{a, noKey}, changes: []change{one(keep), one(keep)}, rival: one(keep), crashes: 1},
		{Case: at("three changes", Wait), keys: [2]int8{a, noKey}, changes: []change{one(b), one(keep), one(a)}, crashes: 1},
		{Case: at("a request without an answer", Unsure, Lease), keys: [2]int8{a, noKey}, changes: []change{one(b)}, rival: one(keep), crashes: 1, lates: 1},
		{Case: at("another entity takes the released key", Release), keys: [2]int8{a, noKey}, changes: []change{one(b), other(a)}, crashes: 1, lates: 1},
		{Case: at("two members", Again), keys: [2]int8{a, noKey}, changes: []change{both(keep, b), other(noKey)}, rival: one(keep), crashes: 1},
		{Case: at("marker", Whole), marker: true, keys: [2]int8{a, noKey}, changes: []change{one(b)}, rival: one(keep), crashes: 1},
		{Case: at("marker of an absent entity", Present), marker: true, keys: [2]int8{a, noKey}, changes: []change{one(noKey), one(a), one(noKey)}, crashes: 1},
		{Case: at("thorough: contents"), thorough: true, keys: [2]int8{a, noKey}, changes: []change{one(keep), one(b)}, rival: one(keep), crashes: 1, lates: 1},
		{Case: at("thorough: marker"), thorough: true, marker: true, keys: [2]int8{a, noKey}, changes: []change{one(b), one(keep)}, rival: one(a), crashes: 1},
		{Case: at("thorough: two members"), thorough: true, keys: [2]int8{a, noKey}, changes: []change{both(b, keep), other(a)}, rival: one(keep), crashes: 1, lates: 1},
	}
}
