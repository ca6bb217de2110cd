package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"go.uber.org/goleak"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// slowPolicy answers each request after a time, and counts them.
type slowPolicy struct {
	wait time.Duration
	made atomic.Int64
}

func (p *slowPolicy) Do(req *policy.Request) (*http.Response, error) {
	p.made.Add(1)
	time.Sleep(p.wait)
	return req.Next()
}

// placed is the n-th of a staff in 100 departments; skewed has 90 % of them in one.
func placed(n, all int, skewed bool) *staff {
	v := colleague(n, 1)
	if v.Department = fmt.Sprintf("D%02d", n*100/all); skewed && n%10 != 0 {
		v.Department = "D50"
	}
	return v
}

// scanned is an office with a staff of n, whose patterns but those named are left out.
func scanned(t testing.TB, n int, skewed bool, with ...string) *office {
	t.Helper()
	o := newOffice(t, storagetest.Simulator(t, nil))
	o.without = slices.DeleteFunc([]string{"email", "name", "mail", "badge", "roster", "marks"}, func(name string) bool { return slices.Contains(with, name) })
	report, err := o.open(t).repo.BulkNonAtomic(t.Context(), func(yield func(*staff, error) bool) {
		for i := range n {
			if !yield(placed(i, n, skewed), nil) {
				return
			}
		}
	}, nil)
	if err != nil || report.Written != int64(n) {
		t.Fatal(report, err)
	}
	return o
}

// with opens the office with one more pattern.
func (o *office) with(pattern string) *office {
	more := *o
	more.without = slices.DeleteFunc(slices.Clone(o.without), func(name string) bool { return name == pattern })
	return &more
}

// TestScanChains: with eight readers the longest chain of dependent requests of Rebuild and Verify is at most a sixth of one reader's, in
// an even table and in one with 90 % of its rows in one partition.
func TestScanChains(t *testing.T) {
	n, size, worlds := 2400, 5, []bool{true} // with fewer pages, the few requests at the end of each division decide
	if harness.Thorough() {
		n, size, worlds = 20_000, 20, []bool{true, false}
	}
	for _, skewed := range worlds {
		synctest.Test(t, func(t *testing.T) {
			o := scanned(t, n, skewed)
			slow := &slowPolicy{wait: time.Second}
			chain := func(name string, o *office, job func(*desk) anyJob) {
				d := o.open(t, slow)
				var took [2]time.Duration
				var made [2]int64
				for i, readers := range []int{1, 8} {
					slow.made.Store(0)
					began := time.Now()
					options := patterns.JobOptions{Concurrency: readers}
					options.SmallPages(size)
					report, err := job(d)(t.Context(), &options)
					if err != nil || report.Read != int64(n) || report.Findings > 0 || report.Resume != "" {
						t.Fatalf("%s, skewed %v: %+v, %v", name, skewed, report, err)
					}
					took[i], made[i] = time.Since(began), slow.made.Load()
				}
				t.Logf("%s, skewed %v: %d requests and %d, a chain of %v and %v, 1/%.1f", name, skewed, made[0], made[1], took[0], took[1], float64(took[0])/float64(took[1]))
				if 6*took[1] > took[0] || 5*made[1] > 6*made[0] {
					t.Errorf("%s, skewed %v: %d requests and %d, a chain of %v and %v", name, skewed, made[0], made[1], took[0], took[1])
				}
			}
			chain("Verify", o, verifyOf)
			chain("Rebuild of nothing", o, rebuildOf)
		})
	}
}

// TestRebuildsTogether: pages are filled at the same time, within the limit of requests.
func TestRebuildsTogether(t *testing.T) {
	const n = 400
	var took []time.Duration
	synctest.Test(t, func(t *testing.T) {
		for _, readers := range []int{1, 8} {
			o := scanned(t, n, false).with("email")
			d := o.open(t, &slowPolicy{wait: time.Second})
			options := patterns.JobOptions{Concurrency: readers}
			options.SmallPages(4)
			began := time.Now()
			report, err := d.repo.Rebuild(t.Context(), &options)
			if err != nil || report.Written != n || report.Read != n {
				t.Fatal(report, err)
			}
			took = append(took, time.Since(began))
			assert.Check(t, harness.Clean(t.Context(), o.open(t).repo.Verify, nil))
		}
	})
	t.Logf("%v with one reader, %v with 8", took[0], took[1])
	if took[0] < 5*took[1] {
		t.Errorf("%v with one reader, %v with 8", took[0], took[1])
	}
}

