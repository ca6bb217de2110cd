package logtail_test

import (
	"errors"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/logtail"
	"github.com/tablepatterns/tablepatterns/tables"
)

// ticksByHand counts the ticks since 0001-01-01 as .NET defines them, from the calendar alone and in numbers of any size.
func ticksByHand(t time.Time) *big.Int {
	t = t.UTC()
	leap := func(y int) bool { return y%4 == 0 && y%100 != 0 || y%400 == 0 }
	days := int64(0)
	for y := 1; y < t.Year(); y++ {
		days += 365
		if leap(y) {
			days++
		}
	}
	for m, length := range []int64{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31} {
		if m+1 == int(t.Month()) {
			break
		}
		days += length
		if m == 1 && leap(t.Year()) {
			days++
		}
	}
	days += int64(t.Day() - 1)
	seconds := days*86400 + int64(t.Hour())*3600 + int64(t.Minute())*60 + int64(t.Second())
	ticks := new(big.Int).Mul(big.NewInt(seconds), big.NewInt(10_000_000))
	return ticks.Add(ticks, big.NewInt(int64(t.Nanosecond()/100)))
}

// guidesFormula is string.Format("{0:D19}", DateTime.MaxValue.Ticks - t.Ticks).
func guidesFormula(t time.Time) string {
	maxValue, _ := new(big.Int).SetString("3155378975999999999", 10)
	return fmt.Sprintf("%019s", maxValue.Sub(maxValue, ticksByHand(t)))
}

// TestGoldenTicks: the digits are literal, and the same by a calculation that shares nothing with the code under test.
func TestGoldenTicks(t *testing.T) {
	for _, c := range []struct {
		at   time.Time
		want string
	}{
		{time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), "3155378975999999999"},
		{time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC), "2650467743999999999"},
		{time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC), "2534023007999999999"},
		{time.Date(1969, 12, 31, 23, 59, 59, 999_999_900, time.UTC), "2534023008000000000"},
		{time.Date(2014, 8, 22, 0, 50, 32, 0, time.UTC), "2519936321679999999"},
		{time.Date(2014, 8, 22, 2, 50, 32, 123_456_700, time.FixedZone("", 7200)), "2519936321678765432"},
		{time.Date(9999, 12, 31, 23, 59, 59, 999_999_900, time.UTC), "0000000000000000000"},
		{time.Now().Truncate(100), ""},
	} {
		want := guidesFormula(c.at)
		if c.want != "" && c.want != want {
			t.Fatalf("%v: the calculation by hand gives %s, the digits are %s", c.at, want, c.want)
		}
		got, err := logtail.InvertedTicks(c.at)
		if err != nil || got != want {
			t.Errorf("InvertedTicks(%v) = %s, %v, want %s", c.at, got, err, want)
		}
		back, err := logtail.ParseInvertedTicks(want)
		if err != nil || !back.Equal(c.at) || back.Location() != time.UTC {
			t.Errorf("ParseInvertedTicks(%s) = %v, %v, want %v", want, back, err, c.at)
		}
		assert.Equal(t, compoundkey.Join("", compoundkey.TimeDesc(c.at)), want, "TimeDesc(%v)", c.at)
	}
}

func TestTicksAreRefused(t *testing.T) {
	for _, at := range []time.Time{time.Date(0, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), day.Add(1)} {
		if got, err := logtail.InvertedTicks(at); !errors.Is(err, tables.ErrInvalid) {
			t.Errorf("InvertedTicks(%v) = %s, %v, want ErrInvalid", at, got, err)
		}
	}
	for _, text := range []string{"", "1", "251993632167999999", "25199363216799999990", "3155378976000000000", "-519936321679999999", "２519936321679999999"} {
		if got, err := logtail.ParseInvertedTicks(text); !errors.Is(err, tables.ErrInvalid) {
			t.Errorf("ParseInvertedTicks(%q) = %v, %v, want ErrInvalid", text, got, err)
		}
	}
}
