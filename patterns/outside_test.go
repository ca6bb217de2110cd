package patterns_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// elsewhere is the least pattern with Outside: copies in a partition of their own, as a function says.
type elsewhere struct {
	table  *tables.Table
	copies func(*person) ([]driver.OutsideCopy, error)
}

func (x *elsewhere) Attach(driver.Host, *person) (driver.Implementation, error) {
	return driver.Implementation{Name: "elsewhere", Outside: &driver.Outside{Table: x.table, Copies: driver.Of(x.copies)}}, nil
}

// mailCopies are the copies of a person under her email.
func mailCopies(p *person) ([]driver.OutsideCopy, error) {
	return []driver.OutsideCopy{{Key: tables.Key{Partition: "mail", Row: p.Email}, Keep: []string{"Name"}}}, nil
}

// outsideWorld is a repository with copies elsewhere, and intents in memory.
type outsideWorld struct {
	t    *testing.T
	repo *patterns.Repository[person]
	log  *intentLog
}

func newOutsideWorld(t *testing.T, copies func(*person) ([]driver.OutsideCopy, error)) *outsideWorld {
	t.Helper()
	w := &outsideWorld{t: t, log: &intentLog{}}
	table := harness.NewTable(t, harness.Account(t))
	w.repo = assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(harness.In(table, w.log), personSchema(), &elsewhere{table, copies}))
	return w
}

// wantRows fails unless the copies' partition has one copy, with that name and owner, settled; or none, for "".
func (w *outsideWorld) wantRows(email, name, owner string) {
	w.t.Helper()
	rows := assert.Must[stored](w.t)(readStored(w.t.Context(), w.repo.Table(), "mail"))
	row := rows[tables.Key{Partition: "mail", Row: email}]
	if email == "" && len(rows) == 0 {
		return
	}
	if len(rows) != 1 || unquoted(row["Name"]) != name || unquoted(row["_tpPrimary"]) != owner || row["_tpMark"] != "" {
		w.t.Fatalf("there are copies %q; want %q of %s", rows, name, owner)
	}
}

const annRow, annMail = "person_0007", "ann@contoso.com"

// TestOutsideLostRow: a copy that somebody has removed comes back, or goes, with the next change.
func TestOutsideLostRow(t *testing.T) {
	ctx := t.Context()
	w := newOutsideWorld(t, mailCopies)
	p := ann()
	loses := func() {
		t.Helper()
		assert.Check(t, w.repo.Table().Entities().DeleteUnconditional(ctx, tables.Key{Partition: "mail", Row: annMail}))
	}
	assert.Check(t, w.repo.Insert(ctx, p))
	w.wantRows(annMail, "Ann", annRow)
	loses()
	p.Name = "Annie"
	assert.Check(t, w.repo.Replace(ctx, p))
	w.wantRows(annMail, "Annie", annRow)
	loses()
	assert.Check(t, w.repo.Delete(ctx, p))
	w.wantRows("", "", "")
	if len(w.log.open) != 0 {
		t.Errorf("intents %v are open", w.log.open)
	}
}

// TestOutsideForeignRow: a row that is no copy is never touched, and is why a change is refused.
func TestOutsideForeignRow(t *testing.T) {
	ctx := t.Context()
	w := newOutsideWorld(t, mailCopies)
	assert.Check(t, w.repo.Table().Entities().Insert(ctx, harness.Bag("mail", annMail, "foreign")))
	refused := func(err error) {
		t.Helper()
		if e := harness.WantKind(t, err, tables.ErrDuplicate); e.Pattern != "elsewhere" || !strings.Contains(e.Error(), "a row that is not a copy of an entity has this key") {
			t.Errorf("%v", e)
		}
	}
	p := ann()
	refused(w.repo.Insert(ctx, p))
	p.Email = "other@contoso.com"
	assert.Check(t, w.repo.Insert(ctx, p))
	p.Email = annMail
	refused(w.repo.Replace(ctx, p))
	assert.Check(t, w.repo.Delete(ctx, p))
	rows := assert.Must[stored](t)(readStored(ctx, w.repo.Table(), "mail"))
	if got := rows[tables.Key{Partition: "mail", Row: annMail}]; len(rows) != 1 || got == nil || got["_tpPrimary"] != "" || got["_tpMark"] != "" {
		t.Errorf("the rows are %v", rows)
	}
}

