package patterns

import (
	"context"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/readiness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// audit implements Repository.Verify and Repository.Repair; op is the name of one of them.
func audit(ctx context.Context, r *engine.Engine, op string, o *JobOptions) (tables.Report, error) {
	v, err := newVerifier(r, op, o)
	if err == nil {
		err = v.begin()
	}
	if err != nil {
		return tables.Report{}, err
	}
	ctx, span := tables.TelemetryOf(pass, r.Table.Account()).Begin(ctx, telemetry.Tables, op, r.Table.Name())
	err = telemetry.ErrPanicked // until the callbacks have returned
	defer func() { span.End(err) }()
	err = v.run(pace.With(ctx, v.options.RowsPerSecond))
	report := v.report()
	if err == nil {
		report.Resume = ""
		if report.Read == 0 && v.scope == nil {
			report.Unmatched = readiness.NameUnmatched(ctx, r)
		}
	}
	return report, err
}

// hand repairs findings if the job is Repair, and passes them to the caller.
func (v *verifier) hand(ctx context.Context, findings []*finding) error {
	var err error
	if v.op == opRepair {
		err = v.repairAll(ctx, findings)
	}
	if told := v.tell(findings, &v.state.Findings); err == nil {
		err = told
	}
	return err
}

// tell passes findings to the caller, and counts them.
func (v *verifier) tell(findings []*finding, given *int64) error {
	for _, f := range findings {
		if *given++; v.options.Found == nil {
			continue
		}
		if err := v.options.Found(f.Finding); err != nil {
			return err
		}
	}
	return nil
}

// progressed makes the run resumable from its current position and calls the caller's Progress. Within the
// list of an auditor (a pattern with an Audit) it keeps the earlier position.
func (v *verifier) progressed() {
	if !v.listing {
		v.checkpoint.set(&v.state)
	}
	if v.options.Progress != nil {
		v.options.Progress(v.report())
	}
}

// report returns the counts of the run, and the token of its last checkpoint.
func (v *verifier) report() tables.Report {
	s := &v.state
	p := tables.Report{Read: s.Entities, Rows: s.Rows, Candidates: s.Candidates, Findings: s.Findings, Repaired: s.Repaired,
		Elapsed: time.Since(v.began), Resume: v.options.Resume}
	switch {
	case v.checkpoint.Phase == phaseDone:
		p.Resume = ""
	case v.checkpoint.Version != 0:
		p.Resume = v.checkpoint.text()
	}
	if v.scope != nil {
		p.PartitionsDone = s.Scan.Done()
		if s.Phase > phaseEntities {
			p.PartitionsDone = len(v.options.Partitions)
		}
	}
	p.Estimate = v.estimate(p.PartitionsDone)
	if left := p.Estimate - s.Rows; left > 0 && v.rowsHere > 0 {
		p.ETA = time.Duration(float64(time.Since(v.began)) * float64(left) / float64(v.rowsHere))
	}
	return p
}

// estimate returns the number of rows to read, from an earlier run or extrapolated from the partitions done;
// 0 if unknown.
func (v *verifier) estimate(done int) int64 {
	switch {
	case v.options.Rows > 0:
		return max(v.options.Rows, v.state.Rows)
	case v.far() || done == 0:
		return 0 // the number of rows in the outside tables is unknown
	}
	return v.state.Rows * int64(len(v.options.Partitions)) / int64(done)
}
