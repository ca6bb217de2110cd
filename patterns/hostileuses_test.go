package patterns_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

type used struct {
	tables.Meta
	P string
	N int
}

func usedKey(v *used) tables.Key {
	return tables.Key{Partition: v.P, Row: compoundkey.Join("used", compoundkey.Int(v.N, 2))}
}

// TestUsesThatLackSomething: what was not made by its maker, or is nil, is refused without a request, and not by a panic.
func TestUsesThatLackSomething(t *testing.T) {
	ctx := context.Background()
	a, requests := harness.Counted(t)
	repository := assert.Must[*patterns.Repository[used]](t)(patterns.NewRepository(a.Table("Used"), patterns.Schema[used]{Key: usedKey, Prefix: "used"}))
	typed := assert.Must[*tables.Rows[tables.Entity]](t)(tables.RowsOf[tables.Entity](a.Table("Used")))
	key := tables.Key{Partition: "p", Row: "used_01"}
	uses := map[string]func() error{
		"Update without a function":    func() error { _, err := repository.Update(ctx, key, nil); return err },
		"a bulk insert of no sequence": func() error { _, err := repository.BulkNonAtomic(ctx, nil, nil); return err },
		"a bulk of no sequence":        func() error { _, err := typed.BulkNonAtomic(ctx, nil, nil); return err },
		"Create of a nil table":        func() error { return (*tables.Table)(nil).Create(ctx) },
		"Drop of a nil table":          func() error { return (*tables.Table)(nil).Drop(ctx) },
	}
	for what, table := range map[string]*tables.Table{"a zero table": {}, "a table of a nil account": (*tables.Account)(nil).Table("Used"), "a table of a zero account": new(tables.Account).Table("Used")} {
		uses["Create of "+what] = func() error { return table.Create(ctx) }
		uses["Drop of "+what] = func() error { return table.Drop(ctx) }
		uses["Insert into "+what] = func() error { return table.Entities().Insert(ctx, harness.Row("p", "r")) }
		uses["Get of "+what] = func() error { _, err := table.Entities().Get(ctx, key); return err }
		uses["Query of "+what] = func() error { _, err := table.Entities().Query().Partition("p").First(ctx); return err }
		uses["NewRepository of "+what] = func() error {
			_, err := patterns.NewRepository(table, patterns.Schema[used]{Key: usedKey})
			return err
		}
	}
	for what, f := range uses {
		t.Run(what, func(t *testing.T) { harness.RefusedUnsent(t, requests, tables.ErrWiring, what, f) })
	}
}

// TestKeyThatCouldNotBeMade: of a number that is too large for its width the error says so, and not that a prefix is missing.
func TestKeyThatCouldNotBeMade(t *testing.T) {
	a, requests := harness.Counted(t)
	repository := assert.Must[*patterns.Repository[used]](t)(patterns.NewRepository(a.Table("Used"), patterns.Schema[used]{Key: usedKey, Prefix: "used"}))
	insert := func() error { return repository.Insert(context.Background(), &used{P: "p", N: 100}) }
	harness.RefusedUnsent(t, requests, tables.ErrInvalid, "a number of three digits", insert)
	if err := insert(); strings.Contains(err.Error(), "Schema.Rows") || !strings.Contains(err.Error(), "compoundkey") {
		t.Error(err)
	}
}

// TestTagWithoutEffect: a field that is not exported is never stored, so its tag is a mistake.
func TestTagWithoutEffect(t *testing.T) {
	type tagged struct {
		tables.Meta
		name string `table:"Name"` //lint:ignore U1000 it is the tag that counts
	}
	_, err := tables.NewCodec[tagged]()
	harness.WantKind(t, err, tables.ErrWiring)
	type left struct {
		tables.Meta
		name string `table:"-"` //lint:ignore U1000 it is the tag that counts
	}
	if _, err := tables.NewCodec[left](); err != nil {
		t.Error(err)
	}
}
