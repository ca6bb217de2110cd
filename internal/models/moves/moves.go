// Package moves has what the models of archive.Mover share: an entity X that a worker moves from a source S to a destination D, users
// who change both ends, and messages that reappear at any moment or are put back from the poison queue. It does no I/O.
//
// The content of an entity is the set of updates that it has, so that a model finds a lost update. Each update of a user has a bit.
package moves

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/models"
)

// What is at S or at D.
const (
	None  byte = iota
	X          // at S: X; at D: a copy of X
	Other      // at S: another incarnation; at D: another entity or blob
)

// Case is the size of a world.
type Case struct {
	models.Case
	Messages                             int
	SourceChanges, CopyChanges, Requeues byte
	Lates                                int8
	Replace                              bool // the mover replaces what it finds at D
}

// Ends is the part of a state that both models have. A model embeds it.
type Ends struct {
	S, D                 byte
	SContent, DContent   byte
	Entry                [2]bool // the message is on the poison queue
	SOps, DOps, Requeues byte    // how many may still occur

	// The changes that users were told have succeeded.
	Updates, Seen byte // all updates of X; the updates in what users deleted
	SDel, DDel    bool // users deleted X; users deleted its copy
	DWrote        bool // users wrote at D
	Poison        bool
}

// Start returns the initial state.
func (c *Case) Start() Ends {
	return Ends{S: X, SContent: 1, Updates: 1, SOps: c.SourceChanges, DOps: c.CopyChanges, Requeues: c.Requeues}
}

// Both returns the ends of a state that embeds them.
func (e *Ends) Both() *Ends { return e }

// Forbids checks a step: a mover touches only X.
func (c *Case) Forbids(from, to *Ends) string {
	if from.S == Other && to.S != Other || from.D == Other && to.D != Other && !c.Replace {
		return "an entity or blob other than X was changed"
	}
	return ""
}

// IsX reports whether the entity at S is X. Without the rule of the incarnation, each entity is.
func (e *Ends) IsX(incarnation bool) bool { return e.S == X || !incarnation && e.S == Other }

// places returns in how many places X is.
func (e *Ends) places() (n int) {
	for _, at := range []byte{e.S, e.D} {
		if at == X {
			n++
		}
	}
	return n
}

// Lost returns what is lost in a state, or "". A final state must also have the changes that users were told have succeeded.
func (e *Ends) Lost(final bool) string {
	if e.places() == 0 && !e.SDel && !e.DDel {
		return "X is neither at S nor at D, and no user deleted it"
	}
	if lost := e.Updates &^ (e.SContent | e.DContent | e.Seen); final && lost != 0 {
		return fmt.Sprintf("acknowledged updates %06b are lost", lost)
	}
	return ""
}

// Unmoved returns why X has not been moved in a final state without poison, or "".
func (e *Ends) Unmoved() string {
	switch n := e.places(); {
	case n > 1:
		return "X is at S and at D, and no entry is on the poison queue"
	case n == 1 && (e.SDel || e.DDel):
		return "a user deleted X, but it exists, and no entry is on the poison queue"
	case e.S == X:
		return "X was not moved, and no entry is on the poison queue"
	}
	return ""
}

// Update makes a user's update of one of the contents.
func (e *Ends) Update(content *byte, bit byte) {
	*content |= bit
	e.Updates |= bit
}

// In is the constraint of a pointer to a state that embeds Ends and messages.World.
type In[W any] interface {
	*W
	Both() *Ends
	Requeue(message int) bool
	Reappear(message int, lease bool) bool
}

// AtSource emits what users do at S. wrote records that S was written.
func AtSource[W any, P In[W]](w W, wrote func(w *W), emit func(to W, who, what string)) {
	if P(&w).Both().SOps == 0 {
		return
	}
	bit := byte(1) << P(&w).Both().SOps
	P(&w).Both().SOps--
	u := w
	switch e := P(&u).Both(); e.S {
	case X:
		e.Update(&e.SContent, bit)
		wrote(&u)
		emit(u, "a user", "updates X at S")
		u = w
		e.Seen |= e.SContent
		e.S, e.SContent, e.SDel = None, 0, true
		wrote(&u)
		emit(u, "a user", "deletes X at S")
	case None:
		e.S = Other
		wrote(&u)
		emit(u, "a user", "inserts a new incarnation at S")
	}
}

// Messages emits that a user puts a poisoned message back, and that a message reappears although a worker holds it: its holder has
// crashed or is slow. With the rule of the lease, the holder does nothing more then.
func Messages[W any, P In[W]](w W, lease bool, emit func(to W, who, what string)) {
	for m := range P(&w).Both().Entry {
		u := w
		if e := P(&u).Both(); e.Entry[m] && e.Requeues > 0 && P(&u).Requeue(m) {
			e.Requeues--
			e.Entry[m] = false
			emit(u, "a user", "puts a poisoned message back")
		}
		if u = w; P(&u).Reappear(m, lease) {
			emit(u, "a message", "reappears")
		}
	}
}

// CheckRules requires that without any one of its rules a protocol breaks a promise. It walks from the smallest world to the largest,
// until one shows what is wrong.
func CheckRules(t *testing.T, names []string, walk func(c Case, drop models.Rules) models.Result) {
	t.Helper()
	for i, name := range names {
		var r models.Result
		for _, c := range []Case{{Messages: 1, SourceChanges: 1, CopyChanges: 1, Lates: 1}, {Messages: 2, SourceChanges: 1}, {Messages: 1, SourceChanges: 2, CopyChanges: 2, Lates: 1},
			{Messages: 2, SourceChanges: 1, CopyChanges: 1}, {Messages: 2, SourceChanges: 2, CopyChanges: 1}, {Messages: 2, SourceChanges: 1, CopyChanges: 1, Replace: true}} {
			if r = walk(c, 1<<i); r.Violation != "" {
				break
			}
		}
		if r.Violation == "" || r.Stopped {
			t.Errorf("without %s: no violation", name)
		} else {
			t.Logf("without %s: %s, after %d states and %d steps\n  %s", name, r.Violation, r.States, len(r.Trace), strings.Join(r.Trace, "\n  "))
		}
	}
}
