package highvolumedelete_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/highvolumedelete"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestRequestCounts holds what the package comment says.
func TestRequestCounts(t *testing.T) {
	ctx := t.Context()
	s, requests := harness.CountedService(storagetest.Open(t))
	logins := mustStart(t, s, schemaOf(nameOf(t, s), func() time.Time { return noon }))
	at := func(days int) *login { return &login{User: "june", At: noon.AddDate(0, 0, days), Address: "::1"} }
	june, old := at(0), at(-3)
	second := *june
	second.At = noon.Add(time.Second)
	earlier := *old
	earlier.At = old.At.Add(time.Second)
	for _, step := range []struct {
		name string
		want int
		do   func() error
	}{
		{"Insert, no table", 4, func() error { return logins.Insert(ctx, june) }},
		{"Insert", 1, func() error { return logins.Insert(ctx, &second) }},
		{"Get", 1, func() error { _, err := logins.Get(ctx, june.At, keyOf(june)); return err }},
		{"Upsert", 2, func() error { return logins.Upsert(ctx, june) }},
		{"Replace", 1, func() error { june.Address = "::2"; return logins.Replace(ctx, june) }},
		{"late Insert, no table", 4, // the mark was read a moment ago
			func() error { return logins.Insert(ctx, old) }},
		{"late Insert", 1, func() error { return logins.Insert(ctx, &earlier) }},
		{"Prepare", 4, func() error { return logins.Prepare(ctx, noon.AddDate(0, 0, 1), noon.AddDate(0, 0, 2)) }},
		{"List", 1, func() error { _, err := logins.List(ctx); return err }},
		{"dry run", 2, func() error {
			_, err := logins.Drop(ctx, noon, &highvolumedelete.DropOptions{DryRun: true})
			return err
		}},
		{"the first Drop", 6, func() error { _, err := logins.Drop(ctx, noon, noGrace()); return err }},
		{"Drop, nothing to do", 2, func() error { _, err := logins.Drop(ctx, noon, noGrace()); return err }},
		{"Delete", 1, func() error { return logins.Delete(ctx, june) }},
		{"Mark", 1, func() error { _, err := logins.Mark(ctx); return err }},
	} {
		requests.Reset()
		assert.NoError(assert.Fatal(t), step.do(), step.name)
		if got := requests.Count(); got != step.want {
			t.Errorf("%s: %d requests, want %d: %v", step.name, got, step.want, requests.Kinds())
		}
	}
}

// TestRules: late and early entities go where they belong, or are refused with a typed error and without a table.
func TestRules(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	midnight := time.Date(2014, 8, 22, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name        string
		late, early time.Duration
		now         time.Time
		at          time.Duration // from midnight
		want        error
	}{
		{"just before midnight", 0, 0, midnight, -100, nil},
		{"just before midnight, sent after it", time.Minute, 0, midnight.Add(30 * time.Second), -100, nil},
		{"too long after it", time.Minute, 0, midnight.Add(61 * time.Second), -100, highvolumedelete.ErrLate},
		{"nothing late", -1, 0, midnight, -100, highvolumedelete.ErrLate},
		{"at midnight", -1, -1, midnight, 0, nil},
		{"years late", 0, 0, midnight, -20000 * time.Hour, nil},
		{"tomorrow", 0, 0, midnight, 24 * time.Hour, nil},
		{"the day after", 0, 0, midnight, 48 * time.Hour, highvolumedelete.ErrEarly},
		{"the day after, allowed", 0, 49 * time.Hour, midnight, 48 * time.Hour, nil},
		{"nothing early", 0, -1, midnight.Add(-time.Nanosecond), 0, highvolumedelete.ErrEarly},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, requests := harness.CountedService(s)
			schema := schemaOf(nameOf(t, s), func() time.Time { return c.now })
			schema.Late, schema.Early = c.late, c.early
			logins := mustStart(t, s, schema)
			l := &login{User: "june", At: midnight.Add(c.at)}
			err := logins.Insert(ctx, l)
			if !errors.Is(err, c.want) || err == nil != (c.want == nil) || err != nil && !errors.Is(err, tables.ErrInvalid) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			if c.want != nil {
				assert.Equal(t, requests.Count(), 0, "requests for what is refused")
				return
			}
			want := schema.Name + "D" + l.At.Format("20060102")
			if got := assert.Must[[]string](t)(logins.List(ctx)); len(got) != 1 || got[0] != want {
				t.Errorf("it went to %v, want %s", got, want)
			}
			if got := assert.Must[*login](t)(logins.Get(ctx, l.At, keyOf(l))); !got.At.Equal(l.At) {
				t.Errorf("read back as %v", got.At)
			}
		})
	}
}

