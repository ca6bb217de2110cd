package composition

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

const page = "../../docs/explanation/composition.md"

// matrix is a table of the page: for each row and column yes or no.
type matrix struct {
	rows    []string
	columns int
	cells   map[[2]int]bool
}

var (
	rowName  = regexp.MustCompile("^(?:([0-9]+) )?`([^`]+)`$")
	cellText = regexp.MustCompile(`^(yes|no)(?: ([a-z]))?$`)
	noteText = regexp.MustCompile(`(?m)^- \*\*([a-z])\*\* \S`)
)

// parseMatrix reads the table behind a heading. Every "no" has a letter that stands before its reason, somewhere on the page.
func parseMatrix(text, heading string) (*matrix, error) {
	_, behind, found := strings.Cut(text, "\n## "+heading+"\n")
	if !found {
		return nil, fmt.Errorf("there is no heading %q", heading)
	}
	behind, _, _ = strings.Cut(behind, "\n## ")
	notes := map[string]bool{}
	for _, m := range noteText.FindAllStringSubmatch(text, -1) {
		notes[m[1]] = true
	}
	x := &matrix{cells: map[[2]int]bool{}}
	for line := range strings.Lines(behind) {
		line, is := strings.CutPrefix(strings.TrimSpace(line), "|")
		if !is || strings.HasPrefix(line, " ---") {
			continue
		}
		fields := strings.Split(strings.TrimSuffix(line, "|"), "|")
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		if x.columns == 0 {
			for i, field := range fields[1:] {
				if field != strconv.Itoa(i+1) {
					return nil, fmt.Errorf("column %d is headed %q", i+1, field)
				}
			}
			x.columns = len(fields) - 1
			continue
		}
		if err := x.addRow(fields, notes); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func (x *matrix) addRow(fields []string, notes map[string]bool) error {
	name := rowName.FindStringSubmatch(fields[0])
	if name == nil || len(fields) != x.columns+1 || name[1] != "" && name[1] != strconv.Itoa(len(x.rows)+1) {
		return fmt.Errorf("row %d is %q, with %d fields", len(x.rows)+1, fields[0], len(fields))
	}
	for i, field := range fields[1:] {
		cell := cellText.FindStringSubmatch(field)
		if cell == nil || cell[1] == "no" && cell[2] == "" || cell[2] != "" && !notes[cell[2]] {
			return fmt.Errorf("%s, column %d: %q", name[2], i+1, field)
		}
		x.cells[[2]int{len(x.rows), i}] = cell[1] == "yes"
	}
	x.rows = append(x.rows, name[2])
	return nil
}

func readMatrix(t *testing.T, heading string, rows []string) *matrix {
	t.Helper()
	x := assert.Must[*matrix](t)(parseMatrix(string(assert.Must[[]byte](t)(os.ReadFile(page))), heading))
	if !slices.Equal(x.rows, rows) || x.columns != len(parts()) {
		t.Fatalf("%s has rows %q and %d columns, and the tests have %q and %d", heading, x.rows, x.columns, rows, len(parts()))
	}
	return x
}

func partNames() (names []string) {
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return names
}

// TestMatrixCanFail: a table with a hole, a "no" without a reason, and a row out of turn are errors.
func TestMatrixCanFail(t *testing.T) {
	good := "\n## A\n\n| | 1 | 2 |\n| --- | --- | --- |\n| 1 `x` | yes | no a |\n| 2 `y` | no a | yes |\n\n- **a** why\n"
	x := assert.Must[*matrix](t)(parseMatrix(good, "A"))
	if !slices.Equal(x.rows, []string{"x", "y"}) || !x.cells[[2]int{0, 0}] || x.cells[[2]int{0, 1}] {
		t.Errorf("%+v", x)
	}
	for _, change := range [][2]string{{"| no a | yes |", "| no | yes |"}, {"| no a | yes |", "| no b | yes |"}, {"| no a | yes |", "| yes |"}, {"2 `y`", "3 `y`"}, {"| 1 | 2 |", "| 1 | 3 |"}, {"yes |", "maybe |"}, {"## A", "## B"}} {
		if _, err := parseMatrix(strings.Replace(good, change[0], change[1], 1), "A"); err == nil {
			t.Errorf("%q in place of %q is read", change[1], change[0])
		}
	}
}

// TestMatrix makes a repository of each two patterns, in both orders if the test is thorough, and otherwise in one of them, by turns.
func TestMatrix(t *testing.T) {
	all, registry := parts(), newRegistry(t)
	x := readMatrix(t, "Patterns with patterns", partNames())
	for i, a := range all {
		for j, b := range all {
			if x.cells[[2]int{i, j}] != x.cells[[2]int{j, i}] {
				t.Fatalf("the page is of two minds on %s and %s", a.name, b.name)
			}
			if i != j && (i < j) == ((i+j)%2 == 0) && x.cells[[2]int{i, j}] && !harness.Thorough() {
				continue // a refusal costs nothing
			}
			t.Run(a.name+"+"+b.name, func(t *testing.T) {
				t.Parallel()
				k := newKit(t, registry)
				both := k.makeParts(t, a, b)
				r, err := k.plain(both)
				if !x.cells[[2]int{i, j}] {
					k.mustRefuse(t, err, tables.ErrWiring, k.nameOfPattern(t, both[0]), k.nameOfPattern(t, both[1]))
					return
				}
				assert.Check(t, err)
				assert.Check(t, k.prepareFor(t, r, k.itemOf(1, "a", false)), k.carry(t.Context(), r, slices.ContainsFunc(patterns.HostOf(r).Patterns(), func(p *driver.Implementation) bool { return p.Name == "Clip" })))
				calls := int64(0)
				for _, p := range []part{a, b} {
					if p.name == "eventual.OnCommit" {
						calls += 3 // for an insert, a replacement and a delete
					}
				}
				if k.commits.Load() < calls {
					t.Errorf("%d calls of handlers, want %d", k.commits.Load(), calls)
				}
			})
		}
	}
}

// makeParts makes patterns for one entity. A layout is made first, since it decides how large the entity is.
func (k *kit) makeParts(t testing.TB, chosen ...part) []patterns.Pattern[item] {
	t.Helper()
	made, times := make([]patterns.Pattern[item], len(chosen)), map[string]int{}
	for _, layouts := range []bool{true, false} {
		for i, p := range chosen {
			if layouts == (p.name == "widentities.Layout") {
				made[i] = p.make(t, k, times[p.name])
				times[p.name]++
			}
		}
	}
	return made
}

// nameOfPattern is the name that a pattern has in a repository.
func (k *kit) nameOfPattern(t testing.TB, p patterns.Pattern[item]) string {
	t.Helper()
	r := assert.Must[*patterns.Repository[item]](t)(patterns.NewRepository(k.table, patterns.Schema[item]{Key: plainKey, Prefix: "item"}))
	implementation, _ := p.Attach(patterns.HostOf(r), nil) // whether it fits is another question
	return implementation.Name
}

// plain is a repository with the patterns.
func (k *kit) plain(both []patterns.Pattern[item]) (*patterns.Repository[item], error) {
	return k.plainOn(k.table, k.queue, both)
}

func (k *kit) plainOn(table *tables.Table, intents any, both []patterns.Pattern[item]) (*patterns.Repository[item], error) {
	r, err := patterns.NewRepository(harness.In(table, intents), patterns.Schema[item]{Key: plainKey, Prefix: "item"}, both...)
	if err == nil {
		k.keyOf = r.KeyOf
	}
	return r, err
}

// prepareFor inserts what an item belongs to.
func (k *kit) prepareFor(t testing.TB, r *patterns.Repository[item], v *item) error {
	sites, away := k.sitesOn(t, r.Table()), k.sitesOn(t, k.away)
	var errs []error
	for n := range 2 {
		for _, name := range []string{"beside", "counted", "home"} {
			errs = append(errs, sites.Insert(t.Context(), &site{Partition: r.KeyOf(v).Partition, Name: fmt.Sprint(name, n)}))
		}
	}
	return errors.Join(append(errs, away.Upsert(t.Context(), &site{Partition: "away", Name: "one"}))...)
}

// mustRefuse checks that an error names all, and that nothing was asked of the service.
func (k *kit) mustRefuse(t testing.TB, err, kind error, names ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("%v is not of the kind %v", err, kind)
	}
	for _, name := range names {
		if !strings.Contains(err.Error(), strconv.Quote(name)) && !strings.Contains(err.Error(), name+" ") && !strings.Contains(err.Error(), name+":") {
			t.Errorf("%q does not name %q", err, name)
		}
	}
	if n := k.calls.Count(); n != 0 {
		t.Errorf("%d requests before it was refused", n)
	}
}

// carry takes an item through its life.
func (k *kit) carry(ctx context.Context, r *patterns.Repository[item], streams bool) error {
	a, b := k.itemOf(1, "a", streams), k.itemOf(1, "b", streams)
	b.Entry = a.Entry
	if err := r.Insert(ctx, a); err != nil {
		return err
	}
	return k.onward(ctx, r, a, b, r.Replace, r.Delete)
}

// onward goes on from an item that is inserted.
func (k *kit) onward(ctx context.Context, r *patterns.Repository[item], a, b *item, replace, remove func(context.Context, *item) error) error {
	key := r.KeyOf(a)
	got, err := r.Get(ctx, key)
	if err = errors.Join(err, sameItem(got, a), clean(ctx, r), k.atRest(ctx, r)); err != nil {
		return err
	}
	if got, err = r.Get(ctx, key); err != nil { // which a job has written again
		return err
	}
	b.Meta = got.Meta
	if err := replace(ctx, b); err != nil {
		return err
	}
	got, err = r.Get(ctx, key)
	if err = errors.Join(err, sameItem(got, b), clean(ctx, r)); err != nil {
		return err
	}
	if err := remove(ctx, got); err != nil {
		return err
	}
	if _, err := r.Get(ctx, key); !errors.Is(err, tables.ErrNotFound) {
		return fmt.Errorf("it is there after its delete: %v", err)
	}
	return clean(ctx, r)
}

// clean is an error for each thing that Verify finds.
func clean[T any](ctx context.Context, r *patterns.Repository[T]) error {
	found, err := harness.Findings(ctx, r.Verify, &patterns.JobOptions{Lag: time.Millisecond})
	errs := []error{err}
	for _, f := range found {
		errs = append(errs, fmt.Errorf("found %v", f))
	}
	return errors.Join(errs...)
}

func sameItem(got, want *item) error {
	if got == nil {
		return errors.New("nothing was read")
	}
	x, y := fmt.Sprint(got.Entry, got.Site, got.ID, got.Name, got.Team, got.Number, got.Essay, got.Doc, got.Photo), fmt.Sprint(want.Entry, want.Site, want.ID, want.Name, want.Team, want.Number, want.Essay, want.Doc, want.Photo)
	if x != y {
		return fmt.Errorf("read %.300s, wrote %.300s", x, y)
	}
	for _, both := range [][2]interface{ Length() int64 }{{got.Clip, want.Clip}, {got.Song, want.Song}} {
		if both[0].Length() != both[1].Length() {
			return fmt.Errorf("a stream of %d bytes, wrote %d", both[0].Length(), both[1].Length())
		}
	}
	return nil
}
