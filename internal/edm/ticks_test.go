package edm

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

const rfc3339Ticks = "2006-01-02T15:04:05.9999999Z"

func TestTicksGolden(t *testing.T) {
	for ticks, want := range map[int64]time.Time{
		0:                  time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC),
		minDateTimeTicks:   time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC),
		unixEpochTicks:     time.Unix(0, 0).UTC(),
		unixEpochTicks - 1: time.Unix(0, -100).UTC(),
		635442654321234567: time.Date(2014, 8, 22, 0, 50, 32, 123456700, time.UTC),
		maxDateTimeTicks:   time.Date(9999, 12, 31, 23, 59, 59, 999999900, time.UTC),
	} {
		if got, err := Ticks(want); err != nil || got != ticks {
			t.Errorf("%v: %d, %v; want %d", want, got, err, ticks)
		}
		assert.Equal(t, TimeOfTicks(ticks), want, "%d", ticks)
	}
}

func TestTicksRefuses(t *testing.T) {
	for _, at := range []time.Time{
		time.Date(2014, 1, 1, 0, 0, 0, 1, time.UTC),
		time.Date(2014, 1, 1, 0, 0, 0, 999999999, time.UTC),
		time.Date(0, 12, 31, 23, 59, 59, 0, time.UTC),
		time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -3600)),
		time.Date(1, 1, 1, 0, 0, 0, 0, time.FixedZone("", 3600)),
	} {
		if got, err := Ticks(at); err == nil {
			t.Errorf("%v: %d", at, got)
		}
		assert.Error(t, assert.Err(DateTime(at)), "%v is stored", at)
	}
	assert.Error(t, assert.Err(DateTime(time.Date(1600, 12, 31, 23, 59, 59, 999999900, time.UTC))), "1600 is stored")
	assert.Error(t, assert.Err(DateTime(time.Time{})), "the zero time is stored")
}

// An instant is the same in every zone.
func TestTicksZone(t *testing.T) {
	at := time.Date(2014, 8, 22, 12, 0, 0, 0, time.FixedZone("", 7200))
	v := mustDateTime(t, at)
	assert.Equal(t, string(AppendValue(nil, v)), `"2014-08-22T10:00:00Z"`)
	if back, _ := v.Time(); !back.Equal(at) || back.Location() != time.UTC {
		t.Error(back)
	}
}

func TestTicksAgainstTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkTicks(t, rapid.Int64Range(0, maxDateTimeTicks).Draw(t, "ticks")) })
	// Every day of four centuries twice over, each at another time of day.
	for day := int64(0); day < 366*801; day++ {
		checkTicks(t, (day*86400+day%86400)*ticksPerSecond+day)
	}
	checkTicks(t, maxDateTimeTicks)
}

func FuzzTicks(f *testing.F) {
	for _, ticks := range []int64{0, minDateTimeTicks, unixEpochTicks, unixEpochTicks - 1, maxDateTimeTicks} {
		f.Add(ticks)
	}
	f.Fuzz(func(t *testing.T, ticks int64) {
		if ticks >= 0 && ticks <= maxDateTimeTicks {
			checkTicks(t, ticks)
		}
	})
}

// checkTicks holds ticks and both directions of their text against package time.
func checkTicks(t rapid.TB, ticks int64) {
	t.Helper()
	at := TimeOfTicks(ticks)
	if back, err := Ticks(at); err != nil || back != ticks {
		t.Fatalf("%d: back as %d, %v", ticks, back, err)
	}
	text := AppendDateTime(nil, ticks)
	if want := at.Format(rfc3339Ticks); string(text) != want {
		t.Fatalf("%d: %s, want %s", ticks, text, want)
	}
	if parsed, err := time.Parse(time.RFC3339Nano, string(text)); err != nil || !parsed.Equal(at) {
		t.Fatalf("%s: %v, %v", text, parsed, err)
	}
	if back, ok := parseCommonDateTime(text); !ok || back != ticks {
		t.Fatalf("%s: %d, %v; want %d", text, back, ok, ticks)
	}
}

// The service may also write a fraction of any length, zeros at its end.
func TestParseFractions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.IntRange(0, 7).Draw(t, "length")
		at := TimeOfTicks(rapid.Int64Range(minDateTimeTicks, maxDateTimeTicks).Draw(t, "ticks"))
		layout := "2006-01-02T15:04:05Z"
		if length > 0 {
			layout = "2006-01-02T15:04:05." + strings.Repeat("0", length) + "Z"
		}
		text := at.Format(layout)
		checkParse(t, text)
		if _, ok := parseCommonDateTime([]byte(text)); !ok {
			t.Fatalf("%s is not common", text)
		}
	})
}

func FuzzParseDateTime(f *testing.F) {
	for _, text := range []string{
		"2014-08-22T00:50:32.1234567Z", "1601-01-01T00:00:00Z", "9999-12-31T23:59:59.9999999Z", "2000-02-29T00:00:00Z", "1900-02-29T00:00:00Z",
		"2014-08-22T00:50:32.Z", "2014-08-22T00:50:32,5Z", "2014-08-22T00:50:32.12345678Z", "2014-08-22T00:50:32+02:00", "0000-01-01T00:00:00Z",
		"2014-08-22T00:50:32", "0001-01-01T00:00:00", "2014-00-22T00:50:32Z", "2014-08-00T00:50:32Z", "2014-08-22T24:00:00Z", "2014-08-22T23:59:60Z", "2014-08-22T23:59:59.0000000000Z",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { checkParse(t, text) })
}

// checkParse: the reader takes what time.Parse takes, with an offset or without, as the same instant, and nothing else.
func checkParse(t rapid.TB, text string) {
	t.Helper()
	got, ok := parseCommonDateTime([]byte(text))
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		at, err = time.Parse("2006-01-02T15:04:05.999999999", text) // without an offset, it is UTC
	}
	var want int64
	if err == nil {
		want, err = Ticks(at)
	}
	if ok && (err != nil || got != want) {
		t.Fatalf("%s: %d by hand; %d, %v by package time", text, got, want, err)
	}
	if all, allErr := parseDateTime([]byte(text)); (allErr == nil) != (err == nil) || err == nil && all != want {
		t.Fatalf("%s: %d, %v; want %d, %v", text, all, allErr, want, err)
	}
}