// TestRebuildResumesAnywhere: from each token that a run with several readers gives, another one reads the rest, and no entity is counted
// twice or left out.
func TestRebuildResumesAnywhere(t *testing.T) {
	const n = 200
	o := scanned(t, n, true)
	d := o.open(t)
	for _, partitions := range [][]string{nil, {"D00", "D10", "D50", "D99"}} {
		var reports []tables.Progress
		options := patterns.JobOptions{Partitions: partitions, Concurrency: 4, Progress: func(r tables.Progress) { reports = append(reports, r) }}
		options.SmallPages(7)
		full, err := d.repo.Rebuild(t.Context(), &options)
		assert.Check(t, err)
		for i, r := range reports[:len(reports)-1] {
			rest := patterns.JobOptions{Partitions: partitions, Concurrency: 1 + i%5, Resume: r.Resume}
			rest.SmallPages(7)
			last, err := d.repo.Rebuild(t.Context(), &rest)
			if err != nil || last.Read != full.Read || last.Unchanged != full.Unchanged || r.Read >= full.Read && i < len(reports)/2 {
				t.Errorf("from token %d of %d: %+v after %+v, %v", i, len(reports), last, r, err)
			}
		}
		if partitions == nil && full.Read != n {
			t.Errorf("%+v", full)
		}
	}
	_, err := d.repo.Rebuild(t.Context(), &patterns.JobOptions{Resume: "eyJWZXJzaW9uIjoxLCJSdW4iOiIiLCJQYXJ0IjowLCJQYWdlIjoiIiwiUmVwb3J0Ijp7fX0"})
	harness.WantKind(t, err, tables.ErrInvalid)
}

// TestVerifyResumesAnywhere: from each token that a run with several readers gives, another one counts every row once and finds all that
// was not found before; a run that is cut off at each of its tokens finds the same.
func TestVerifyResumesAnywhere(t *testing.T) {
	const n = 80
	for _, skewed := range []bool{false, true} {
		o := scanned(t, n, skewed, "email", "mail")
		if skewed {
			o.service.SetChaos(storagetest.Chaos{ShortPages: 0.2, EmptyPages: 0.1, PartitionPages: 0.1})
		}
		d := o.open(t)
		dice := rand.New(rand.NewPCG(7, 7))
		var wants []string
		for i := 0; i < n; i += 9 {
			v := placed(i, n, skewed)
			deleteRaw(t, d.table, emailRow(v))
			wants = append(wants, brief(patterns.Finding{Kind: patterns.Missing, Pattern: "email", Location: emailRow(v).Row, Entity: staffKey(v)}))
		}
		slices.Sort(wants)
		clean := int64(0) // rows of the table
		for _, err := range d.table.Entities().Query().AllowTableScan().All(t.Context()) {
			assert.Check(t, err)
			clean++
		}
		all := func() patterns.JobOptions {
			o := patterns.JobOptions{Lag: time.Nanosecond, Concurrency: 1 + dice.IntN(6)}
			o.SmallPages(6)
			o.SmallRuns(int64(20+dice.IntN(60)), 50)
			return o
		}
		var found []string
		options := all()
		enough := errors.New("enough")
		longest := 0
		for runs := 0; ; runs++ { // each run is cut off after some tokens
			left := 1 + dice.IntN(20+5*runs) // the rereading of a large partition cannot be cut
			ctx, stop := context.WithCancelCause(t.Context())
			token := ""
			var page []string
			options.Found = func(f patterns.Finding) error { page = append(page, brief(f)); return nil }
			options.Progress = func(r tables.Progress) {
				if token != r.Resume {
					found, page = append(found, page...), nil
				}
				token, longest = r.Resume, max(longest, len(r.Resume))
				if left--; left == 0 {
					stop(enough)
				}
			}
			report, err := d.repo.Verify(ctx, &options)
			stop(nil)
			if err == nil {
				found = append(found, page...)
				if report.Read != n {
					t.Errorf("skewed %v: %d entities in %d runs, want %d", skewed, report.Read, runs, n)
				}
				break
			}
			if runs > 1000 || token == "" && options.Resume == "" && runs > 10 {
				t.Fatal(err)
			}
			if token != "" {
				options.Resume = token
			}
			resume := options.Resume
			options = all()
			options.Resume = resume
		}
		slices.Sort(found)
		if got := slices.Compact(slices.Clone(found)); !slices.Equal(got, wants) {
			t.Errorf("skewed %v: %d found, want %d:%s", skewed, len(got), len(wants), differences(got, wants))
		}
		t.Logf("skewed %v: %d rows, %d found, %d of them once more; the longest token has %d characters", skewed, clean, len(wants), len(found)-len(wants), longest)
	}
}

