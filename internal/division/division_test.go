package division_test

import (
	"errors"
	"slices"
	"testing"

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
				if !slices.Equal(together, all) {
					t.Fatalf("written and alone: %v", together)
				}
			}
		})
	}
}
