package widentities_test

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestRequestCountsOfVerbs holds what docs/reference/costs.md says of verbs that read an entity of several rows before they write
// it.
func TestRequestCountsOfVerbs(t *testing.T) {
	ctx := t.Context()
	s, requests := harness.CountedService(storagetest.Open(t))
	p, _ := open(t, s)
	v := withNumbers(1, 300)
	assert.Check(t, p.profiles.Insert(ctx, v))
	for _, step := range []struct {
		name string
		want int
		do   func() error
	}{
		{"Update", 3, func() error {
			_, err := p.profiles.Update(ctx, at(1), func(v *profile) error { v.More["Answer00007"] = tables.Int32(-1); return nil })
			return err
		}},
		{"Upsert", 3, func() error { return p.profiles.Upsert(ctx, v) }},
		{"ReplaceUnconditional", 3, func() error { return p.profiles.ReplaceUnconditional(ctx, v) }},
		{"DeleteUnconditional", 3, func() error { return p.profiles.DeleteUnconditional(ctx, at(1)) }},
	} {
		requests.Reset()
		assert.Check(t, step.do())
		assert.Equal(t, requests.Reset(), step.want, "%s: requests", step.name)
	}
}
