package patterns_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// partitionsOf are the partitions of an office, which a job reads one by one.
var partitionsOf = []string{"D00", "D01", "D02", "D03", "D04", "D05"}

// damagedOffice has 60 entities in 6 partitions. In each, one lacks its row in the index by email.
func damagedOffice(t *testing.T) (d *desk, lacking []tables.Key) {
	t.Helper()
	d = newOffice(t, storagetest.Simulator(t, nil)).open(t)
	d.fill(t, 60, len(partitionsOf))
	for i := range partitionsOf {
		v := colleague(12+i, len(partitionsOf))
		deleteRaw(t, d.table, emailRow(v))
		lacking = append(lacking, staffKey(v))
	}
	return d, lacking
}

// unreadableOffice has 60 entities in 6 partitions. In each, two cannot be decoded.
func unreadableOffice(t *testing.T) (d *desk, lacking []tables.Key) {
	t.Helper()
	d = newOffice(t, storagetest.Simulator(t, nil)).open(t)
	d.fill(t, 60, len(partitionsOf))
	for i := range 2 * len(partitionsOf) {
		key := staffKey(colleague(12+i, len(partitionsOf)))
		row := readRaw(t, d.table, key)
		row["Age"] = "old"
		delete(row, "Age@odata.type")
		row.write(t, d.table)
		lacking = append(lacking, key)
	}
	return d, lacking
}

type anyJob = harness.RepositoryJob[tally.Report]

func verifyOf(d *desk) anyJob  { return harness.Tallied(d.repo.Verify) }
func repairOf(d *desk) anyJob  { return harness.Tallied(d.repo.Repair) }
func rebuildOf(d *desk) anyJob { return harness.Tallied(d.repo.Rebuild) }

// TestFoundEndsTheJob: an error of Found ends the job and is returned with a report. A run that resumes from the report finds
// the rest, and together they find everything.
func TestFoundEndsTheJob(t *testing.T) {
	enough := errors.New("enough")
	for _, tc := range []struct {
		name string
		open func(*testing.T) (*desk, []tables.Key)
		job  func(*desk) anyJob
	}{
		{"Verify", damagedOffice, verifyOf}, {"Repair", damagedOffice, repairOf}, {"Rebuild", unreadableOffice, rebuildOf},
		{"Verify of entities that cannot be read", unreadableOffice, verifyOf},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, lacking := tc.open(t)
			name, job := tc.name, tc.job(d)
			var found []tables.Key
			o := patterns.JobOptions{Partitions: partitionsOf, Found: func(f patterns.Finding) error {
				if f.Repaired != (name == "Repair") {
					t.Errorf("repaired %v: %v", f.Repaired, f)
				}
				if found = append(found, f.Entity); len(found) == 3 {
					return enough
				}
				return nil
			}}
			if name != "Rebuild" {
				o.Lag = 1
				o.SmallRuns(1, 1000) // each partition is compared by itself
			}
			report, err := job(t.Context(), &o)
			if !errors.Is(err, enough) || report.Resume == "" || report.Findings != 3 && name != "Rebuild" || report.PartitionsDone == 0 || report.PartitionsDone == len(partitionsOf) || len(found) != 3 {
				t.Fatalf("%d found: %+v, %v", len(found), report, err)
			}
			first := report
			o.Resume = report.Resume
			report, err = job(t.Context(), &o)
			if err != nil || report.Resume != "" || report.Read >= first.Read+60 || report.PartitionsDone != len(partitionsOf) {
				t.Fatalf("%+v after %+v, %v", report, first, err)
			}
			slices.SortFunc(found, func(a, b tables.Key) int { return strings.Compare(a.Partition+a.Row, b.Partition+b.Row) })
			slices.SortFunc(lacking, func(a, b tables.Key) int { return strings.Compare(a.Partition+a.Row, b.Partition+b.Row) })
			if name != "Repair" { // the page of the last finding is read again, and it is still there
				found = slices.Compact(found)
			}
			if !slices.Equal(found, lacking) {
				t.Errorf("found %v, want %v", found, lacking)
			}
		})
	}
}

// TestJobsReportProgress: every job calls Progress, whose reports go forward, and the last of them is that of the call.
func TestJobsReportProgress(t *testing.T) {
	d, _ := damagedOffice(t)
	for name, job := range map[string]anyJob{"Verify": verifyOf(d), "Repair": repairOf(d), "Rebuild": rebuildOf(d)} {
		var reports []tables.Progress
		o := patterns.JobOptions{Partitions: partitionsOf, Progress: func(r tables.Progress) { reports = append(reports, r) }}
		if name != "Rebuild" {
			o.Lag = 1
		}
		done, err := job(t.Context(), &o)
		if err != nil || len(reports) < len(partitionsOf) {
			t.Fatalf("%s: %d reports, %v", name, len(reports), err)
		}
		before := tables.Progress{}
		for i, r := range reports {
			if r.Read < before.Read || r.PartitionsDone < before.PartitionsDone || (r.Resume == "") != (i == len(reports)-1) {
				t.Errorf("%s: report %d of %d is %+v after %+v", name, i+1, len(reports), r, before)
			}
			before = r
		}
		var last tables.Progress
		tally.Into(done, &last)
		last.Elapsed, last.Estimate = before.Elapsed, before.Estimate // which the report has not
		if before != last || done.Read != 60 || done.Elapsed <= 0 {
			t.Errorf("%s: the last report is %+v, and the call returns %+v", name, before, done)
		}
	}
}

