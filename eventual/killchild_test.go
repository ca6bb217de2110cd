package eventual_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// killVariable tells a run of this test binary to be a worker to be killed: the names of its table and its queue.
const killVariable = "EVENTUAL_KILL_CHILD"

const (
	killType    = "count"
	killBuckets = 128
	// killVisibility is how long a killed worker's messages wait for another. A handler takes some 10 ms.
	killVisibility  = 2 * time.Second
	killConcurrency = 8
	// killDequeues is how often a message may meet a worker's end.
	killDequeues = 50

	numberProperty, countProperty = "Number", "Count"
	// A worker writes a line for each message that has its effect, and for each that comes again.
	handled, redelivered, duplicate = "handled\n", "redelivered\n", "duplicate\n"
)

// beWorker handles messages until it is killed, or standard input ends: with its parent, however that ends.
func beWorker(t *testing.T, names string) {
	tableName, queueName, _ := strings.Cut(names, " ")
	s := storagetest.Azurite(t)
	q := assert.Must[*eventual.Queue](t)(openQueue(s, queueName, &eventual.QueueOptions{VisibilityTimeout: killVisibility}))
	effects := effects{table: q.Account().Table(tableName), told: os.Stdout}
	w := newWorker(t, q, map[string]eventual.Handler{killType: effects.count}, &eventual.WorkerOptions{
		Concurrency: killConcurrency, MaxDequeues: killDequeues, MinPoll: 20 * time.Millisecond, MaxPoll: 200 * time.Millisecond, RetryDelay: atOnce})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	assert.Check(t, w.Run(ctx))
}

// effects are what messages do to the data.
type effects struct {
	table *tables.Table
	told  io.Writer
}

// bucketOf is the partition of a message's effects.
func bucketOf(id string) string { return bucketName(crc32.ChecksumIEEE([]byte(id)) % killBuckets) }

func bucketName(n uint32) string { return fmt.Sprintf("bucket%03d", n) }

func counterOf(bucket string) tables.Key { return tables.Key{Partition: bucket, Row: "counter"} }

// newEffects gives each bucket its counter.
func newEffects(t *testing.T, table *tables.Table) {
	t.Helper()
	for bucket := range killBuckets {
		counter := &tables.Entity{Key: counterOf(bucketName(uint32(bucket)))}
		counter.Set(countProperty, tables.Int64(0))
		assert.Check(t, table.Entities().Insert(t.Context(), counter))
	}
}

// count has the effect of a message.
func (e *effects) count(ctx context.Context, m *eventual.Message) error {
	if m.Dequeues > 1 {
		io.WriteString(e.told, redelivered)
	}
	var number int64
	if err := m.Decode(&number); err != nil {
		return err
	}
	return e.add(ctx, m.ID, m.ID, tables.Int64(number))
}

// add inserts a row for what has this ID and raises its bucket's counter, in one transaction: the row is refused the second time,
// and the counter with it.
func (e *effects) add(ctx context.Context, id, row string, number tables.Value) error {
	rows, bucket := e.table.Entities(), bucketOf(id)
	for {
		counter, err := rows.Get(ctx, counterOf(bucket))
		if err != nil {
			return err
		}
		n, _ := counter.Get(countProperty).Int()
		counter.Set(countProperty, tables.Int64(n+1))
		x := e.table.NewTransaction()
		x.Insert(&tables.Entity{Key: tables.Key{Partition: bucket, Row: row}, Properties: tables.Properties{{Name: numberProperty, Value: number}}})
		x.Replace(counter)
		switch _, err := x.Commit(ctx); {
		case errors.Is(err, tables.ErrExists):
			io.WriteString(e.told, duplicate)
			return nil
		case err == nil:
			io.WriteString(e.told, handled)
			return nil
		case !errors.Is(err, tables.ErrConflict): // a concurrent writer in the bucket
			return err
		}
	}
}

// victim is a worker process.
type victim struct {
	cmd            *exec.Cmd
	stdin          io.Closer
	stdout, stderr output
}

// output is what a process writes, to be read while it does.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write is io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// startChild runs a test of this binary again, with a variable that tells it what to do.
func startChild(t *testing.T, test, connection, variable string) *victim {
	t.Helper()
	v := &victim{cmd: exec.Command(assert.Must[string](t)(os.Executable()), "-test.run=^"+test+"$", "-test.timeout=10m")}
	v.cmd.Env = append(os.Environ(), variable, storagetest.ConnectionStringVariable+"="+connection)
	v.cmd.Stdout, v.cmd.Stderr, v.cmd.WaitDelay = &v.stdout, &v.stderr, 10*time.Second
	v.stdin = assert.Must[io.WriteCloser](t)(v.cmd.StdinPipe())
	assert.Check(t, v.cmd.Start())
	return v
}

// kill ends a worker as nothing can that it could prepare for. A worker that had ended before fails the test.
func (v *victim) kill(t *testing.T) {
	t.Helper()
	err := v.cmd.Process.Kill()
	waited := v.cmd.Wait()
	// Killed is -1, but on Windows, where it is 1, as for a test that failed.
	if code := v.cmd.ProcessState.ExitCode(); err != nil || code != -1 && runtime.GOOS != "windows" {
		t.Fatalf("a worker ended before it was killed: %v, %v\n%s%s", err, waited, &v.stdout, &v.stderr)
	}
}

// end lets a worker end by itself.
func (v *victim) end(t *testing.T) {
	t.Helper()
	v.stdin.Close()
	if err := v.cmd.Wait(); err != nil {
		t.Errorf("a worker that was asked to end: %v\n%s%s", err, &v.stdout, &v.stderr)
	}
}

// said is how often the worker wrote a line.
func (v *victim) said(line string) int { return strings.Count(v.stdout.String(), line) }

// killInTurn runs two processes and kills them in turn, each as soon as it is ripe, while there is something to do. It returns all
// that it has started, each of which has ended.
func killInTurn(t *testing.T, start func(n int) *victim, ripe func(*victim) bool, busy func(all []*victim) bool) (all []*victim) {
	t.Helper()
	var running []*victim
	defer func() {
		for _, v := range running { // those of a test that failed
			v.cmd.Process.Kill()
			v.cmd.Wait()
		}
	}()
	begin := func() {
		v := start(len(all))
		all, running = append(all, v), append(running, v)
	}
	begin()
	begin()
	for busy(all) {
		if oldest := running[0]; ripe(oldest) {
			running = running[1:]
			oldest.kill(t)
			begin()
			continue
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, v := range running {
		v.stdin.Close() // all of them first, since one may wait until nothing is left for any
	}
	for _, v := range running {
		v.end(t)
	}
	running = nil
	return all
}
