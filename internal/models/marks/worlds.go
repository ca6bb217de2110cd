package marks

import (
	"github.com/tablepatterns/tablepatterns/internal/marks"
	"github.com/tablepatterns/tablepatterns/internal/models"
)

// names are the names of the rules that a walk can drop: all but AskForMarked and EvaluateAgain, which are about queries of many rows.
func names() []string { return marks.RuleNames()[:len(marks.RuleNames())-2] }

// at returns the case of a world that shows rules.
func at(name string, shows ...marks.Rules) models.Case {
	c := models.Case{Name: name}
	for _, r := range shows {
		c.Shows = append(c.Shows, models.Rules(r))
	}
	return c
}

func changes(members ...member) work { return work{change, members} }

func inserts(entity, key uint8) member { return member{insert, entity, key} }

func moves(entity, key uint8) member { return member{move, entity, key} }

func touches(entity uint8) member { return member{verb: touch, entity: entity} }

func removes(entity uint8) member { return member{verb: remove, entity: entity} }

// gives is a change after which the entity has no key.
func gives(entity uint8) member { return moves(entity, 0) }

func reads(key uint8) work { return work{reader, []member{{key: key}}} }

// verifies compares the row of a key with an entity.
func verifies(key, entity uint8) work { return work{verify, []member{{entity: entity, key: key}}} }

func rebuilds(members ...member) work { return work{rebuild, members} }

// The keys of the entities at the beginning.
var (
	nothing = [entities]uint8{absent, absent}
	alone   = [entities]uint8{1, absent} // A has key 1
	keyless = [entities]uint8{0, 0}
	onlyA   = [entities]uint8{1, 0} // B has no key
	both    = [entities]uint8{1, 2}
)

// worlds returns the worlds to walk through. For each rule there is a world that needs it.
func worlds() []World {
	all := append(singles(), sets()...)
	return append(append(all, jobs()...), large()...)
}

// singles are changes of one entity each.
func singles() []World {
	move12 := []work{changes(moves(a, 2)), reads(1)}
	return []World{
		{Case: at("a move, and a reader", marks.Hold, marks.CommitInTerm, marks.TidyAfterTerm, marks.SettleCommitted, marks.LeaveUnknown, marks.FollowMarks), keys: alone, works: move12, crashes: 1, lates: 1},
		{Case: at("the same, keys are spread"), spread: true, keys: alone, works: move12, crashes: 1, lates: 1},
		{Case: at("an insert, and a reader", marks.ExpiryFirst), keys: nothing, works: []work{changes(inserts(a, 1)), reads(1)}, crashes: 1, lates: 1},
		{Case: at("an insert, and a delete", marks.InsertOnce, marks.SettleUnderMark, marks.RowThenEntity), keys: nothing, works: []work{changes(inserts(a, 1)), changes(removes(a))}, crashes: 1, lates: 1},
		{Case: at("two changes of an entity"), keys: alone, works: []work{changes(touches(a)), changes(touches(a))}, crashes: 1, lates: 1},
		{Case: at("two entities take a key", marks.WaitTerm, marks.StaysNamed), keys: keyless, works: []work{changes(moves(a, 1)), changes(moves(b, 1))}, crashes: 1, lates: 1},
		{Case: at("two entities are inserted with a key"), keys: nothing, works: []work{changes(inserts(a, 1)), changes(inserts(b, 1))}, crashes: 1, lates: 1},
		{Case: at("an entity takes a key twice", marks.ReleaseFresh, marks.LookBeforeRelease, marks.FreshOnce), keys: [entities]uint8{0, absent}, works: []work{changes(moves(a, 1)), changes(moves(a, 1))}, lates: 1},
		{Case: at("an entity leaves a key, and another takes it"), keys: onlyA, works: []work{changes(moves(a, 2)), changes(moves(b, 1))}, lates: 1},
		{Case: at("the same, and a reader"), keys: onlyA, works: []work{changes(moves(a, 2)), changes(moves(b, 1)), reads(1)}},
		{Case: at("the same, keys are spread"), spread: true, keys: onlyA, works: []work{changes(moves(a, 2)), changes(moves(b, 1)), reads(1)}},
		{Case: at("two inserts of an entity, and a delete", marks.InsertUnderWay, marks.AtBase), keys: nothing, works: []work{changes(inserts(a, 1)), changes(inserts(a, 1)), changes(removes(a))}},
		{Case: at("an insert of an entity that exists, its delete, and another takes the key", marks.InsertByTerm), keys: keyless, works: []work{changes(inserts(a, 1)), changes(moves(b, 1)), changes(removes(a))}},
		{Case: at("a delete, an insert, and another takes the key"), keys: onlyA, works: []work{changes(removes(a)), changes(inserts(a, 1)), changes(moves(b, 1))}},
		{Case: at("owners only: a change, a move, and a reader"), owners: true, keys: alone, works: []work{changes(touches(a)), changes(moves(a, 2)), reads(1)}, crashes: 1},
		{Case: at("owners only: another takes the key"), owners: true, keys: onlyA, works: []work{changes(moves(a, 2)), changes(moves(b, 1)), reads(1)}},
	}
}