// TestOutsideForgedIntents: messages come from a queue that others may write to. One that names what is not reconciled, or cannot be
// understood, is refused, and changes no copy.
func TestOutsideForgedIntents(t *testing.T) {
	ctx := t.Context()
	table, log := harness.NewTable(t, harness.Account(t)), &intentLog{}
	repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(harness.In(table, log), personSchema(), &elsewhere{table, mailCopies}, mailNotes("notes", table)))
	w := &outsideWorld{t: t, repo: repo, log: log}
	assert.Check(t, w.repo.Insert(ctx, ann()))
	nobody := tables.Key{Partition: "red", Row: "person_0008"}
	for name, tc := range map[string]struct {
		member intents.Member
		kind   error
	}{
		"a copy":          {intents.Member{Key: annKey(), Outside: map[string][]string{"elsewhere": {"mail\t" + annMail}}}, driver.ErrUnknownPattern},
		"another's copy":  {intents.Member{Key: nobody, Outside: map[string][]string{"elsewhere": {"mail\t" + annMail}}}, driver.ErrUnknownPattern},
		"another pattern": {intents.Member{Key: annKey(), Outside: map[string][]string{"nowhere": {annMail}}}, driver.ErrUnknownPattern},
		"a key not its":   {intents.Member{Key: annKey(), Outside: map[string][]string{"notes": {"bob@contoso.com"}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			err := w.log.reconcile(ctx, oneMember(tc.member))
			if tc.kind == nil && err != nil || tc.kind != nil && !errors.Is(err, tc.kind) {
				t.Errorf("error is %v, want %v", err, tc.kind)
			}
			w.wantRows(annMail, "Ann", annRow)
			if _, err := w.repo.Get(ctx, annKey()); err != nil {
				t.Error(err)
			}
		})
	}
}

// oneMember is an intent of a single change.
func oneMember(m intents.Member) intents.Intent {
	return intents.Intent{ID: "x", Members: []intents.Member{m}}
}

func annKey() tables.Key { return tables.Key{Partition: "red", Row: annRow} }

// TestOutsideCopiesThatCannotBe are refused before anything is written.
func TestOutsideCopiesThatCannotBe(t *testing.T) {
	calls := 0
	one := func(row string) []driver.OutsideCopy {
		return []driver.OutsideCopy{{Key: tables.Key{Partition: "mail", Row: row}}}
	}
	for name, copies := range map[string]func(*person) ([]driver.OutsideCopy, error){
		"an error":           func(*person) ([]driver.OutsideCopy, error) { return nil, errors.New("cannot tell") },
		"a key twice":        func(*person) ([]driver.OutsideCopy, error) { return append(one("a"), one("a")...), nil },
		"a forbidden letter": func(*person) ([]driver.OutsideCopy, error) { return one("a/b"), nil },
		"a tab":              func(*person) ([]driver.OutsideCopy, error) { return one("a\tb"), nil },
		"another each time":  func(*person) ([]driver.OutsideCopy, error) { calls++; return one(strings.Repeat("a", calls)), nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newOutsideWorld(t, copies)
			if e := harness.WantKind(t, w.repo.Insert(t.Context(), ann()), tables.ErrInvalid); e.Pattern != "elsewhere" {
				t.Errorf("%v names pattern %q", e, e.Pattern)
			}
			if rows := assert.Must[stored](t)(readStored(t.Context(), w.repo.Table(), "")); len(rows)+len(w.log.open) != 0 {
				t.Errorf("rows %v, intents %v", rows, w.log.open)
			}
		})
	}
}

// noting is a pattern with OutsideKeys: it writes a row for each of its keys, and tries one that its message does not name.
type noting struct {
	table    *tables.Table
	unnamed  error
	reported error
}

func (x *noting) Attach(driver.Host, *person) (driver.Implementation, error) {
	return driver.Implementation{Name: "noting", Effect: driver.Effect{Reconcile: driver.ReconcileEach(x.reconcile),
		OutsideKeys: func(context.Context, *driver.Change) ([]string, error) { return []string{"named"}, nil }}}, nil
}

func (x *noting) reconcile(ctx context.Context, r *driver.Reconciliation) error {
	insert := func(row string) driver.RowOperation {
		return driver.RowOperation{Verb: driver.InsertRow, Row: harness.Bag("notes", row, "note")}
	}
	if !slices.Equal(r.Keys, []string{"named"}) || !r.Owns(ctx, "named") || r.Owns(ctx, "unnamed") {
		return errors.New("the keys are others")
	}
	x.unnamed = r.Write(ctx, "unnamed", x.table, insert("unnamed"))
	x.reported = r.Write(ctx, "named", x.table, insert("a"), insert("b"))
	return nil
}

// TestOutsideWrite: rows are written for keys that the message names, in one transaction, and say what was in their way.
func TestOutsideWrite(t *testing.T) {
	ctx := context.Background()
	x := &noting{table: harness.NewTable(t, harness.Account(t))}
	log := &intentLog{}
	repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(harness.In(harness.NewTable(t, harness.Account(t)), log), personSchema(), x))
	p := ann()
	if err := repo.Insert(ctx, p); err != nil {
		t.Fatal(err)
	}
	harness.WantKind(t, x.unnamed, tables.ErrInvalid)
	if rows := assert.Must[stored](t)(readStored(ctx, x.table, "notes")); x.reported != nil || len(rows) != 2 {
		t.Fatalf("%v, rows %v", x.reported, rows)
	}
	if err := x.table.Entities().DeleteUnconditional(ctx, tables.Key{Partition: "notes", Row: "a"}); err != nil {
		t.Fatal(err)
	}
	if err := repo.Replace(ctx, p); err != nil {
		t.Fatal(err)
	}
	if e := harness.WantKind(t, x.reported, tables.ErrConflict); e.Key.Row != "b" || e.Pattern != "noting" {
		t.Errorf("%+v", e)
	}
	if rows := assert.Must[stored](t)(readStored(ctx, x.table, "notes")); len(rows) != 1 {
		t.Errorf("a part of a transaction was written: %v", rows)
	}
}