// TestReadersEndTogether: an error of one reader, or the end of the context, ends the job with the others, and none goes on.
func TestReadersEndTogether(t *testing.T) {
	before := goleak.IgnoreCurrent()
	defer goleak.VerifyNone(t, before)
	o := scanned(t, 200, true)
	for name, job := range map[string]func(*desk) anyJob{"Verify": verifyOf, "Rebuild": rebuildOf} {
		for at := range 12 {
			failing, _ := o.service.WithRetries(0).Faulty(storagetest.OnIndex(at, storagetest.Throttled))
			options := patterns.JobOptions{Concurrency: 5}
			options.SmallPages(4)
			report, err := job(assert.Must[*desk](t)(o.start(failing)))(t.Context(), &options)
			if !errors.Is(err, tables.ErrUnavailable) {
				t.Fatalf("%s: %+v, %v", name, report, err)
			}
			options.Resume = report.Resume
			if rest, err := job(o.open(t))(t.Context(), &options); err != nil || rest.Read != 200 {
				t.Errorf("%s: %+v after %+v, %v", name, rest, report, err)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		options := patterns.JobOptions{Concurrency: 5, Progress: func(tables.Progress) { stop() }}
		options.SmallPages(4)
		if report, err := job(o.open(t))(ctx, &options); !errors.Is(err, context.Canceled) || report.Resume == "" {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
		stop()
	}
}

// BenchmarkJobsAtLatency runs Verify and Rebuild of 100,000 entities with one reader and with eight, at 25 ms for each request, which it
// waits for: Verify of an index, Rebuild of a complete index, and Rebuild of an index that all entities lack.
func BenchmarkJobsAtLatency(b *testing.B) {
	const n = 100_000
	for _, skewed := range []bool{false, true} {
		bare := scanned(b, n, skewed)
		assert.Must[patterns.RebuildReport](b)(bare.with("email").open(b).repo.Rebuild(b.Context(), nil))
		slow := &slowPolicy{wait: 25 * time.Millisecond}
		for _, tc := range []struct {
			name   string
			office *office
			job    func(*desk) anyJob
		}{{"Rebuild of a new index", bare.with("email"), rebuildOf}, {"Rebuild once more", bare.with("email"), rebuildOf}, {"Verify", bare.with("email"), verifyOf}} {
			b.Run(fmt.Sprintf("%s/skewed=%v", tc.name, skewed), func(b *testing.B) {
				for b.Loop() {
					var took [2]time.Duration
					for i, readers := range []int{1, 8} {
						if tc.name == "Rebuild of a new index" { // each run has a table that lacks it
							tc.office = scanned(b, n, skewed).with("email")
						}
						d := tc.office.open(b, slow)
						slow.made.Store(0)
						began := time.Now()
						report, err := tc.job(d)(b.Context(), &patterns.JobOptions{Concurrency: readers})
						if err != nil || report.Read != n || report.Findings > 0 {
							b.Fatal(report, err)
						}
						took[i] = time.Since(began)
					}
					b.ReportMetric(took[0].Seconds(), "one-s")
					b.ReportMetric(took[1].Seconds(), "eight-s")
					b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "times-faster")
					b.ReportMetric(float64(slow.made.Load()), "requests")
				}
			})
		}
	}
}
