package patterns_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

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

func (x *elsewhere) Attach(driver.Host[person]) (driver.Implementation[person], error) {
	return driver.Implementation[person]{Name: "elsewhere", Outside: &driver.Outside[person]{Table: x.table, Copies: x.copies}}, nil
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
	w.repo = harness.Must[*patterns.Repository[person]](t)(patterns.NewRepository(harness.In(table, w.log), personSchema(), &elsewhere{table, copies}))
	return w
}

// rows are the names in the rows of the copies' partition by row key, and whose the claims are by the key of the copy.
func (w *outsideWorld) rows() (names, claims map[string]string) {
	w.t.Helper()
	names, claims = map[string]string{}, map[string]string{}
	for key, row := range harness.Must[stored](w.t)(readStored(w.t.Context(), w.repo.Table(), "mail")) {
		if claimed := unquoted(row["_tpClaim"]); claimed != "" {
			claims[claimed] = unquoted(row["_tpPrimary"])
		} else {
			names[key.Row] = unquoted(row["Name"])
		}
	}
	return names, claims
}

// wantRows fails unless the copies' partition has one copy, with that name and its claim; or none, for "".
func (w *outsideWorld) wantRows(email, name, owner string) {
	w.t.Helper()
	names, claims := w.rows()
	if email == "" && len(names)+len(claims) == 0 {
		return
	}
	if len(names) != 1 || names[email] != name || len(claims) != 1 || claims[email] != owner {
		w.t.Fatalf("there are copies %q with claims of %q; want %q of %s", names, claims, name, owner)
	}
}

// loses removes rows of the copies' partition behind the library's back: the claims, or the copies.
func (w *outsideWorld) loses(claims bool) {
	w.t.Helper()
	for key, row := range harness.Must[stored](w.t)(readStored(w.t.Context(), w.repo.Table(), "mail")) {
		if (row["_tpClaim"] != "") != claims {
			continue
		}
		if err := w.repo.Table().Entities().DeleteUnconditional(w.t.Context(), key); err != nil {
			w.t.Fatal(err)
		}
	}
}

const annRow, annMail = "person_0007", "ann@contoso.com"

// TestOutsideLostRows: a copy or a claim that somebody has removed comes back, or goes, with the next change.
func TestOutsideLostRows(t *testing.T) {
	ctx := context.Background()
	for name, claims := range map[string]bool{"claim": true, "copy": false} {
		t.Run(name, func(t *testing.T) {
			w := newOutsideWorld(t, mailCopies)
			p := ann()
			if err := w.repo.Insert(ctx, p); err != nil {
				t.Fatal(err)
			}
			w.wantRows(annMail, "Ann", annRow)
			w.loses(claims)
			p.Name = "Annie"
			if err := w.repo.Replace(ctx, p); err != nil {
				t.Fatal(err)
			}
			w.wantRows(annMail, "Annie", annRow)
			w.loses(claims)
			if err := w.repo.Delete(ctx, p); err != nil {
				t.Fatal(err)
			}
			if claims {
				// Without a claim nothing says whose the copy is, and nobody removes it.
				if names, left := w.rows(); names[annMail] != "Annie" || len(left) != 0 {
					t.Errorf("there are copies %q, claims %q", names, left)
				}
			} else {
				w.wantRows("", "", "")
			}
			if len(w.log.open) != 0 {
				t.Errorf("intents %v are open", w.log.open)
			}
		})
	}
}

// TestOutsideForeignRow: a row that is no copy is never touched, and is why an intent cannot be carried out.
func TestOutsideForeignRow(t *testing.T) {
	ctx := context.Background()
	w := newOutsideWorld(t, mailCopies)
	if err := w.repo.Table().Entities().Insert(ctx, harness.Bag("mail", annMail, "foreign")); err != nil {
		t.Fatal(err)
	}
	p := ann()
	if err := w.repo.Insert(ctx, p); err != nil {
		t.Fatal(err)
	}
	if len(w.log.open) != 1 {
		t.Fatalf("intents %v are open", w.log.open)
	}
	e := harness.WantKind(t, w.log.reconcile(ctx, w.log.open[0]), tables.ErrDuplicate)
	if e.Pattern != "elsewhere" || !strings.Contains(e.Error(), "a row that is not a copy of an entity has this key") {
		t.Errorf("%v", e)
	}
	if err := w.repo.Delete(ctx, p); err != nil {
		t.Fatal(err)
	}
	row, err := w.repo.Table().Entities().Get(ctx, tables.Key{Partition: "mail", Row: annMail})
	if err != nil || len(w.log.open) != 1 {
		t.Fatalf("%v, intents %v are open", err, w.log.open)
	}
	if got := harness.Must[stored](t)(readStored(ctx, w.repo.Table(), "mail"))[row.Key]; got["_tpPrimary"] != "" {
		t.Errorf("the row has become a copy: %v", got)
	}
	if err := w.log.reconcile(ctx, w.log.open[0]); err != nil {
		t.Errorf("the entity is gone, and its intent cannot be carried out: %v", err)
	}
}

