package odata

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

func TestUnimplemented(t *testing.T) {
	for text, want := range map[string]bool{
		"startswith(Name,'a')": true, "not endswith(Name,'a')": true, "A eq 1 and substringof('a',Name)": true, "tolower(Name) eq 'a'": true, "year(At) eq 2026": true,
		"Age add 1 eq 6": true, "Age sub 1 gt 2": true, "1 mul Age eq 6": true, "(Age) div 2 eq 3": true, "Age mod 2 eq 0": true, "6 eq Age add 1": true,
		"": false, "A eq": false, "A eq 'startswith(x)'": false, "A eq 1 and(B eq )": false, "not(A eq )": false, "A eq 'x": false, "A EQ 1": false, "((": false,
		"add eq 1": false, "A eq add": false, "A eq 1 and div ge": false, "A add": true,
	} {
		assert.Equal(t, Unimplemented(text), want, "%q", text)
	}
	// What the library itself takes is no such filter, whatever names its properties have.
	for _, text := range []string{"add eq 1", "mod", "not add", "A eq 1 and (sub or B)"} {
		if _, err := Parse(text); err != nil || Unimplemented(text) {
			t.Errorf("%q: %v, unimplemented %v", text, err, Unimplemented(text))
		}
	}
}
