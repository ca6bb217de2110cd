package logdata_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/logdata"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestSweep breaks every request of writers that roll by appends and by period. Whatever happens: what was said to be
// stored is there, nothing is there twice, what was surely refused is not there, and a buffered writer loses no more than
// it had in memory. Every record is found by a query of its own time, whatever the metadata say.
func TestSweep(t *testing.T) {
	for _, c := range []struct {
		name       string
		o          logdata.WriterOptions
		concurrent bool
		floor      int
	}{
		{"durable", logdata.WriterOptions{BlobAppends: 2}, false, 336},
		{"durable with a concurrent writer", logdata.WriterOptions{BlobAppends: 2}, true, 400},
		{"buffered", logdata.WriterOptions{Buffered: true, BlobAppends: 1, Interval: time.Hour}, false, 252},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sweep := storagetest.SweepCase{Floor: c.floor, Every: harness.SweepEvery(), World: func(t testing.TB, s *storagetest.Service) storagetest.World {
				w := &sweepWorld{container: newContainer(t, s), options: c.o, processes: map[*storagetest.Service]*process{}}
				if c.concurrent {
					w.writeConcurrently(t, s)
				}
				return storagetest.World{Operate: w.operate, Recover: w.giveUp, Check: w.check}
			}}
			if harness.Shortened() {
				sweep.Callers, sweep.Floor = []storagetest.Caller{storagetest.ProcessDies, storagetest.CallerRetries}, 0
			}
			storagetest.Sweep(t, sweep)
		})
	}
}

const sweepRecords = 6

// sweepTime is when the n-th record happens: the last ones are of the next period.
func sweepTime(n int) time.Time {
	at := noon().Add(time.Duration(n) * time.Second)
	if n >= sweepRecords-2 {
		at = at.Add(10 * time.Minute)
	}
	return at
}

type sweepWorld struct {
	container  string
	options    logdata.WriterOptions
	processes  map[*storagetest.Service]*process
	all        []*process
	concurrent bool
}

// process is a program that writes, and what it knows of its records.
type process struct {
	number  int
	writer  *logdata.Writer
	next    int
	stored  []string // it was told so
	pending []string // it was told that nobody knows, or that they are in memory
	refused string   // it was told so, and has not tried again
}

func (w *sweepWorld) writeConcurrently(t testing.TB, s *storagetest.Service) {
	l := assert.Must[*logdata.Log](t)(openLog(s, w.container, nil))
	concurrent := newWriter(t, l, nil)
	assert.Check(t, concurrent.Write(t.Context(), record(sweepTime(0).Add(100), "concurrent writer")))
	w.concurrent = true
}

func (w *sweepWorld) operate(ctx context.Context, s *storagetest.Service) error {
	p := w.processes[s]
	if p == nil {
		l, err := openLog(s, w.container, nil)
		if err != nil {
			return err
		}
		p = &process{number: len(w.all)}
		if p.writer, err = l.NewWriter(&w.options); err != nil {
			return err
		}
		w.processes[s] = p
		w.all = append(w.all, p)
	}
	for p.next < sweepRecords {
		if len(p.pending) > 0 && (!w.options.Buffered || len(p.pending) == 2) {
			if err := p.flush(ctx, p.writer.Flush); err != nil {
				return err
			}
		}
		if err := p.write(ctx, w.options.Buffered); err != nil {
			return err
		}
	}
	return p.flush(ctx, p.writer.Close)
}

// write writes the process's next record.
func (p *process) write(ctx context.Context, buffered bool) error {
	text := fmt.Sprintf("%d/%d", p.number, p.next)
	p.refused = ""
	err := p.writer.Write(ctx, record(sweepTime(p.next).Add(time.Duration(p.number)), text))
	unknown := errors.Is(err, tables.ErrUnknownOutcome)
	switch {
	case unknown, err == nil && buffered:
		p.pending = append(p.pending, text)
	case err == nil:
		p.stored = append(p.stored, text)
	default:
		p.refused = text
		return err
	}
	p.next++
	return err
}

func (p *process) flush(ctx context.Context, flush func(context.Context) error) error {
	if err := flush(ctx); err != nil {
		return err
	}
	p.stored, p.pending = append(p.stored, p.pending...), nil
	return nil
}

// giveUp ends all processes as they are.
func (w *sweepWorld) giveUp(context.Context, *storagetest.Service) error {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, p := range w.all {
		if err := p.writer.Close(ended); err == nil {
			p.pending = nil
		}
	}
	return nil
}

func (w *sweepWorld) check(ctx context.Context, s *storagetest.Service, end storagetest.Ending) error {
	l, err := openLog(s, w.container, nil)
	if err != nil {
		return err
	}
	from, to := day()
	got, err := read(ctx, l, from, to)
	if err != nil {
		return err
	}
	if sorted := slices.Sorted(slices.Values(got)); len(slices.Compact(sorted)) != len(got) {
		return fmt.Errorf("twice: %q", got)
	}
	for _, p := range w.all {
		for _, text := range p.stored {
			if !slices.Contains(got, text) {
				return fmt.Errorf("%s is lost; there are %q", text, got)
			}
		}
		if slices.Contains(got, p.refused) {
			return fmt.Errorf("%s is there, and was refused", p.refused)
		}
		if w.options.Buffered && len(p.pending) > 2 {
			return fmt.Errorf("%q were in memory", p.pending)
		}
	}
	if last := w.all[len(w.all)-1]; end.Succeeded() && (len(last.stored) != sweepRecords) {
		return fmt.Errorf("the last process knows of %q", last.stored)
	}
	return w.checkTimes(ctx, l, got)
}

// checkTimes asks for the records of each time, and of no other.
func (w *sweepWorld) checkTimes(ctx context.Context, l *logdata.Log, all []string) error {
	var found []string
	for n := range sweepRecords {
		got, err := read(ctx, l, sweepTime(n), sweepTime(n).Add(time.Millisecond))
		if err != nil {
			return err
		}
		for _, text := range got {
			if text != "concurrent writer" && !strings.HasSuffix(text, fmt.Sprintf("/%d", n)) {
				return fmt.Errorf("at the time of record %d there is %q", n, got)
			}
		}
		found = append(found, got...)
	}
	if !slices.Equal(found, all) || w.concurrent && !slices.Contains(all, "concurrent writer") {
		return fmt.Errorf("%q are found by their times, of %q", found, all)
	}
	return nil
}
