package patterns_test

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// TestKeyFunctionsRunTwice: key functions are the program's own and may be slow. A change asks each for the entity as it was given,
// and for what will be read of it, and for nothing else.
func TestKeyFunctionsRunTwice(t *testing.T) {
	ctx := t.Context()
	account := harness.Account(t)
	queue := assert.Must[*eventual.Queue](t)(eventual.NewQueue(account, storagetest.Open(t).QueueName(t), nil))
	if err := queue.Create(ctx); err != nil {
		t.Fatal(err)
	}
	near, outside := 0, 0
	repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(harness.In(harness.NewTable(t, account), queue), personSchema(),
		intrapartition.NewUnique("near", func(p *person) string { near++; return p.Email }, nil),
		interpartition.NewUnique("outside", func(p *person) string { outside++; return p.Email }, &interpartition.Options[person]{ByPartition: true})))
	v := ann()
	for _, change := range []struct {
		name string
		do   func() error
		most int
	}{
		{"Insert", func() error { return repo.Insert(ctx, v) }, 2},
		{"Replace", func() error { v.Email = "ann@example.com"; return repo.Replace(ctx, v) }, 2},
		{"Delete", func() error { return repo.Delete(ctx, v) }, 0},
	} {
		near, outside = 0, 0
		if err := change.do(); err != nil {
			t.Fatal(err)
		}
		if near > change.most || outside > change.most {
			t.Errorf("%s calls the key functions %d and %d times, want at most %d", change.name, near, outside, change.most)
		}
	}
}
