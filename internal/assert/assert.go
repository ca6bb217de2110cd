// Package assert has the comparisons that tests make most. Each marks the test as failed and lets it go on; the message has both
// values. Only tests import it.
package assert

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// T is the part of testing.TB that *rapid.T has too.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Fatal returns a T whose comparisons end the test where they fail.
func Fatal(t T) T { return fatal{t} }

type fatal struct{ T }

func (f fatal) Errorf(format string, args ...any) {
	f.Helper()
	f.Fatalf(format, args...)
}

// Equal fails unless got is want. What is compared may follow: a value, or a format with its arguments.
func Equal[V comparable](t T, got, want V, what ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%s%s, want %s", subject(what), text(got), text(want))
	}
}

// Slices fails unless got has the elements of want, in their order; a nil slice equals an empty one.
func Slices[V comparable](t T, got, want []V, what ...any) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s%s, want %s", subject(what), text(got), text(want))
	}
}

// NoDiff fails if there is a difference, as cmp.Diff tells it.
func NoDiff(t T, diff string, what ...any) {
	t.Helper()
	if diff != "" {
		t.Errorf("%s(-want +got)\n%s", subject(what), diff)
	}
}

// Len fails unless got, a slice or a map, has that many elements.
func Len(t T, got any, want int, what ...any) {
	t.Helper()
	if n := reflect.ValueOf(got).Len(); n != want {
		t.Errorf("%s%d elements, want %d: %s", subject(what), n, want, text(got))
	}
}

// Contains fails unless text has the part.
func Contains(t T, text, part string, what ...any) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%s%q lacks %q", subject(what), text, part)
	}
}

// ErrorIs fails unless err is of that kind.
func ErrorIs(t T, err, kind error, what ...any) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%serror is %v, want %v", subject(what), err, kind)
	}
}

// ErrorContains fails unless err is an error whose text has the part.
func ErrorContains(t T, err error, part string, what ...any) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("%serror is %v, want one that says %q", subject(what), err, part)
	}
}

// Error fails unless err is an error.
func Error(t T, err error, what ...any) {
	t.Helper()
	if err == nil {
		t.Errorf("%sno error", subject(what))
	}
}

// NoError fails if err is an error; see Check, which ends the test.
func NoError(t T, err error, what ...any) {
	t.Helper()
	if err != nil {
		t.Errorf("%s%v", subject(what), err)
	}
}

// Check ends the test if one of the errors is not nil.
func Check(t T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatalf("%v", err)
	}
}

// Must returns the value of a call that must not fail.
func Must[V any](t T) func(V, error) V {
	return func(v V, err error) V {
		t.Helper()
		if err != nil {
			t.Fatalf("%v", err)
		}
		return v
	}
}

// Err returns the error of a call with two results.
func Err[V any](_ V, err error) error { return err }

// subject formats what is compared.
func subject(what []any) string {
	switch len(what) {
	case 0:
		return ""
	case 1:
		return fmt.Sprint(what[0], ": ")
	}
	return fmt.Sprintf(what[0].(string), what[1:]...) + ": "
}

// text formats a value; strings are quoted.
func text(v any) string {
	switch v.(type) {
	case string, []string:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprintf("%+v", v)
}
