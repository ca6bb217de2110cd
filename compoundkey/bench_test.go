package compoundkey

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/internal/race"
)

var (
	benchTime = time.Date(2012, 12, 31, 0, 0, 0, 0, time.UTC)
	benchID   = uuid.MustParse("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
	joins     = []struct {
		name string
		most float64 // allocations
		join func() string
	}{
		{"Int", 1, func() string { return Join("empid", Int(223, 6)) }},
		{"TwoInts", 1, func() string { return Join("", Int(123, 6), Int(2012, 4)) }},
		{"Email", 1, func() string { return Join("email", String("jonesj@contoso.com")) }},
		{"Escapes", 1, func() string { return Join("name", String("O'Brien / Jones #1"), Int(223, 6)) }},
		{"TimeDescUUID", 1, func() string { return Join("log", TimeDesc(benchTime), UUID(benchID)) }},
		{"Long", 2, func() string { return Join("name", String(longText)) }},
	}
	longText = strings.Repeat("Grüße ", 60)
	longKey  = "path_" + strings.Repeat("a", 500)
)

// TestAllocations holds Join to one allocation for usual keys and two for long
// ones, and CheckKey and Compare to none.
func TestAllocations(t *testing.T) {
	if race.Enabled {
		t.Log("not counted: the race detector adds allocations")
		return
	}
	for _, j := range joins {
		if got := testing.AllocsPerRun(100, func() { sink = j.join() }); got > j.most {
			t.Errorf("%s: %v allocations, at most %v", j.name, got, j.most)
		}
	}
	span := Starting("p", Int(7, 2))
	key := "email_jonesj@contoso.com_Grüße"
	if got := testing.AllocsPerRun(100, func() {
		if CheckKey(key) != nil || Err(key) != nil || Compare(key, longKey) > 0 || span.Contains(key) {
			t.Error("wrong")
		}
	}); got != 0 {
		t.Errorf("checks: %v allocations", got)
	}
}

var sink string

func BenchmarkJoin(b *testing.B) {
	for _, j := range joins {
		b.Run(j.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sink = j.join()
			}
		})
	}
}

func BenchmarkCheckKey(b *testing.B) {
	for name, key := range map[string]string{"email": "email_jonesj@contoso.com", "long": longKey, "wide": "name_Grüße"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := CheckKey(key); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompare(b *testing.B) {
	x, y := longKey+"a", longKey+"b"
	b.ReportAllocs()
	for b.Loop() {
		if Compare(x, y) >= 0 {
			b.Fatal("order")
		}
	}
}

func BenchmarkParse(b *testing.B) {
	var s string
	var n int
	b.ReportAllocs()
	for b.Loop() {
		if err := Parse("lastname_Jones!_000223", "lastname", ToString(&s), ToInt(&n, 6)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStarting(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		sink = Starting("empid", Int(123, 6)).To()
	}
}
