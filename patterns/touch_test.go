package patterns_test

import (
	"context"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// journaling is a pattern of persons that adds an entry to a journal of their partition beside each change that is news.
type journaling struct {
	journal *patterns.Repository[team]
	kinds   []driver.ChangeKind
}

func (j *journaling) Attach(driver.Host, *person) (driver.Implementation, error) {
	return driver.Implementation{Name: "journaling", Companions: func(ctx context.Context, c *driver.Change, x *tables.Transaction) error {
		if j.kinds = append(j.kinds, c.Kind); c.Kind != driver.ChangeTouch {
			patterns.HostOf(j.journal).Stage(ctx, driver.ChangeInsert, x, &team{Name: c.ID})
		}
		return nil
	}}, nil
}

// TestTouch: Rebuild and Repair write an entity again as a touch, so that a pattern that logs changes adds no entry.
func TestTouch(t *testing.T) {
	ctx, table := t.Context(), harness.NewTable(t, harness.Account(t))
	journal := assert.Must[*patterns.Repository[team]](t)(patterns.NewRepository(table, teamSchema()))
	open := func(more ...patterns.Pattern[person]) (*patterns.Repository[person], *journaling) {
		j := &journaling{journal: journal}
		return assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, personSchema(), append(more, j)...)), j
	}
	entries := func() (n int) {
		for _, err := range journal.Query().Partition("red").All(ctx) {
			assert.Check(t, err)
			n++
		}
		return n
	}
	before, _ := open()
	v := ann()
	assert.Check(t, before.Insert(ctx, v))
	v.Name = "Anna"
	if assert.Check(t, before.Replace(ctx, v)); entries() != 2 {
		t.Fatalf("%d entries of two changes", entries())
	}
	repo, j := open(intrapartition.NewUnique("email", func(p *person) string { return p.Email }, nil))
	for what, job := range []anyJob{harness.Tallied(repo.Rebuild), harness.Tallied(repo.Repair)} {
		if what == 1 {
			assert.Check(t, table.Entities().DeleteUnconditional(ctx, tables.Key{Partition: "red", Row: "email_ann@contoso.com"}))
		}
		j.kinds = nil
		if _, err := job(ctx, nil); err != nil || !slices.Equal(slices.Compact(j.kinds), []driver.ChangeKind{driver.ChangeTouch}) || entries() != 2 {
			t.Errorf("job %d: %v, changes %v, %d entries", what, err, j.kinds, entries())
		}
		assert.Check(t, harness.Clean(ctx, repo.Verify, nil))
	}
	if got := driver.ChangeTouch.String(); got != "Touch" {
		t.Errorf("its name is %s", got)
	}
}
