package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/marks"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// elsewhere are the rules that no context drops, since they are about the order and the conditions of requests. The model in internal/models/marks drops them.
const elsewhere = marks.ConfirmMissing | marks.CommitInTerm | marks.OneTransaction | marks.SettleUnderMark | marks.RebuildAgain |
	marks.LeaveUnbuilt | marks.EveryWriter | marks.AskForMarked | marks.EvaluateAgain

// TestMarkedRules: each rule that can be dropped is needed. A walk, or one order of requests, shows what goes wrong without it.
func TestMarkedRules(t *testing.T) {
	scenes, shown := markedScenes(), elsewhere
	type walked struct {
		scene           string
		crashes, pauses int
	}
	for rule, c := range map[marks.Rules]walked{
		marks.Hold:            {"a change, and a reader", 0, 0},
		marks.WaitTerm:        {"two cards take a number", 0, 0},
		marks.InsertByTerm:    {"an insert of a card that is there, its delete, and another takes the number", 0, 0},
		marks.AtBase:          {"two inserts of a card, and a delete", 0, 0},
		marks.InsertUnderWay:  {"two inserts of a card, and a delete", 0, 0},
		marks.StaysNamed:      {"two cards take a number", 0, 0},
		marks.InsertMissing:   {"a change of a card whose row is missing, and Repair", 0, 0},
		marks.WriteNext:       {"a number passes, and a reader", 1, 0},
		marks.ReleaseFresh:    {"a card takes a number, and a set that fails", 0, 0},
		marks.SettleCommitted: {"a card gives its number up, and changes", 0, 0},
		marks.FollowMarks:     {"a move, and a reader", 0, 0},
		marks.ReadNext:        {"a number passes, and a reader", 0, 0},
		marks.RowAgain:        {"the same, the row was left marked", 0, 0},
		marks.TidyAfterTerm:   {"a change of a card whose row is missing, and Repair", 0, 0},
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
		marks.InsertOnce: insertOnce, marks.RowThenEntity: rowThenEntity,
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

// nothing is no fault.
var nothing = storagetest.Mode(0)

// replacing meets a fault at the first write of a row that is there.
func replacing(fault storagetest.Fault) storagetest.Injector {
	return storagetest.On(storagetest.ReplaceEntity, storagetest.Once(storagetest.Always(fault)))
}

// deleteRow damages the index.
func deleteRow(t *testing.T, s *storagetest.Service) {
	t.Helper()
	_, err := assert.Must[*desk](t)(openDesk(s)).cards.Table().Client().DeleteEntity(t.Context(), deskIndex, "1", nil)
	assert.Check(t, err)
}

// freshOnce: a set takes a number over from another change of the same card, and the answer to that mark is lost. Then the set fails, since its other card has
// changed; and then the first change commits.
func freshOnce(t *testing.T, s *storagetest.Service, rules marks.Rules) error {
	c := markedScene{cards: bothIdle}
	c.begin(t, s)
	var second error
	touch := storagetest.Before("touch", func() { assert.Check(t, perform(t, s, 0, touches("b"), nothing)) })
	first := perform(t, s, 0, takes("a", "1"), replacing(storagetest.Before("set", func() {
		second = perform(t, s, rules, setOfBoth, storagetest.First(&lostForGood{}, storagetest.On(storagetest.Batch, storagetest.Once(storagetest.Always(touch)))))
	})))
	if first != nil || second == nil {
		t.Errorf("the changes were told %v and %v", first, second)
	}
	return c.right(t.Context(), s)
}

// lostForGood applies the first write of a row that is there and loses its answer, and what would be read next to find out.
type lostForGood struct{ next int }

func (*lostForGood) String() string { return "lost for good" }

func (l *lostForGood) Inject(call storagetest.Call) storagetest.Fault {
	kinds := [...]storagetest.Kind{storagetest.ReplaceEntity, storagetest.GetEntity}
	if l.next == len(kinds) || call.Kind != kinds[l.next] {
		return nil
	}
	l.next++
	return unanswered{func() {}, unrepeated{}}
}

// unanswered is a request that is applied and returns an error.
type unanswered struct {
	then func() // before the error
	err  error
}

func (unanswered) String() string { return "unanswered" }

func (u unanswered) Meet(_ storagetest.Call, _ *http.Request, send storagetest.Send) (*http.Response, error) {
	if resp, err := send(); err == nil {
		resp.Body.Close()
	}
	u.then()
	return nil, u.err
}

// unrepeated is an error of the network that the SDK does not retry.
type unrepeated struct{}

func (unrepeated) Error() string { return "the answer is lost" }
func (unrepeated) NonRetriable() {}

// lookBeforeRelease: a change believes that a card has no number, while the card has got it and somebody has deleted the row.
func lookBeforeRelease(t *testing.T, s *storagetest.Service, rules marks.Rules) error {
	c := markedScene{cards: aIdle}
	c.begin(t, s)
	err := perform(t, s, rules, takes("a", "1"), storagetest.On(storagetest.InsertEntity, storagetest.Once(storagetest.Always(storagetest.Before("damage", func() {
		assert.Check(t, perform(t, s, 0, takes("a", "1"), nothing))
		deleteRow(t, s)
	})))))
	if err == nil {
		t.Error("the change was not refused")
	}
	return c.right(t.Context(), s)
}

// leaveUnknown: a commit has no answer, and arrives after the change has ended.
func leaveUnknown(t *testing.T, s *storagetest.Service, rules marks.Rules) error {
	c, late := markedScene{cards: aIdle, rules: rules}, &harness.HeldRequest{Network: s.ClientOptions.Transport}
	c.begin(t, s)
	faulty, _ := s.WithRetries(0).Faulty(replacing(late))
	if err := c.run(t.Context(), faulty, takes("a", "1")); err == nil {
		t.Error("the change was told nothing")
	}
	if status := late.Arrive(); status != http.StatusNoContent {
		t.Errorf("the commit arrives with status %d", status)
	}
	return c.right(t.Context(), s)
}

// markDamage: somebody deletes the row that a change has marked, and Repair comes before the change commits.
func markDamage(t *testing.T, s *storagetest.Service, rules marks.Rules) error {
	c := markedScene{cards: onlyA}
	c.begin(t, s)
	repaired := make(chan error, 1)
	err := perform(t, s, 0, touches("a"), replacing(storagetest.Before("damage", func() {
		d := assert.Must[*desk](t)(openDesk(s))
		deleteRow(t, s)
		go func() { repaired <- repairs(marks.Waive(context.WithoutCancel(t.Context()), rules), d) }()
		time.Sleep(5 * time.Second)
	})))
	if err := errors.Join(err, c.right(t.Context(), s)); err != nil {
		return fmt.Errorf("before Repair has ended: %w", err)
	}
	assert.Check(t, <-repaired)
	return c.right(t.Context(), s)
}

// insertOnce: an insert is applied and has no answer, and the card is deleted before the insert is sent again.
func insertOnce(t *testing.T, s *storagetest.Service, rules marks.Rules) error {
	c := markedScene{}
	c.begin(t, s)
	inserts := 0
	err := perform(t, s, rules, issues("a", "1"), storagetest.On(storagetest.InsertEntity, storagetest.If(func(storagetest.Call) bool {
		inserts++
		return inserts == 2 // the first is the mark
	}, storagetest.Always(unanswered{then: func() { assert.Check(t, perform(t, s, 0, withdraws("a"), nothing)) }, err: errors.New("the answer is lost")}))))
	if (err == nil) != rules.Has(marks.InsertOnce) {
		t.Errorf("the insert was told %v", err)
	}
	return c.right(t.Context(), s)
}

// rowThenEntity: a card that wants a number finds the row that a dead change of another card has left. While it looks who has the number, that other card
// takes it, and a further change of it marks the row and dies. Without the rule, it gets the answer to the other card that it would have got before it read the
// row.
func rowThenEntity(t *testing.T, s *storagetest.Service, rules marks.Rules) error {
	c := markedScene{cards: bothIdle}
	c.begin(t, s)
	marked := func() {
		_, err := assert.Must[*desk](t)(openDesk(s)).cards.Table().Client().UpsertEntity(t.Context(),
			fmt.Appendf(nil, `{"PartitionKey":%q,"RowKey":"1","_tpPartition":%q,"_tpPrimary":"b","_tpMark":"M"}`, deskIndex, deskPartition), nil)
		assert.Check(t, err)
	}
	marked()
	var early *http.Response
	reads := 0
	err := perform(t, s, 0, takes("a", "1"), storagetest.On(storagetest.GetEntity, storagetest.InjectorFunc(func(storagetest.Call) storagetest.Fault {
		switch reads++; {
		case reads == 2: // of the row, after the card's own
			early = answerTo(t, s, "b")
			return storagetest.Before("taking", func() {
				assert.Check(t, perform(t, s, 0, takes("b", "1"), nothing))
				marked()
			})
		case reads == 3 && rules.Has(marks.RowThenEntity):
			return answered{early}
		}
		return nil
	})))
	if (err == nil) != rules.Has(marks.RowThenEntity) {
		t.Errorf("the change was told %v", err)
	}
	return c.right(t.Context(), s)
}

// answerTo returns the service's answer to a read of a card.
func answerTo(t *testing.T, s *storagetest.Service, row string) (answer *http.Response) {
	t.Helper()
	d := assert.Must[*desk](t)(openDesk(s.WithTransport(func(inner policy.Transporter) policy.Transporter {
		return harness.Transport(func(req *http.Request) (*http.Response, error) {
			resp, err := inner.Do(req)
			if err != nil {
				return nil, err
			}
			content, err := io.ReadAll(resp.Body)
			copied := *resp
			resp.Body, copied.Body = io.NopCloser(bytes.NewReader(content)), io.NopCloser(bytes.NewReader(content))
			answer = &copied
			return resp, err
		})
	})))
	_, err := d.cards.Get(t.Context(), cardKey(row))
	assert.Check(t, err)
	return answer
}

// answered is a request that is not sent, and has an answer of its own.
type answered struct{ resp *http.Response }

func (answered) String() string { return "answered" }

func (a answered) Meet(storagetest.Call, *http.Request, storagetest.Send) (*http.Response, error) {
	return a.resp, nil
}

// TestMargin: the model's margin is the part of the term that the lease of a change reserves.
func TestMargin(t *testing.T) {
	if got := lease.Margin(marks.Term); got != marks.Margin {
		t.Errorf("a change reserves %v of the term, and the model %v", got, marks.Margin)
	}
}
