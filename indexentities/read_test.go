package indexentities_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// staff opens a world with employees 0 to n-1, all named Jones.
func staff(t *testing.T, w *world, n int) *process {
	t.Helper()
	s := storagetest.Open(t)
	w.open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	for id := range n {
		if err := p.repo.Insert(t.Context(), with(id, "Jones")); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// TestPages: pages of keys, over changes of the list, and tokens that belong elsewhere.
func TestPages(t *testing.T) {
	for _, o := range options {
		t.Run(string(o), func(t *testing.T) {
			ctx, jones := context.Background(), compoundkey.String("Jones")
			p := staff(t, &world{option: o}, 7)
			var ids, sizes []int
			token := ""
			for {
				page, err := p.index.In("Sales").Page(ctx, jones, 3, token)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range page.Items {
					ids = append(ids, e.ID)
				}
				sizes = append(sizes, len(page.Items))
				if token = page.Next; token == "" {
					break
				}
				if len(sizes) == 1 { // between the pages: the last key of the first one goes, one behind it comes
					if err := p.repo.DeleteUnconditional(ctx, at(2)); err != nil {
						t.Fatal(err)
					}
					if err := p.repo.Insert(ctx, with(9, "Jones")); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := p.index.In("Sales").Page(ctx, compoundkey.String("Smith"), 3, token); !errors.Is(err, tables.ErrInvalid) {
					t.Errorf("another value's token: %v", err)
				}
			}
			if !slices.Equal(ids, []int{0, 1, 2, 3, 4, 5, 6, 9}) || !slices.Equal(sizes, []int{3, 3, 2}) {
				t.Errorf("ids %d in pages of %d", ids, sizes)
			}
			for _, token := range []string{"x", "e30", "!"} {
				if _, err := p.index.In("Sales").Page(ctx, jones, 3, token); !errors.Is(err, tables.ErrInvalid) {
					t.Errorf("token %q: %v", token, err)
				}
			}
			if page, err := p.index.In("Sales").Page(ctx, compoundkey.String("Smith"), 3, ""); err != nil || len(page.Items) != 0 || page.Next != "" {
				t.Errorf("nobody: %+v, %v", page, err)
			}
		})
	}
}

// TestValues: which values there are, within spans, and how often.
func TestValues(t *testing.T) {
	for _, w := range []*world{{option: inPartition}, {option: outside}, {option: outside, global: true}} {
		t.Run(w.String(), func(t *testing.T) {
			ctx, s := context.Background(), storagetest.Open(t)
			w.open(t, s)
			p := assert.Must[*process](t)(w.start(s))
			for i, name := range []string{"Abbott", "Jones", "Jones", "Kwok", "Jo", "Jones Smith"} {
				if err := p.repo.Insert(ctx, with(i, name)); err != nil {
					t.Fatal(err)
				}
			}
			type span = compoundkey.Interval[compoundkey.Part]
			for what, c := range map[string]struct {
				span []span
				want string
			}{
				"all":     {nil, "[Abbott:1 Jo:1 Jones:2 Jones Smith:1 Kwok:1]"},
				"prefix":  {[]span{compoundkey.Prefix(compoundkey.String("Jo"))}, "[Jo:1 Jones:2 Jones Smith:1]"},
				"exactly": {[]span{compoundkey.Exactly(compoundkey.String("Jones"))}, "[Jones:2]"},
				"below":   {[]span{compoundkey.Below(compoundkey.String("Jones"))}, "[Abbott:1 Jo:1]"},
			} {
				var got []string
				for v, err := range w.sales(p).Values(ctx, c.span...) {
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, fmt.Sprintf("%s:%d", assert.Must[string](t)(v.Text()), v.Count))
				}
				if fmt.Sprint(got) != c.want {
					t.Errorf("%s: %s, want %s", what, got, c.want)
				}
			}
			for v, err := range w.sales(p).Values(ctx) { // a caller may stop
				if text, textErr := v.Text(); err != nil || textErr != nil || text != "Abbott" {
					t.Errorf("the first value: %q, %v", text, errors.Join(err, textErr))
				}
				break
			}
			for _, err := range w.sales(p).Values(ctx, compoundkey.Prefix(compoundkey.String("\xff"))) {
				if !errors.Is(err, tables.ErrInvalid) {
					t.Errorf("a span that is none: %v", err)
				}
			}
		})
	}
}
