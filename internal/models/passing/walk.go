package passing

import (
	"fmt"

	"github.com/tablepatterns/tablepatterns/internal/models"
)

// maxStates limits a walk.
const maxStates = 20_000_000

// Walk explores the world without some of the rules.
func (c World) Walk(drop models.Rules) models.Result {
	c.drop = drop
	return models.Model[world]{Start: c.first(), Next: c.next, Wrong: c.wrong, Quiet: c.quiet, Show: show, MaxStates: maxStates}.Walk()
}

func show(w world) string { return fmt.Sprintf("entities %v rows %v", w.entities, w.rows) }

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
	pass := change{1<<x | 1<<y, [3]int8{noKey, keyA}}
	back := change{1<<x | 1<<y, [3]int8{keyA, noKey}}
	swap := change{1<<x | 1<<y, [3]int8{keyB, keyA}}
	take := change{1 << z, [3]int8{z: keyA}}
	edit := func(e int) change { return change{1 << e, [3]int8{keep, keep, keep}} }
	release := func(e int) change { return change{1 << e, [3]int8{noKey, noKey, noKey}} }
	at := func(name string, shows ...models.Rules) models.Case { return models.Case{Name: name, Shows: shows} }
	a, swapped := [3]int8{keyA, noKey, noKey}, [3]int8{keyA, keyB, noKey}
	return []World{
		{Case: at("passes while an old message names it", Again), keys: a, changes: []change{pass, edit(x)}, workers: 1, old: true, crashes: 1},
		{Case: at("passes while another entity wants it", GiveBack, Lease), keys: a, changes: []change{pass, take, edit(y)}, workers: 1, lates: 1},
		{Case: at("passes while an old message names it and another entity wants it", Mark), keys: a, changes: []change{pass, take}, workers: 1, old: true, lates: 1},
		{Case: at("given up meanwhile", OnlyOwn, Lease), keys: a, changes: []change{pass, release(x), take}, workers: 1, crashes: 1, lates: 1},
		{Case: at("passes and back", Has), keys: a, changes: []change{pass, back, take}, workers: 1, crashes: 1, lates: 1},
		{Case: at("two keys swap", Transfer), keys: swapped, changes: []change{swap, edit(y), take}, workers: 1, crashes: 1, lates: 1},
		{Case: at("its message is lost", Deadline, Taker), keys: a, changes: []change{pass, take}, workers: 1, crashes: 1, poisons: 1, repairs: 1},
		{Case: at("thorough: its message is lost"), thorough: true, keys: a, changes: []change{pass, release(y), take}, workers: 2, crashes: 1, lates: 1, poisons: 1, repairs: 1},
		{Case: at("thorough: passes while another entity wants it"), thorough: true, keys: a, changes: []change{pass, take, edit(y)}, workers: 1, old: true, crashes: 1, lates: 1},
		{Case: at("thorough: two workers"), thorough: true, keys: a, changes: []change{pass, edit(x), take}, workers: 2, old: true, crashes: 1, lates: 1},
		{Case: at("thorough: swaps and back"), thorough: true, keys: swapped, changes: []change{swap, swap, take}, workers: 2, crashes: 1, lates: 1},
	}
}
