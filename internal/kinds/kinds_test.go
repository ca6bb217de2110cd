package kinds

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

func TestKinds(t *testing.T) {
	first, second := ErrUnknownOutcome, ErrNotFound
	path := &fs.PathError{Op: "read", Path: "x", Err: context.Canceled}
	cause := fmt.Errorf("%w: %w", second, path)
	h := Hide(cause)
	if errors.Is(h, second) || !errors.Is(h, context.Canceled) || h.Error() != cause.Error() {
		t.Errorf("%v: a hidden cause shows its kind, or hides more", h)
	}
	if found, ok := errors.AsType[*fs.PathError](h); !ok || found != path {
		t.Errorf("a hidden cause hides its type: %v", found)
	}
	for _, c := range []struct {
		err, kind error
		wrong     bool
	}{
		{nil, nil, false}, {path, nil, false}, {first, first, false}, {cause, second, false},
		{fmt.Errorf("%w: %w", second, first), first, true},
		{errors.Join(second, first), first, false},
		{errors.Join(second, fmt.Errorf("%w: %w", second, first)), first, true},
		{fmt.Errorf("%w: %w", second, Hide(first)), second, false},
	} {
		if kind, wrong := Of(c.err), Check(c.err) != nil; kind != c.kind || wrong != c.wrong {
			t.Errorf("%v: kind %v, wrong %v", c.err, kind, wrong)
		}
	}
}
