package marks

import (
	"context"
	"slices"
	"strings"
)

// Rules is a set of rules of the protocol. Every function that obeys a rule can be told to do without it, so that the walks of
// the model, and those of the code that calls these functions, can show what goes wrong without the rule.
type Rules uint32

// The rules. This package decides by those up to MarkDamage; the rest are about the order and the conditions of requests, which only
// the caller can obey.
const (
	Hold              Rules = 1 << iota // a change marks a copy that it makes wrong before it commits
	WaitTerm                            // a key is taken over only from a change that is over
	InsertByTerm                        // an insert is over by its term alone
	AtBase                              // a member whose row is in the way must still have the ETag that its change started from
	InsertUnderWay                      // an entity whose insert takes the key and is not over is not given the key by another change
	StaysNamed                          // the entity of an acquirer that is not over stays named in the row
	FreshOnce                           // a place that was not fresh in one attempt is not fresh in any later one
	InsertMissing                       // a hold that finds no row inserts it
	WriteNext                           // a key that passes names its giver and its taker
	ReleaseFresh                        // a refused change deletes only fresh rows
	LookBeforeRelease                   // before it deletes one, it reads the entity again, which must not have the key
	SettleCommitted                     // a change settles only after a commit that is known to have succeeded
	LeaveUnknown                        // after an unknown outcome, a change writes nothing more
	FollowMarks                         // a reader does not believe a marked copy
	ReadNext                            // a reader asks the entity to which a key passes, too
	RowAgain                            // a reader whom no entity answers reads the row again
	TidyAfterTerm                       // a marked row is tidied only after term and grace
	ConfirmMissing                      // a row is missing only if the entity has not changed while the row was read again
	MarkDamage                          // Repair marks a damaged row, and settles it after the term
	CommitInTerm                        // no attempt of the commit is sent after the term, less the margin
	InsertOnce                          // a transaction with an insert is sent once
	OneTransaction                      // all members are committed in one transaction
	SettleUnderMark                     // a settled row is written, or deleted, under the ETag of the change's own mark
	RowThenEntity                       // whoever decides by a row and its entities reads the row first
	ExpiryFirst                         // whether a mark has expired is judged by the answer that contained the row
	RebuildAgain                        // Rebuild reads the entities again after it has inserted their rows
	LeaveUnbuilt                        // while an index is being built, changes neither settle nor release its rows, which may be in the way of other entities
	EveryWriter                         // every process that writes the entities knows the index
	AskForMarked                        // a query with conditions asks for all marked copies, too
	EvaluateAgain                       // the conditions are evaluated on the entity of a marked copy
)

var names = [...]string{"Hold", "WaitTerm", "InsertByTerm", "AtBase", "InsertUnderWay", "StaysNamed", "FreshOnce", "InsertMissing",
	"WriteNext", "ReleaseFresh", "LookBeforeRelease", "SettleCommitted", "LeaveUnknown", "FollowMarks", "ReadNext", "RowAgain", "TidyAfterTerm", "ConfirmMissing", "MarkDamage",
	"CommitInTerm", "InsertOnce", "OneTransaction", "SettleUnderMark", "RowThenEntity", "ExpiryFirst", "RebuildAgain", "LeaveUnbuilt", "EveryWriter", "AskForMarked", "EvaluateAgain"}

// RuleNames returns the names of all rules, from the lowest bit.
func RuleNames() []string { return slices.Clone(names[:]) }

// String returns the names of the rules in the set.
func (r Rules) String() string {
	var in []string
	for i, name := range names {
		if r.Has(1 << i) {
			in = append(in, name)
		}
	}
	return strings.Join(in, ", ")
}

// Has reports whether the set contains a rule.
func (r Rules) Has(rule Rules) bool { return r&rule != 0 }

type waivedKey struct{}

// Waive returns a context in which the rules do not apply. It is for tests that show what goes wrong without each rule.
func Waive(ctx context.Context, rules Rules) context.Context {
	return context.WithValue(ctx, waivedKey{}, rules)
}

// Waived returns the rules that do not apply in a context.
func Waived(ctx context.Context) Rules {
	rules, _ := ctx.Value(waivedKey{}).(Rules)
	return rules
}
