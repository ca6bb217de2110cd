package highvolumedelete_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/highvolumedelete"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestOpenThatFails: the error of Schema.Open is that of every verb, and the next call asks again.
func TestOpenThatFails(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	schema, broken := schemaOf("Logins", func() time.Time { return noon }), errors.New("no repository")
	opened := 0
	schema.Open = func(table *tables.Table) (*patterns.Repository[login], error) {
		if opened++; opened < 6 {
			return nil, broken
		}
		return openLogins(table)
	}
	logins, l := mustStart(t, s, schema), &login{User: "june", At: noon}
	_, get := logins.Get(ctx, noon, keyOf(l))
	_, between := times(ctx, logins.Between(ctx, noon, noon.Add(1), nil))
	for name, err := range map[string]error{"Insert": logins.Insert(ctx, l), "Replace": logins.Replace(ctx, l), "Delete": logins.Delete(ctx, l), "Get": get, "Between": between} {
		assert.ErrorIs(t, err, broken, name)
	}
	insert(t, logins, "june", noon)
}

// TestCountOfATableThatGoes: one that a concurrent writer drops between the list and the count has no rows, and is told as gone. The concurrent writer drops all
// below the mark, which is this one's already.
func TestCountOfATableThatGoes(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	schema := schemaOf("Logins", func() time.Time { return noon })
	concurrent := mustStart(t, s, schema)
	insert(t, concurrent, "june", noon, noon.AddDate(0, 0, -1), noon.AddDate(0, 0, -2))
	before := noon.AddDate(0, 0, -1)
	drops := storagetest.Once(storagetest.Always(storagetest.After("a concurrent writer drops", func() {
		assert.NoError(t, assert.Err(concurrent.Drop(context.Background(), before, noGrace())))
	})))
	faulty, _ := s.Faulty(storagetest.On(storagetest.QueryTables, drops))
	report, err := mustStart(t, faulty, schema).Drop(ctx, noon, &highvolumedelete.DropOptions{Count: true, UnsafeGrace: -1})
	if err != nil || labels(report.Gone, "Logins") != "[D20140820 D20140821]" || len(report.Tables) != 0 || report.Rows != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	if report.Requests != 7 || report.Saved() != 2-7 { // a look into each table would have shown it
		t.Errorf("saved %d of %d, with %d requests", report.Saved(), report.Instead, report.Requests)
	}
	// A count that cannot be made drops nothing.
	denied, _ := s.Faulty(storagetest.On(storagetest.QueryEntities, storagetest.Always(storagetest.Refusal{Status: 403, Code: "AuthorizationPermissionMismatch"})))
	later := schema
	later.Now = func() time.Time { return noon.AddDate(0, 0, 1) }
	if _, err := mustStart(t, denied, later).Drop(ctx, noon.AddDate(0, 0, 1), &highvolumedelete.DropOptions{Count: true, UnsafeGrace: -1}); !errors.Is(err, tables.ErrDenied) {
		t.Errorf("a count that is denied: %v", err)
	}
	assert.Equal(t, labels(assert.Must[[]string](t)(concurrent.List(ctx)), "Logins"), "[D20140822]", "left")
}

// TestForgottenTime: an entity whose time was not set makes no table for the year 1.
func TestForgottenTime(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	logins := mustStart(t, s, schemaOf("Logins", func() time.Time { return noon }))
	assert.ErrorIs(t, logins.Insert(t.Context(), &login{User: "june"}), tables.ErrInvalid, "Insert")
	assert.Len(t, assert.Must[[]string](t)(logins.List(t.Context())), 0)
}