// TestJobsResumeAfterAnError: the report beside an error of the service has the position of the last page, also without Progress.
func TestJobsResumeAfterAnError(t *testing.T) {
	o := newOffice(t, storagetest.Simulator(t, nil))
	o.open(t).fill(t, 60, len(partitionsOf))
	for name, job := range map[string]func(*desk) anyJob{"Verify": verifyOf, "Repair": repairOf, "Rebuild": rebuildOf} {
		failing, _ := o.service.WithRetries(0).Faulty(storagetest.OnIndex(3, storagetest.Throttled)) // each partition is one page
		options := patterns.JobOptions{Partitions: partitionsOf, Patterns: []string{"email"}, Concurrency: 1}
		report, err := job(assert.Must[*desk](t)(o.start(failing)))(t.Context(), &options)
		if !errors.Is(err, tables.ErrUnavailable) || report.Resume == "" || report.PartitionsDone != 3 {
			t.Fatalf("%s: %+v, %v", name, report, err)
		}
		options.Resume = report.Resume
		rest, err := job(o.open(t))(t.Context(), &options)
		if err != nil || rest.Read != 60 || rest.Resume != "" {
			t.Errorf("%s: %+v after %+v, %v", name, rest, report, err)
		}
	}
}

// TestJobsRefuseWhatTheyDoNotUse: a field that a job does not use is ErrWiring, and the error names the field.
func TestJobsRefuseWhatTheyDoNotUse(t *testing.T) {
	d := newOffice(t, storagetest.Simulator(t, nil)).open(t)
	for _, tc := range []struct {
		job     anyJob
		field   string
		options patterns.JobOptions
	}{
		{verifyOf(d), "DryRun", patterns.JobOptions{DryRun: true}},
		{rebuildOf(d), "DryRun", patterns.JobOptions{DryRun: true}},
		{rebuildOf(d), "Lag", patterns.JobOptions{Lag: 1}},
		{rebuildOf(d), "Lag", patterns.JobOptions{Lag: -1}},
		{rebuildOf(d), "Rows", patterns.JobOptions{Rows: 1}},
	} {
		report, err := tc.job(t.Context(), &tc.options)
		harness.WantKind(t, err, tables.ErrWiring)
		if !strings.Contains(err.Error(), "JobOptions."+tc.field+" is") || report != (tally.Report{}) {
			t.Errorf("%s: %+v, %v", tc.field, report, err)
		}
	}
}

// TestJobPositionsStayInside: a token that somebody has edited is refused before any request, so that no job leaves the partitions of its
// options.
func TestJobPositionsStayInside(t *testing.T) {
	o := newOffice(t, storagetest.Simulator(t, nil))
	o.open(t).fill(t, 60, len(partitionsOf))
	mine := partitionsOf[1:4]
	for name, job := range map[string]func(*desk) anyJob{
		"Verify": verifyOf, "Repair": repairOf, "Rebuild": rebuildOf,
		"RemoveUnattached": func(d *desk) anyJob {
			return func(ctx context.Context, o *patterns.JobOptions) (tally.Report, error) {
				gone := intrapartition.NewUnique("gone", func(c *staff) string { return c.Email }, nil)
				return tally.Of[tally.Report](d.repo.RemoveUnattached(ctx, []patterns.Pattern[staff]{gone}, o))
			}
		},
	} {
		var token string
		options := patterns.JobOptions{Partitions: mine, Concurrency: 1, Progress: func(r tables.Progress) {
			if token == "" {
				token = r.Resume
			}
		}}
		counted, faults := o.service.Faulty(nil)
		d := assert.Must[*desk](t)(o.start(counted))
		if _, err := job(d)(t.Context(), &options); err != nil || token == "" {
			t.Fatalf("%s: no token, %v", name, err)
		}
		before := len(faults.Calls())
		for _, to := range []string{partitionsOf[0], partitionsOf[5], "*"} {
			options.Resume = harness.MovedPosition(t, token, to)
			_, err := job(d)(t.Context(), &options)
			if harness.WantKind(t, err, tables.ErrInvalid); len(faults.Calls()) > before {
				t.Errorf("%s, moved to %q: asked %v", name, to, faults.Calls()[before:])
			}
		}
	}
}
