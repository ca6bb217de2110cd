package heterogeneous_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/heterogeneous"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestMergeIntoWhatAStepDrops: a property that a step gives up, and that the current version has under the same name, does not
// come back by a merge.
func TestMergeIntoWhatAStepDrops(t *testing.T) {
	type first struct {
		tables.Meta
		place
		Phone  string `table:",omitempty"`
		Visits int
	}
	type second struct {
		tables.Meta
		place
		Phone  *int64
		Visits int
	}
	ctx, s := t.Context(), storagetest.Open(t)
	table := assert.Must[*tables.Table](t)(tableOf(s, s.TableName(t)))
	assert.Check(t, table.Create(ctx))
	before := assert.Must[*patterns.Repository[first]](t)(patterns.NewRepository(table, patterns.Schema[first]{
		Key: func(e *first) tables.Key { return keyOf(e.Department, e.ID) }, Prefix: "empid",
	}, heterogeneous.NewType[first]("Employee", 1, nil)))
	typ := heterogeneous.NewType[second]("Employee", 2, &heterogeneous.TypeOptions{Steps: []heterogeneous.Step{
		heterogeneous.From(1, func(old *first) (*second, error) {
			next := &second{place: old.place, Visits: old.Visits}
			if n, err := strconv.ParseInt(old.Phone, 10, 64); err == nil {
				next.Phone = &n
			}
			return next, nil
		})}})
	now := assert.Must[*patterns.Repository[second]](t)(patterns.NewRepository(table, patterns.Schema[second]{
		Key: func(e *second) tables.Key { return keyOf(e.Department, e.ID) }, Prefix: "empid",
	}, typ))
	key := keyOf("Sales", 1)
	assert.Check(t, before.Insert(ctx, &first{place: place{"Sales", 1}, Phone: "none"}))
	bag := assert.Must[*tables.Entity](t)(table.Entities().Get(ctx, key))
	bag.Properties = tables.Properties{{Name: "Color", Value: tables.String("red")}}
	assert.Check(t, table.Entities().Merge(ctx, bag)) // what neither version knows stays
	e := assert.Must[*second](t)(now.Get(ctx, key))
	e.Visits = 7
	assert.Check(t, now.Merge(ctx, e, "Visits"))
	if e, err := now.Get(ctx, key); err != nil || e.Phone != nil || e.Visits != 7 {
		t.Errorf("it reads as %+v, %v", e, err)
	}
	if got := stored(t, table, key); !strings.Contains(got, `"Color":"red"`) || strings.Contains(got, "Phone") {
		t.Errorf("stored is %s", got)
	}
}