// TestConcurrentCreates: many processes write into a period without a table at once.
func TestConcurrentCreates(t *testing.T) {
	s := storagetest.Open(t)
	schema := schemaOf(nameOf(t, s), func() time.Time { return noon })
	var wg sync.WaitGroup
	errs := make([]error, 12)
	for i := range errs {
		logins := mustStart(t, s, schema)
		wg.Go(func() {
			errs[i] = logins.Insert(context.Background(), &login{User: fmt.Sprint(i), At: noon})
		})
	}
	wg.Wait()
	assert.Check(t, errors.Join(errs...))
	logins := mustStart(t, s, schema)
	count := 0
	for _, err := range logins.Between(t.Context(), noon, noon.Add(1), &highvolumedelete.ReadOptions[login]{
		Query: func(q tables.Query[login]) tables.Query[login] { return q.AllowTableScan() }}) {
		if count++; err != nil {
			t.Fatal(err)
		}
	}
	if got := assert.Must[[]string](t)(logins.List(t.Context())); count != 12 || len(got) != 1 {
		t.Errorf("%d entities in %v", count, got)
	}
}

// TestTableIsGone: the repository of a table that was dropped, by hand or by Drop, is still in use by a process.
func TestTableIsGone(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	c := &clock{noon}
	schema := schemaOf("Logins", c.now)
	logins := mustStart(t, s, schema)
	june := &login{User: "june", At: noon}
	assert.Check(t, logins.Insert(ctx, june))
	repo := assert.Must[*patterns.Repository[login]](t)(logins.Repository(noon))
	if err := repo.Table().Drop(ctx); err != nil { // by hand: the mark does not know
		t.Fatal(err)
	}
	another := &login{User: "june", At: noon.Add(time.Second)}
	if err := logins.Insert(ctx, another); !errors.Is(err, highvolumedelete.ErrLate) || !strings.Contains(err.Error(), "being deleted") {
		t.Errorf("while the table is being deleted: %v, want ErrLate", err)
	}
	assert.ErrorIs(t, assert.Err(logins.Get(ctx, noon, keyOf(june))), tables.ErrNotFound, "Get")
	june.Address = "::1"
	assert.ErrorIs(t, logins.Replace(ctx, june), tables.ErrNotFound, "Replace")
	assert.ErrorIs(t, logins.Delete(ctx, june), tables.ErrNotFound, "Delete")
	s.Wait(41 * time.Second)
	if err := logins.Insert(ctx, another); err != nil { // the period is open as far as the mark says
		t.Errorf("once the name is free, in a period above the mark: %v", err)
	}
	c.at = noon.AddDate(0, 0, 3)
	other := mustStart(t, s, schema)
	assert.Check(t, assert.Err(other.Drop(ctx, c.at, noGrace())))
	s.Wait(41 * time.Second)
	for i, process := range []*highvolumedelete.Tables[login]{logins, mustStart(t, s, schema), other} {
		err := process.Insert(ctx, &login{User: "june", At: noon.Add(time.Minute)})
		assert.ErrorIs(t, err, highvolumedelete.ErrLate, "process %d, a period below the mark whose name is free", i)
		assert.NoError(t, process.Prepare(ctx, noon, noon), "process %d, Prepare passes closed periods over", i)
	}
	assert.Len(t, assert.Must[[]string](t)(logins.List(ctx)), 0, "tables that came back")
	assert.ErrorIs(t, logins.Prepare(ctx, noon, noon.AddDate(3, 0, 0)), tables.ErrInvalid, "Prepare of three years of days")
}

// TestInvalidLateEntity: what no service stores is refused before the mark is looked at.
func TestInvalidLateEntity(t *testing.T) {
	s, requests := harness.CountedService(storagetest.Open(t))
	logins := mustStart(t, s, schemaOf(nameOf(t, s), func() time.Time { return noon }))
	for _, days := range []int{-2, 0} {
		err := logins.Insert(t.Context(), &login{User: "a/b", At: noon.AddDate(0, 0, days)})
		if n := requests.Count(); n != 0 || !errors.Is(err, tables.ErrInvalid) {
			t.Errorf("%d requests before %v", n, err)
		}
	}
}
