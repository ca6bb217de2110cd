package logdata_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/logdata"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// killVariable tells a run of this test binary to be a writer to be killed: its container, its name, and its mode.
const killVariable = "LOGDATA_KILL_CHILD"

const (
	// killRecords is what a buffered writer may have in memory: its loss, at most.
	killRecords = 200
	// killSources is how many goroutines write through a durable writer; each waits for its record.
	killSources = 4
	durableMode = "durable"
)

// TestKilledWriters kills six processes that write to one prefix, at any moment. The durable ones have lost nothing that
// Write had acknowledged, the buffered ones no more than they may have in memory; nothing is there twice.
func TestKilledWriters(t *testing.T) {
	if names := os.Getenv(killVariable); names != "" {
		beWriter(t, names)
		return
	}
	storagetest.AzuriteOnly(t)
	s := storagetest.Azurite(t)
	name := newContainer(t, s)
	l := assert.Must[*logdata.Log](t)(openLog(s, name, nil))
	began := time.Now()
	var victims []*victim
	for n := range 6 {
		mode := durableMode
		if n%2 == 1 {
			mode = "buffered"
		}
		victims = append(victims, startVictim(t, s.ConnectionString, name, fmt.Sprint(n), mode))
	}
	for n, v := range victims {
		v.awaitLines(t, 50+40*n)
		v.kill(t)
	}
	survivor := newWriter(t, l, nil)
	assert.Check(t, survivor.Write(t.Context(), logdata.Record{Data: []byte("survivor/0/0")}))

	stored := map[string]int{}
	for r, err := range l.Query(t.Context(), began.Add(-time.Second), time.Now().Add(time.Second), nil) {
		assert.Check(t, err)
		if stored[string(r.Data)]++; stored[string(r.Data)] > 1 {
			t.Errorf("%s is there %d times", r.Data, stored[string(r.Data)])
		}
	}
	assert.Equal(t, stored["survivor/0/0"], 1, "the survivor's record is lost")
	for _, v := range victims {
		v.judge(t, stored)
	}
}

// judge holds what a killed writer had been told against what is stored.
func (v *victim) judge(t *testing.T, stored map[string]int) {
	t.Helper()
	told, lost := v.lines(), 0
	known := map[string]bool{}
	for _, text := range told {
		known[text] = true
		if stored[text] == 0 {
			lost++
		}
	}
	untold := 0
	for text := range stored {
		if strings.HasPrefix(text, v.name+"/") && !known[text] {
			untold++
		}
	}
	t.Logf("%s %s: %d acknowledged, %d of them lost, %d stored without an acknowledgement", v.mode, v.name, len(told), lost, untold)
	if v.mode == durableMode {
		if lost > 0 || untold > killSources {
			t.Errorf("a durable writer has lost %d, and %d are there that nobody was told of", lost, untold)
		}
		return
	}
	if lost > killRecords {
		t.Errorf("a buffered writer has lost %d, of %d at most", lost, killRecords)
	}
	for i, text := range told { // what is lost was the last
		if stored[text] == 0 && i < len(told)-lost {
			t.Errorf("%s is lost, and later ones are there", text)
			break
		}
	}
}

// beWriter writes, and says on standard output what it was told is written, until it is killed, or its parent has ended.
func beWriter(t *testing.T, names string) {
	var container, name, mode string
	fmt.Sscan(names, &container, &name, &mode)
	l := assert.Must[*logdata.Log](t)(openLog(storagetest.Azurite(t), container, nil))
	o, sources := &logdata.WriterOptions{BlobAppends: 20}, killSources
	if mode != durableMode {
		o.Buffered, o.BufferRecords, o.Interval, sources = true, killRecords, 50*time.Millisecond, 1
	}
	w := assert.Must[*logdata.Writer](t)(l.NewWriter(o))
	var all sync.WaitGroup
	for source := range sources {
		all.Go(func() {
			for i := 0; ; i++ {
				text := fmt.Sprintf("%s/%d/%d", name, source, i)
				if err := w.Write(t.Context(), logdata.Record{Data: []byte(text)}); err != nil {
					t.Error(err)
					return
				}
				fmt.Println(text)
			}
		})
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	all.Wait()
}

// victim is a writer process.
type victim struct {
	name, mode string
	cmd        *exec.Cmd
	stdin      io.Closer
	stderr     bytes.Buffer

	mu     sync.Mutex
	stdout bytes.Buffer
	more   chan struct{}
}

// Write takes what the writer says.
func (v *victim) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	select {
	case v.more <- struct{}{}:
	default:
	}
	return v.stdout.Write(p)
}

// lines are the whole lines that the writer has said, which are about records.
func (v *victim) lines() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := strings.Split(v.stdout.String(), "\n")
	return slices.DeleteFunc(all[:len(all)-1], func(line string) bool { return !strings.HasPrefix(line, v.name+"/") })
}

// said is how many lines the writer has said.
func (v *victim) said() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return bytes.Count(v.stdout.Bytes(), []byte{'\n'})
}

func startVictim(t *testing.T, connection, container, name, mode string) *victim {
	t.Helper()
	v := &victim{name: name, mode: mode, more: make(chan struct{}, 1)}
	v.cmd = exec.Command(assert.Must[string](t)(os.Executable()), "-test.run=^TestKilledWriters$", "-test.timeout=2m")
	v.cmd.Env = append(os.Environ(), killVariable+"="+container+" "+name+" "+mode, storagetest.ConnectionStringVariable+"="+connection)
	v.cmd.Stdout, v.cmd.Stderr, v.cmd.WaitDelay = v, &v.stderr, 10*time.Second
	v.stdin = assert.Must[io.WriteCloser](t)(v.cmd.StdinPipe())
	assert.Check(t, v.cmd.Start())
	t.Cleanup(func() { v.stdin.Close() })
	return v
}

// awaitLines waits until the writer has said so many lines.
func (v *victim) awaitLines(t *testing.T, n int) {
	t.Helper()
	limit := time.After(time.Minute)
	for v.said() < n {
		select {
		case <-v.more:
		case <-limit:
			t.Fatalf("writer %s has said %d lines\n%s", v.name, v.said(), &v.stderr)
		}
	}
}

// kill ends a writer as nothing can that it could prepare for. One that had ended before fails the test.
func (v *victim) kill(t *testing.T) {
	t.Helper()
	err := v.cmd.Process.Kill()
	waited := v.cmd.Wait()
	// Killed is -1, but on Windows, where it is 1, as for a test that failed.
	if code := v.cmd.ProcessState.ExitCode(); err != nil || code != -1 && runtime.GOOS != "windows" {
		t.Fatalf("a writer ended before it was killed: %v, %v\n%s", err, waited, &v.stderr)
	}
}