// sets are change sets.
func sets() []World {
	swap, back, passes := changes(moves(a, 2), moves(b, 1)), changes(moves(a, 1), moves(b, 2)), changes(removes(a), moves(b, 1))
	return []World{
		{Case: at("a key passes, and a reader", marks.ReadNext, marks.WriteNext), keys: onlyA, works: []work{passes, reads(1)}, crashes: 1, lates: 1},
		{Case: at("the same, the row was left marked", marks.RowAgain), marked: true, keys: onlyA, works: []work{passes, reads(1)}, crashes: 1},
		{Case: at("a key passes, and the giver changes"), keys: onlyA, works: []work{passes, changes(touches(a))}, lates: 1},
		{Case: at("a swap, and a reader", marks.OneTransaction), keys: both, works: []work{swap, reads(1)}, crashes: 1, lates: 1},
		{Case: at("the same, keys are spread"), spread: true, keys: both, works: []work{swap, reads(1)}, crashes: 1, lates: 1},
		{Case: at("two swaps"), keys: both, works: []work{swap, back}, crashes: 1},
		{Case: at("a key passes, the giver is deleted and inserted"), keys: onlyA, works: []work{changes(gives(a), moves(b, 1)), changes(removes(a)), changes(inserts(a, 1))}},
		{Case: at("a set changes both, A gives its key up"), keys: both, works: []work{changes(touches(a), touches(b)), changes(gives(a))}, lates: 1},
		{Case: at("a set inserts B and changes A"), keys: alone, works: []work{changes(inserts(b, 2), touches(a)), changes(removes(a)), reads(2)}},
	}
}

