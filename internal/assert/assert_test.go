package assert

import (
	"fmt"
	"io"
	"slices"
	"testing"
)

// told is a T that keeps what fails.
type told struct {
	T
	errors, fatal []string
}

func (*told) Helper() {}

func (o *told) Errorf(format string, args ...any) {
	o.errors = append(o.errors, fmt.Sprintf(format, args...))
}

func (o *told) Fatalf(format string, args ...any) {
	o.fatal = append(o.fatal, fmt.Sprintf(format, args...))
}

// TestComparisons: each comparison is silent about what holds, and says both values of what does not.
func TestComparisons(t *testing.T) {
	wrapped := fmt.Errorf("read: %w", io.EOF)
	for want, compare := range map[string]func(t T, holds bool){
		`rows of "a": 2, want 1`:  func(t T, holds bool) { Equal(t, map[bool]int{true: 1, false: 2}[holds], 1, "rows of %q", "a") },
		`name: "", want "x"`:      func(t T, holds bool) { Equal(t, map[bool]string{true: "x"}[holds], "x", "name") },
		`["a"], want []`:          func(t T, holds bool) { Slices(t, map[bool][]string{false: {"a"}}[holds], []string{}) },
		"3: (-want +got)\n-x":     func(t T, holds bool) { NoDiff(t, map[bool]string{false: "-x"}[holds], 3) },
		`1 elements, want 0: [7]`: func(t T, holds bool) { Len(t, map[bool][]int{false: {7}}[holds], 0) },
		`log: "ab" lacks "c"`:     func(t T, holds bool) { Contains(t, map[bool]string{true: "abc", false: "ab"}[holds], "c", "log") },
		`error is <nil>, want EOF`: func(t T, holds bool) {
			ErrorIs(t, map[bool]error{true: Err(0, wrapped)}[holds], io.EOF)
		},
	} {
		o := &told{}
		compare(o, true)
		if len(o.errors)+len(o.fatal) > 0 {
			t.Errorf("%s: fails although it holds: %q %q", want, o.errors, o.fatal)
		}
		compare(o, false)
		compare(Fatal(o), false)
		if !slices.Equal(o.errors, []string{want}) || !slices.Equal(o.fatal, o.errors) {
			t.Errorf("%q and %q, want %q", o.errors, o.fatal, want)
		}
	}
	o := &told{}
	Check(o, nil, nil)
	Check(o, nil, io.EOF)
	if !slices.Equal(o.fatal, []string{"EOF"}) {
		t.Errorf("Check: %q", o.fatal)
	}
}
