package dataseries

import (
	"context"
	"errors"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/tables"
)

// TestPersist plays the outcomes of attempts, each on its base, and looks at when the change is tried again.
func TestPersist(t *testing.T) {
	type try struct {
		base azcore.ETag
		err  error
	}
	kind := func(k error) error { return &tables.Error{Kind: k} }
	lost, conflict, exists := kind(tables.ErrUnknownOutcome), kind(tables.ErrConflict), kind(tables.ErrExists)
	for name, c := range map[string]struct {
		once  bool
		tries []try
		want  error // nil is success
	}{
		"at once":                       {false, []try{{"1", nil}}, nil},
		"a concurrent writer":           {false, []try{{"1", conflict}, {"2", nil}}, nil},
		"a concurrent writer's first":   {false, []try{{"", exists}, {"1", nil}}, nil},
		"lost, and nothing has changed": {false, []try{{"1", lost}, {"1", nil}}, nil},
		"lost twice":                    {false, []try{{"1", lost}, {"1", lost}, {"1", nil}}, nil},
		"lost, and then refused":        {false, []try{{"1", lost}, {"1", conflict}}, tables.ErrUnknownOutcome},
		"lost, and the first refused":   {false, []try{{"", lost}, {"", exists}}, tables.ErrUnknownOutcome},
		"lost, and denied":              {false, []try{{"1", lost}, {"1", kind(tables.ErrDenied)}}, tables.ErrUnknownOutcome},
		"denied":                        {false, []try{{"1", kind(tables.ErrDenied)}}, tables.ErrDenied},
		"too often":                     {false, []try{{"1", conflict}, {"2", conflict}, {"", exists}}, tables.ErrConflict},
		"once, lost, and refused":       {true, []try{{"1", lost}, {"1", conflict}, {"2", nil}}, nil},
		"once, lost, and changed":       {true, []try{{"1", lost}, {"2", nil}}, nil},
		"once, lost, and too often":     {true, []try{{"1", lost}, {"1", conflict}, {"2", conflict}}, tables.ErrUnknownOutcome},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			err := persist(t.Context(), 3, c.once, func(context.Context) (step, error) {
				if n == len(c.tries) {
					t.Fatal("it is planned once more")
				}
				try := c.tries[n]
				return step{try.base, func(context.Context) error { n++; return try.err }}, nil
			})
			if n != len(c.tries) || (err == nil) != (c.want == nil) || !errors.Is(err, c.want) || c.want == tables.ErrConflict && errors.Is(err, tables.ErrExists) {
				t.Errorf("%d attempts, %v", n, err)
			}
		})
	}
}

// TestPersistStops: a base that has changed since a lost answer is the end, without a write.
func TestPersistStops(t *testing.T) {
	bases, writes := []azcore.ETag{"1", "2"}, 0
	err := persist(t.Context(), 9, false, func(context.Context) (step, error) {
		base := bases[writes]
		return step{base, func(context.Context) error {
			writes++
			return &tables.Error{Kind: tables.ErrUnknownOutcome}
		}}, nil
	})
	if writes != 1 || !errors.Is(err, tables.ErrUnknownOutcome) {
		t.Errorf("%d writes, %v", writes, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = persist(ctx, 9, false, func(context.Context) (step, error) {
		return step{"1", func(context.Context) error {
			cancel()
			return &tables.Error{Kind: tables.ErrConflict}
		}}, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
