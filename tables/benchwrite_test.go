package tables_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// transactionContenders upsert the same 100 employees in one entity group transaction.
func (s *sides) transactionContenders() []harness.Contender {
	ctx := context.Background()
	employees := benchEmployees(tables.MaxTransactionOperations)
	ours := func() error {
		x := s.ours.Table().NewTransaction()
		for _, e := range employees {
			row, err := s.ours.Entity(e)
			if err != nil {
				return err
			}
			x.Upsert(row)
		}
		_, err := x.Commit(ctx)
		return err
	}
	bags := edmEntities(employees)
	sdk := func() error {
		actions := make([]aztables.TransactionAction, len(bags))
		for i, bag := range bags {
			text, err := json.Marshal(bag)
			if err != nil {
				return err
			}
			actions[i] = aztables.TransactionAction{ActionType: aztables.TransactionTypeInsertReplace, Entity: text}
		}
		_, err := s.sdk.SubmitTransaction(ctx, actions, nil)
		return err
	}
	return []harness.Contender{{Name: "ours", Run: ours}, {Name: "EDMEntity", Run: sdk}}
}

// upsertContenders upsert one employee after the other, each in a request of its own.
func (s *sides) upsertContenders() []harness.Contender {
	ctx := context.Background()
	employees := benchEmployees(tables.MaxTransactionOperations)
	bags := edmEntities(employees)
	next := func() func() int {
		i := 0
		return func() int { i = (i + 1) % len(employees); return i }
	}
	nextOurs, nextSDK := next(), next()
	ours := func() error { return s.ours.Upsert(ctx, employees[nextOurs()]) }
	options := &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace}
	sdk := func() error {
		text, err := json.Marshal(bags[nextSDK()])
		if err != nil {
			return err
		}
		_, err = s.sdk.UpsertEntity(ctx, text, options)
		return err
	}
	return []harness.Contender{{Name: "ours", Run: ours}, {Name: "EDMEntity", Run: sdk}}
}

func edmEntities(employees []*benchEmployee) []aztables.EDMEntity {
	bags := make([]aztables.EDMEntity, len(employees))
	for i, e := range employees {
		bags[i] = e.edmEntity()
	}
	return bags
}

// TestBenchmarkSides holds that the sides of the benchmarks do the same work: they read the same values and send
// bodies of about the same size.
func TestBenchmarkSides(t *testing.T) {
	s := newSides(t)
	employees := benchEmployees(benchPageSize)
	page, err := s.ours.Query().Partition("Sales").Page(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := readSDK[plainEmployee](s)
	if err != nil {
		t.Fatal(err)
	}
	bags, err := readSDK[aztables.EDMEntity](s)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range employees {
		e.wantEqual(t, i, page.Items[i])
		wantSame(t, plain[i], e.plain(i))
		wantSame(t, bags[i], e.edmEntity())
	}
	for name, contenders := range map[string][]harness.Contender{"transaction": s.transactionContenders(), "upsert": s.upsertContenders()} {
		var sent [2]int64
		for i, c := range contenders {
			before := s.canned.sent
			if err := c.Run(); err != nil {
				t.Fatalf("%s, %s: %v", name, c.Name, err)
			}
			sent[i] = s.canned.sent - before
		}
		t.Logf("%s: %d bytes, the SDK's %d", name, sent[0], sent[1])
		if sent[0] < sent[1]*3/4 || sent[0] > sent[1]*5/4 {
			t.Errorf("%s: bodies of %d bytes, the SDK's of %d", name, sent[0], sent[1])
		}
	}
}

// wantSame compares by what the values are as JSON.
func wantSame[T any](t *testing.T, got, want T) {
	t.Helper()
	g, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if w, err := json.Marshal(want); err != nil || string(g) != string(w) {
		t.Fatalf("got %s, want %s, %v", g, w, err)
	}
}
