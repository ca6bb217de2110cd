package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/marks"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// elsewhere are the rules that no context drops: they are about the order and the conditions of requests. The model in internal/models/marks drops them.
const elsewhere = marks.ConfirmMissing | marks.CommitInTerm | marks.InsertOnce | marks.OneTransaction | marks.SettleUnderMark | marks.RowThenEntity | marks.RebuildAgain |
	marks.LeaveUnbuilt | marks.EveryWriter | marks.AskForMarked | marks.EvaluateAgain

// TestMarkedRules: each rule that can be dropped is needed. A walk, or one order of requests, shows what goes wrong without it.
func TestMarkedRules(t *testing.T) {
	scenes, shown := markedScenes(), elsewhere
	for rule, c := range map[marks.Rules]struct {
		scene           string
		crashes, pauses int
	}{
		marks.Hold:            {"a change, and a reader", 0, 0},
		marks.WaitTerm:        {"two cards take a number", 0, 0},
		marks.InsertByTerm:    {"an insert of a card that is there, its delete, and another takes the number", 0, 0},
		marks.AtBase:          {"two inserts of a card, and a delete", 0, 0},
		marks.InsertUnderWay:  {"two inserts of a card, and a delete", 0, 0},
		marks.StaysNamed:      {"two cards take a number", 0, 0},
		marks.InsertMissing:   {"a change of a card whose row is missing, and Repair", 0, 0},
		marks.WriteNext:       {"a number passes, and a reader", 1, 0},
		marks.ReleaseFresh:    {"a card takes a number twice", 0, 0},
		marks.SettleCommitted: {"a card gives its number up, and changes", 0, 0},
		marks.FollowMarks:     {"a move, and a reader", 0, 0},
		marks.ReadNext:        {"a number passes, and a reader", 0, 0},
		marks.RowAgain:        {"the same, the row was left marked", 0, 0},
		marks.TidyAfterTerm:   {"a move beside Repair", 0, 0},
		marks.ExpiryFirst:     {"an insert, and a reader", 0, 1},
	} {
		shown |= rule
		t.Run(rule.String(), func(t *testing.T) {
			scene, known := scenes[c.scene]
			if !known {
				t.Fatalf("there is no scene %q", c.scene)
			}
			scene.rules = rule
			found := scene.walk(t, c.crashes, c.pauses)
			if found.Divergence == nil && misled(found) == 0 {
				t.Fatalf("the rule is not missed: %q", reasons(found))
			}
			t.Log(found.Divergence, misled(found))
		})
	}
	for rule, order := range map[marks.Rules]func(*testing.T, *storagetest.Service, marks.Rules) error{
		marks.FreshOnce: freshOnce, marks.LookBeforeRelease: lookBeforeRelease, marks.LeaveUnknown: leaveUnknown, marks.MarkDamage: markDamage,
	} {
		shown |= rule
		t.Run(rule.String(), func(t *testing.T) {
			for _, without := range []marks.Rules{0, rule} {
				storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
					if err := order(t, s, without); (err != nil) != (without != 0) {
						t.Errorf("without %q: %v", without, err)
					}
				})
			}
		})
	}
	for i, name := range marks.RuleNames() {
		if !shown.Has(1 << i) {
			t.Errorf("nothing shows what goes wrong without %s", name)
		}
	}
}

// perform makes a change in a process that meets a fault.
func perform(t *testing.T, s *storagetest.Service, rules marks.Rules, do task, faults storagetest.Injector) error {
	t.Helper()
	s, _ = s.WithRetries(1).Faulty(faults)
	c := markedScene{rules: rules}
	return c.run(t.Context(), s, do)
}

// replacing meets a fault at a write of a row that is there.
func replacing(n int, fault storagetest.Injector) storagetest.Injector {
	return storagetest.On(storagetest.ReplaceEntity, storagetest.OnIndex(n, fault))
}

// freshOnce: the answer to the mark of a change is lost that takes a number over from another change of the same card. Then it fails, since its set also
// wants a number that another card has; and then the first change commits.
func freshOnce(t *testing.T, s *storagetest.Service, rules marks.Rules) error {
	c := markedScene{cards: [][2]string{{"a", ""}, {"b", ""}, {"c", "2"}}}
	c.begin(t, s)
	var second error
	first := perform(t, s, 0, takes("a", "1"), replacing(0, storagetest.Always(storagetest.Before("second change", func() {
		second = perform(t, s, rules, inOneSet([2]string{"a", "1"}, [2]string{"b", "2"}), replacing(0, storagetest.LostAnswer))
	}))))
	if first != nil || second == nil {
		t.Errorf("the changes were told %v and %v", first, second)
	}
	return c.right(t.Context(), s)
}

// twice sends a request twice, as a proxy may, and returns the second answer.
type twice struct{}

func (twice) String() string { return "twice" }

func (twice) Meet(_ storagetest.Call, _ *http.Request, send storagetest.Send) (*http.Response, error) {
	if first, err := send(); err == nil {
		first.Body.Close()
	}
	return send()
}

// lookBeforeRelease: a commit is sent twice, and the second answer refuses it.
func lookBeforeRelease(t *testing.T, s *storagetest.Service, rules marks.Rules) error {
	c := markedScene{cards: aIdle}
	c.begin(t, s)
	if err := perform(t, s, rules, takes("a", "1"), replacing(0, storagetest.Always(twice{}))); err != nil {
		t.Logf("the change was told %v", err)
	}
	return c.right(t.Context(), s)
}

// delayed keeps a request back.
type delayed struct{ send storagetest.Send }

func (*delayed) String() string { return "delayed" }

func (d *delayed) Meet(_ storagetest.Call, _ *http.Request, send storagetest.Send) (*http.Response, error) {
	d.send = send
	return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
}

// leaveUnknown: a commit has no answer, and arrives after the change has ended.
func leaveUnknown(t *testing.T, s *storagetest.Service, rules marks.Rules) error {
	c, late := markedScene{cards: aIdle}, &delayed{}
	c.begin(t, s)
	faulty, _ := s.WithRetries(0).Faulty(replacing(0, storagetest.Always(late)))
	c.rules = rules
	if err := c.run(t.Context(), faulty, takes("a", "1")); err == nil {
		t.Error("the change was told nothing")
	}
	resp, err := late.send()
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return c.right(t.Context(), s)
}

// markDamage: somebody deletes the row that a change has marked, and Repair comes before the change commits.
func markDamage(t *testing.T, s *storagetest.Service, rules marks.Rules) error {
	c := markedScene{cards: onlyA}
	c.begin(t, s)
	repaired := make(chan error, 1)
	err := perform(t, s, 0, touches("a"), replacing(0, storagetest.Always(storagetest.Before("damage", func() {
		d := harness.Must[*desk](t)(openDesk(s))
		_, err := d.cards.Table().Client().DeleteEntity(t.Context(), deskIndex, "1", nil)
		harness.Check(t, err)
		go func() { repaired <- repairs(engine.Without(context.WithoutCancel(t.Context()), rules), d) }()
		time.Sleep(5 * time.Second)
	}))))
	if err := errors.Join(err, c.right(t.Context(), s)); err != nil {
		return fmt.Errorf("before Repair has ended: %w", err)
	}
	harness.Check(t, <-repaired)
	return c.right(t.Context(), s)
}
