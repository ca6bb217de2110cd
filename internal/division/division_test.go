package division_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/division"
	goroutines "github.com/tablepatterns/tablepatterns/internal/leaks"
)

func TestMain(m *testing.M) { goroutines.Main(m) }

var errEnds, errRefused = errors.New("ends"), errors.New("refused")

// TestRun: refused items are returned, and all others are written once.
func TestRun(t *testing.T) {
	for _, c := range []struct {
		name   string
		bad    []int
		hint   bool
		ends   int // the write that ends the run
		writes int
		alone  []int
	}{
		{"none refused", nil, true, 0, 1, nil},
		{"one refused, known", []int{5}, true, 0, 2, []int{5}},
		{"two refused, known", []int{0, 15}, true, 0, 3, []int{0, 15}},
		{"one refused, unknown", []int{5}, false, 0, 7, []int{4, 5}},
		{"all refused", []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, false, 0, 15, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
		{"ended", []int{5}, false, 2, 2, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			writes, written := 0, []int{}
			bad := func(i int) bool { return slices.Contains(c.bad, i) }
			d := division.Divided[int]{Write: func(items []int) error {
				if writes++; writes == c.ends {
					return errEnds
				}
				if slices.ContainsFunc(items, bad) {
					return errRefused
				}
				written = append(written, items...)
				return nil
			}, Ends: func(err error) bool { return errors.Is(err, errEnds) }}
			if c.hint {
				d.Refused = func(_ error, items []int) int { return slices.IndexFunc(items, bad) }
			}
			all := make([]int, 16)
			for i := range all {
				all[i] = i
			}
			alone, err := d.Run(slices.Clone(all))
			if (err != nil) != (c.ends > 0) || writes != c.writes || !slices.Equal(alone, c.alone) {
				t.Fatalf("%d writes, %v alone, %v", writes, alone, err)
			}
			if together := append(written, alone...); c.ends == 0 {
				slices.Sort(together)
				assert.Slices(assert.Fatal(t), together, all, "written and alone")
			}
		})
	}
}

// TestAlternately: items that have another form are written in it if they are refused in the first.
func TestAlternately(t *testing.T) {
	for _, c := range []struct {
		name   string
		wants  string // the forms that the service takes, '-' for none
		writes int
		err    bool
	}{
		{"all as expected", "aaaa", 1, false},
		{"all otherwise", "bbbb", 2, false},
		{"the last ones otherwise", "aabb", 2, false},
		{"one otherwise", "abaa", 3, false},
		{"one in no form", "bb-b", 3, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			items, writes := []byte("aaaa"), 0
			refused := func(error, []byte) int {
				for i := range items {
					if items[i] != c.wants[i] {
						return i
					}
				}
				return -1
			}
			err := division.Alternately(items, func([]byte) error {
				if writes++; refused(nil, items) >= 0 {
					return errRefused
				}
				return nil
			}, refused, func(b *byte) bool {
				*b = 'a' + 'b' - *b
				return true
			})
			if writes != c.writes || (err != nil) != c.err {
				t.Fatalf("%d writes, %v", writes, err)
			}
		})
	}
}