// jobs are Rebuild, Verify, Repair, and builds that do not know the index.
func jobs() []World {
	return []World{
		{Case: at("Rebuild, and a change", marks.InsertMissing), bare: true, keys: alone, works: []work{rebuilds(touches(a)), changes(touches(a))}, crashes: 1, lates: 1},
		{Case: at("Rebuild, A gives its key up", marks.RebuildAgain), bare: true, keys: alone, works: []work{rebuilds(touches(a)), changes(gives(a))}, crashes: 1, lates: 1},
		{Case: at("Rebuild, an insert of an entity that exists, and its delete", marks.LeaveUnbuilt), bare: true, keys: alone, works: []work{rebuilds(touches(a)), changes(inserts(a, 1)), changes(removes(a))}},
		{Case: at("Rebuild, another takes a key that has no row yet, a change"), bare: true, keys: onlyA, works: []work{rebuilds(touches(a), touches(b)), changes(moves(b, 1)), changes(touches(a))}},
		{Case: at("Rebuild, another takes a key that has no row yet, a delete"), bare: true, keys: onlyA, works: []work{rebuilds(touches(a), touches(b)), changes(moves(b, 1)), changes(removes(a))}},
		{Case: at("Rebuild of two entities, and a swap"), bare: true, keys: both, works: []work{rebuilds(touches(a), touches(b)), changes(moves(a, 2), moves(b, 1))}, crashes: 1},
		{Case: at("Verify, a move, and a move back", marks.ConfirmMissing), keys: alone, works: []work{verifies(2, a), changes(moves(a, 2)), changes(moves(a, 1))}},
		{Case: at("Verify, another takes the key", marks.RowThenEntity), keys: onlyA, works: []work{verifies(1, b), changes(moves(a, 2)), changes(moves(b, 1))}},
		{Case: at("a damaged row, and a change", marks.MarkDamage), damages: 1, keys: alone, works: []work{changes(touches(a))}, crashes: 1, lates: 1},
		{Case: at("a damaged row, and a move"), damages: 1, keys: alone, works: []work{changes(moves(a, 2))}, crashes: 1, lates: 1},
		{Case: at("a change by a build that does not know the index", marks.EveryWriter), keys: alone, works: []work{{forgets, []member{touches(a)}}}},
		{Case: at("an old build changes A, all rows stay marked"), marked: true, keys: alone, works: []work{{old, []member{touches(a)}}, changes(moves(a, 2)), reads(1)}},
		{Case: at("an old build takes A's key away, all rows stay marked"), marked: true, keys: onlyA, works: []work{{old, []member{gives(a)}}, changes(moves(b, 1)), reads(1)}},
		{Case: at("an old build deletes A, all rows stay marked"), marked: true, keys: onlyA, works: []work{{old, []member{removes(a)}}, changes(moves(b, 1)), reads(1)}},
	}
}

// large are the worlds of thorough tests.
func large() []World {
	at := models.Thorough
	swap := changes(moves(a, 2), moves(b, 1))
	return []World{
		{Case: at("four changes of an entity"), keys: nothing, works: []work{changes(inserts(a, 1)), changes(inserts(a, 2)), changes(moves(a, 1)), changes(removes(a))}},
		{Case: at("two moves, and a change"), keys: alone, works: []work{changes(moves(a, 2)), changes(moves(a, 2)), changes(touches(a))}, crashes: 1},
		{Case: at("another takes the key, a reader, a late request"), keys: onlyA, works: []work{changes(moves(a, 2)), changes(moves(b, 1)), reads(1)}, lates: 1},
		{Case: at("two inserts, a delete, a late request, a crash"), keys: nothing, works: []work{changes(inserts(a, 1)), changes(inserts(a, 1)), changes(removes(a))}, lates: 1, crashes: 1},
		{Case: at("a delete, an insert, another takes the key, a late request"), keys: onlyA, works: []work{changes(removes(a)), changes(inserts(a, 1)), changes(moves(b, 1))}, lates: 1},
		{Case: at("a swap, A gives its key up, B takes it, a crash"), keys: both, works: []work{swap, changes(gives(a)), changes(moves(b, 1))}, crashes: 1},
		{Case: at("a key passes, the giver is deleted and inserted, a late request"), keys: onlyA, works: []work{changes(gives(a), moves(b, 1)), changes(removes(a)), changes(inserts(a, 1))}, lates: 1},
		{Case: at("Rebuild, a change and a move, a crash"), bare: true, keys: onlyA, works: []work{rebuilds(touches(a)), changes(touches(a)), changes(moves(a, 2))}, crashes: 1},
		{Case: at("Rebuild, an insert of an entity that exists, a change, a late request"), bare: true, keys: alone, works: []work{rebuilds(touches(a)), changes(inserts(a, 1)), changes(touches(a))}, lates: 1},
	}
}
