package backup_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/backup"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestUnreadableRows: a row that cannot be copied as it is, is told and left out, and all others are copied, backed up, compared and restored.
func TestUnreadableRows(t *testing.T) {
	from := newTable(t, harness.AccountWith(t, harness.Damaged(`"Total":5555`, `"Total":{"x":5}`, `cut here`, `\ud83d`)))
	for i := range 12 {
		e := harness.Row("p", fmt.Sprintf("%02d", i), tables.Property{Name: "Total", Value: tables.Int32(int32(i))}, tables.Property{Name: "Name", Value: tables.String("Jones")})
		switch i {
		case 5:
			e.Set("Total", tables.Int32(5555))
		case 7:
			e.Set("Name", tables.String("cut here"))
		}
		harness.Check(t, from.Entities().Insert(t.Context(), e))
	}
	var found []string
	options := &backup.Options{Found: func(d backup.Difference) error {
		found = append(found, fmt.Sprint(d.Kind, " ", d.Key.Row, " ", d.Err != nil))
		return nil
	}}
	told := func(want ...string) {
		t.Helper()
		slices.Sort(found)
		if !slices.Equal(found, want) {
			t.Errorf("told %q, want %q", found, want)
		}
		found = nil
	}
	to := newTable(t, harness.Account(t))
	result, err := backup.Copy(t.Context(), from, to, options)
	if err != nil || result.Read != 10 || result.Written != 10 || result.Failed != 2 || result.Findings != 2 {
		t.Errorf("Copy: %+v, %v", result, err)
	}
	told("unreadable 05 true", "unreadable 07 true")
	report, err := backup.Compare(t.Context(), from, to, options)
	if err != nil || report.Findings != 2 {
		t.Errorf("Compare: %+v, %v", report, err)
	}
	told("unreadable 05 true", "unreadable 07 true")
	_, err = backup.Compare(t.Context(), to, from, options)
	harness.Check(t, err)
	told("unreadable 05 true", "unreadable 07 true")
	v := opened(t)
	saved, err := v.Backup(t.Context(), "monday", []*tables.Table{from}, options)
	if err != nil || saved.Failed != 2 || saved.Read != 10 {
		t.Errorf("Backup: %+v, %v", saved, err)
	}
	told("unreadable 05 true", "unreadable 07 true")
	restored := newTable(t, harness.Account(t))
	_, err = v.Restore(t.Context(), "monday", []backup.Target{{Name: from.Name(), To: restored}}, options)
	harness.Check(t, err)
	told()
	if report, err := backup.Compare(t.Context(), to, restored, options); err != nil || report.Findings != 0 || report.Read != 10 {
		t.Errorf("%+v, %v", report, err)
	}
}
