package highvolumedelete_test

import (
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/highvolumedelete"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// TestMidnightsThatAreNot: clocks that are changed at midnight have days without one, with two, and of 23 or 25 hours. A day
// begins at the first moment that shows its date, whichever of the two offsets a calendar would choose.
func TestMidnightsThatAreNot(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	for _, place := range []string{"America/Sao_Paulo", "Asia/Beirut", "Asia/Amman", "America/Havana", "America/St_Johns", "Pacific/Apia",
		"Africa/Cairo", "Atlantic/Azores", "Europe/Berlin"} {
		schema := schemaOf("Logins", func() time.Time { return time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC) })
		schema.Location = location(t, place)
		logins := mustStart(t, s, schema)
		name := func(at time.Time) string { return assert.Must[string](t)(logins.TableName(at)) }
		changes := 0
		for at := time.Date(2005, 1, 1, 0, 0, 0, 0, schema.Location); ; changes++ {
			if _, at = at.ZoneBounds(); at.IsZero() || at.Year() > 2029 {
				break
			}
			for _, in := range []time.Time{at.Add(-1), at, at.Add(time.Hour), at.AddDate(0, 0, 1)} {
				report := assert.Must[highvolumedelete.DropReport](t)(logins.Drop(t.Context(), in, &highvolumedelete.DropOptions{DryRun: true}))
				assert.Equal(t, name(report.Mark), name(in), "%s: the day of %v begins at %v, of", place, in, report.Mark)
				for back := time.Duration(1); back < 3*time.Hour; back += time.Minute {
					if before := report.Mark.Add(-back); name(before) >= name(in) {
						t.Errorf("%s: the day of %v begins at %v, and %v shows %s", place, in, report.Mark, before, name(before))
						break
					}
				}
			}
		}
		if changes == 0 {
			t.Errorf("%s has no changes", place)
		}
	}
}

// TestLateAtAMidnightThatIsNot: the night in which São Paulo's clock went from 23:59:59 to 01:00, a second late is a second late.
func TestLateAtAMidnightThatIsNot(t *testing.T) {
	s, now := storagetest.Simulator(t, nil), &clock{}
	schema := schemaOf("Logins", now.now)
	schema.Location, schema.Late = location(t, "America/Sao_Paulo"), time.Minute
	logins := mustStart(t, s, schema)
	change := time.Date(2018, 11, 4, 3, 0, 0, 0, time.UTC)
	now.at = change.Add(time.Minute)
	insert(t, logins, "june", change.Add(-time.Second))
	now.at = change.Add(time.Minute + 1)
	assert.ErrorIs(t, logins.Insert(t.Context(), &login{User: "june", At: change.Add(-2 * time.Second)}), highvolumedelete.ErrLate, "later than Late")
}
