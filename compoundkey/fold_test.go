package compoundkey_test

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
)

func TestFold(t *testing.T) {
	for _, same := range [][]string{
		{"JonesJ@Contoso.com", "jonesj@contoso.COM"},
		{"Straße", "STRASSE", "strasse"},
		{"ΣΊΣΥΦΟΣ", "Σίσυφος", "σίσυφοσ"},
		{"", ""},
		{"Ǆ", "ǆ", "ǅ"},
	} {
		for _, s := range same[1:] {
			a, b := compoundkey.Join("email", compoundkey.Fold(same[0])), compoundkey.Join("email", compoundkey.Fold(s))
			if a != b || compoundkey.Err(a) != nil {
				t.Errorf("%q and %q have the keys %q and %q", same[0], s, a, b)
			}
		}
	}
	if compoundkey.Join("", compoundkey.Fold("I")) != "i" || compoundkey.Join("", compoundkey.Fold("ı")) == "i" {
		t.Error("folding depends on a language")
	}
	if !compoundkey.Prefix(compoundkey.FoldCase("JON")).Contains(compoundkey.Join("", compoundkey.Fold("Jones"))) {
		t.Error("a folded prefix does not find a folded key")
	}
}