// TestOutsideForgedIntents: messages come from a queue that others may write to. One does nothing but make keys agree with
// its entity: it cannot remove another's copy, and what cannot be understood is refused.
func TestOutsideForgedIntents(t *testing.T) {
	ctx := context.Background()
	w := newOutsideWorld(t, mailCopies)
	if err := w.repo.Insert(ctx, ann()); err != nil {
		t.Fatal(err)
	}
	nobody := tables.Key{Partition: "red", Row: "person_0008"}
	for name, tc := range map[string]struct {
		intent intents.Intent
		kind   error
	}{
		"another's key":    {oneMember(intents.Member{Key: nobody, Outside: map[string][]string{"elsewhere": {"mail\t" + annMail}}}), nil},
		"a key not its":    {oneMember(intents.Member{Key: annKey(), Outside: map[string][]string{"elsewhere": {"mail\tbob@contoso.com"}}}), nil},
		"the entity's row": {oneMember(intents.Member{Key: nobody, Outside: map[string][]string{"elsewhere": {"red\t" + annRow}}}), nil},
		"no key":           {oneMember(intents.Member{Key: nobody, Outside: map[string][]string{"elsewhere": {"mail"}}}), tables.ErrInvalid},
		"a key that cannot be": {oneMember(intents.Member{Key: nobody, Outside: map[string][]string{"elsewhere": {"mail\t" + strings.Repeat("x", 2000)}}}),
			tables.ErrTooLarge},
		"another pattern": {oneMember(intents.Member{Key: annKey(), Outside: map[string][]string{"nowhere": {"mail\t" + annMail}}}), driver.ErrUnknownPattern},
	} {
		t.Run(name, func(t *testing.T) {
			err := w.log.reconcile(ctx, tc.intent)
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

// TestOutsideCopiesThatCannotBe are refused before an intent is written.
func TestOutsideCopiesThatCannotBe(t *testing.T) {
	calls := 0
	one := func(row string) []driver.OutsideCopy {
		return []driver.OutsideCopy{{Key: tables.Key{Partition: "mail", Row: row}}}
	}
	for name, copies := range map[string]func(*person) ([]driver.OutsideCopy, error){
		"an error":           func(*person) ([]driver.OutsideCopy, error) { return nil, errors.New("cannot tell") },
		"a key twice":        func(*person) ([]driver.OutsideCopy, error) { return append(one("a"), one("a")...), nil },
		"a claim's key":      func(*person) ([]driver.OutsideCopy, error) { return one("\uFFFCa"), nil },
		"a forbidden letter": func(*person) ([]driver.OutsideCopy, error) { return one("a/b"), nil },
		"a tab":              func(*person) ([]driver.OutsideCopy, error) { return one("a\tb"), nil },
		"another each time":  func(*person) ([]driver.OutsideCopy, error) { calls++; return one(strings.Repeat("a", calls)), nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newOutsideWorld(t, copies)
			if e := harness.WantKind(t, w.repo.Insert(t.Context(), ann()), tables.ErrInvalid); e.Pattern != "elsewhere" {
				t.Errorf("%v names pattern %q", e, e.Pattern)
			}
			if rows := harness.Must[stored](t)(readStored(t.Context(), w.repo.Table(), "")); len(rows)+len(w.log.open) != 0 {
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

func (x *noting) Attach(driver.Host[person]) (driver.Implementation[person], error) {
	return driver.Implementation[person]{Name: "noting", Reconcile: driver.ReconcileEach(x.reconcile),
		OutsideKeys: func(context.Context, *driver.Change[person]) ([]string, error) { return []string{"named"}, nil }}, nil
}

func (x *noting) reconcile(ctx context.Context, r *driver.Reconciliation[person]) error {
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
	repo := harness.Must[*patterns.Repository[person]](t)(patterns.NewRepository(harness.In(harness.NewTable(t, harness.Account(t)), log), personSchema(), x))
	p := ann()
	if err := repo.Insert(ctx, p); err != nil {
		t.Fatal(err)
	}
	harness.WantKind(t, x.unnamed, tables.ErrInvalid)
	if rows := harness.Must[stored](t)(readStored(ctx, x.table, "notes")); x.reported != nil || len(rows) != 2 {
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
	if rows := harness.Must[stored](t)(readStored(ctx, x.table, "notes")); len(rows) != 1 {
		t.Errorf("a part of a transaction was written: %v", rows)
	}
}
