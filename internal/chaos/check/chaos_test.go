//go:build unix

package check_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// Variables of the environment that make TestChaos run otherwise than it does by default.
const (
	chaosTimeVariable = "TABLEPATTERNS_CHAOS_TIME" // how long, as a time.Duration
	chaosSeedVariable = "TABLEPATTERNS_CHAOS_SEED"
)

// chaosEvery is how long the processes are left alone at most, from one kill or stall to the next.
const chaosEvery = 1200 * time.Millisecond

// TestChaos has processes write and repair on one Azurite, with a network that loses requests and answers. They are
// killed, and stopped for longer than a blob's deadline, again and again. In the end, after a sweep of the blobs, every acknowledged change
// is there, and whatever the people ask for.
func TestChaos(t *testing.T) {
	if order := os.Getenv(processVariable); order != "" {
		beProcess(t, order)
		return
	}
	storagetest.AzuriteOnly(t)
	took, seed := chaosTime(t)
	s := storagetest.Azurite(t)
	in := places{s.TableName(t), s.TableName(t), s.TableName(t), s.ContainerName(t)}
	w, err := openWorld(s, in)
	ok(t, err, w.create(t.Context()))

	c := &chaos{t: t, connection: s.ConnectionString, in: in, dice: rand.New(rand.NewPCG(seed, 0)), seeds: seed << 16,
		history: &history{told: map[told]int{}, jobs: map[string]int{}, lives: map[string]*life{}}}
	for _, r := range []role{writer, writer, writer, repairer} {
		c.running = append(c.running, c.start(r))
	}
	for end := time.Now().Add(took); time.Now().Before(end) && !t.Failed(); {
		time.Sleep(chaosEvery/4 + time.Duration(c.dice.Int64N(int64(chaosEvery*3/4))))
		c.harm()
	}
	c.resume()
	c.end()
	time.Sleep(2*chaosDeadline + chaosGrace)
	assert.Check(t, w.sweep(t.Context()))
	if t.Failed() {
		return
	}
	h := c.history
	t.Logf("seed %d, %v: %d changes (%v), %v; %d processes killed, %d stalled",
		seed, took, h.changes, h.told, h.jobs, c.kills, c.stalls)
	if h.told[applied] == 0 || len(h.jobs) == 0 || c.kills == 0 {
		t.Error("no change was made, nothing was repaired or nobody was killed, so the test has not tested anything")
	}
	stored, err := w.stored(t.Context())
	ok(t, err)
	for _, wrong := range h.check(stored) {
		t.Error(wrong)
	}
	findings, err := w.model.Check(t.Context())
	ok(t, err)
	for _, f := range findings {
		t.Error(f)
	}
	if !t.Failed() {
		plant(t, w, c.dice)
	}
}

func chaosTime(t *testing.T) (time.Duration, uint64) {
	took, seed := 6*time.Second, uint64(time.Now().UnixNano()%1e6)
	switch {
	case harness.Shortened():
		took = 4 * time.Second
	case harness.Thorough():
		took = 3 * time.Minute
	}
	var err error
	if text := os.Getenv(chaosTimeVariable); text != "" {
		took, err = time.ParseDuration(text)
		ok(t, err)
	}
	if text := os.Getenv(chaosSeedVariable); text != "" {
		seed, err = strconv.ParseUint(text, 10, 64)
		ok(t, err)
	}
	return took, seed
}

// chaos is a run.
type chaos struct {
	t             *testing.T
	connection    string
	in            places
	dice          *rand.Rand
	seeds         uint64 // of the next process
	history       *history
	running       []*child
	kills, stalls int
}

// child is a process.
type child struct {
	role   role
	cmd    *exec.Cmd
	stdin  io.Closer
	rest   strings.Builder // what it wrote beside events
	heard  sync.WaitGroup
	resume time.Time // when it is to go on; zero for one that is not stopped
}

func (c *chaos) start(r role) *child {
	c.t.Helper()
	c.seeds++
	text, err := json.Marshal(order{r, c.seeds, c.in})
	ok(c.t, err)
	binary, err := os.Executable()
	ok(c.t, err)
	p := &child{role: r, cmd: exec.Command(binary, "-test.run=^TestChaos$", "-test.timeout=30m")}
	p.cmd.Env = append(os.Environ(), processVariable+"="+string(text), storagetest.ConnectionStringVariable+"="+c.connection)
	p.cmd.Stderr = os.Stderr
	p.stdin, err = p.cmd.StdinPipe()
	ok(c.t, err)
	out, err := p.cmd.StdoutPipe()
	ok(c.t, err, p.cmd.Start())
	p.heard.Go(func() { c.history.listen(out, &p.rest) })
	return p
}

// harm kills a process or stops it for a while, and lets go on those whose time has come.
func (c *chaos) harm() {
	for _, p := range c.running {
		if !p.resume.IsZero() && time.Now().After(p.resume) {
			p.signal(c.t, syscall.SIGCONT)
			p.resume = time.Time{}
		}
	}
	i := c.dice.IntN(len(c.running))
	p := c.running[i]
	switch {
	case c.dice.IntN(4) > 0:
		c.kills++
		p.kill(c.t)
		c.running[i] = c.start(p.role)
	case p.resume.IsZero():
		c.stalls++
		p.signal(c.t, syscall.SIGSTOP)
		p.resume = time.Now().Add(time.Duration(c.dice.Int64N(int64(2 * chaosDeadline))))
	}
}

// resume lets all stopped processes go on.
func (c *chaos) resume() {
	for _, p := range c.running {
		if !p.resume.IsZero() {
			p.signal(c.t, syscall.SIGCONT)
			p.resume = time.Time{}
		}
	}
}

// end lets the processes end by themselves.
func (c *chaos) end() {
	for _, p := range c.running {
		p.end(c.t)
	}
}

func (p *child) signal(t *testing.T, s os.Signal) {
	t.Helper()
	assert.NoError(t, p.cmd.Process.Signal(s), "%v to a %s", s, p.role)
}

// kill ends a process as nothing can that it could prepare for. One that had ended before fails the test.
func (p *child) kill(t *testing.T) {
	t.Helper()
	err := p.cmd.Process.Kill()
	p.heard.Wait()
	waited := p.cmd.Wait()
	if code := p.cmd.ProcessState.ExitCode(); err != nil || code != -1 {
		t.Errorf("a %s ended before it was killed: %v, %v\n%s", p.role, err, waited, &p.rest)
	}
}

func (p *child) end(t *testing.T) {
	t.Helper()
	p.stdin.Close()
	p.heard.Wait()
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("a %s that was asked to end: %v\n%s", p.role, err, &p.rest)
	}
}

// stored reads the people by the SDK alone.
func (w *world) stored(ctx context.Context) (people []person, err error) {
	for pager := w.people.NewListEntitiesPager(nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, body := range page.Entities {
			var row struct {
				RowKey, Name, Life string
				ID, Version        int `json:",string"`
			}
			if err := json.Unmarshal(body, &row); err != nil {
				return nil, fmt.Errorf("%w in %s", err, body)
			}
			if strings.HasPrefix(row.RowKey, w.model.RowPrefix) {
				people = append(people, person{ID: row.ID, Name: row.Name, Life: row.Life, Version: row.Version})
			}
		}
	}
	return people, nil
}
