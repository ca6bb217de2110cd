package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/tables"
)

// worker is who handles the messages of the archive.
type worker interface {
	// progress is called from time to time with the number of messages left.
	progress(left int) error
	// stop ends the worker, and says what it did.
	stop() (did string, err error)
}

// localWorker runs in this program.
type localWorker struct {
	worker *eventual.Worker
	cancel context.CancelFunc
	ended  chan error
}

func (w *localWorker) progress(int) error { return nil }

func (w *localWorker) stop() (string, error) {
	w.cancel()
	if err := <-w.ended; err != nil {
		return "", err
	}
	return counted(int(w.worker.Stats().Handled), "message") + " handled", nil
}

// workerVariable makes the program a worker: a job as JSON. It and the connection string in AZURE_STORAGE_CONNECTION_STRING are
// not on the command line, which other users of a machine can read.
const workerVariable = "CONTOSO_WORKER"

// job names what a worker process works on.
type job struct {
	Queue, Current, Former, Blobs string

	Key   []byte // that signs the messages
	Seed  uint64 // of the faults that its calls meet
	Proxy string // by which it reaches a simulator; empty for other services
}

// killsAt are how many messages are left when the process is killed, again and again.
func killsAt() []int {
	var left []int
	for n := former * 9 / 10; n > 0; n -= former / 10 {
		left = append(left, n)
	}
	return left
}

// processConcurrency keeps a worker busy for long enough to be killed in the middle.
const processConcurrency = 4

// beWorker is the worker process. It ends when it is killed, or when stdin does: with the program that started it.
func beWorker(ctx context.Context, text string, stdin io.Reader, stderr io.Writer) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return fmt.Errorf("%s: %w", workerVariable, err)
	}
	var inner policy.Transporter
	if j.Proxy != "" {
		proxy, err := url.Parse(j.Proxy)
		if err != nil {
			return err
		}
		inner = &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}
	}
	network := newNetwork(inner, j.Seed)
	network.bad.Set(true)
	account, err := tables.NewAccountFromConnectionString(os.Getenv(connectionVariable), &tables.AccountOptions{
		ClientOptions: patient(azcore.ClientOptions{Transport: network}),
		Logger:        slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	options, err := archiveQueue(j.Key)
	if err != nil {
		return err
	}
	queue, err := eventual.NewQueue(account, j.Queue, options)
	if err != nil {
		return err
	}
	m, err := newMovers(queue, account.Table(j.Current), account.Table(j.Former), account.Container(j.Blobs))
	if err != nil {
		return err
	}
	w, err := m.newWorker(processConcurrency)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	}()
	return w.Run(ctx)
}

// processWorker is a worker process, and after its end the next one.
type processWorker struct {
	place  *place
	job    job
	kills  []int // how many messages are left when the process is killed
	killed int

	cmd    *exec.Cmd
	stdin  io.Closer
	stderr bytes.Buffer // may be read when the process has ended
	ended  chan error
}

func hireProcess(at *place, j job) (*processWorker, error) {
	j.Proxy = at.proxy
	w := &processWorker{place: at, job: j, kills: killsAt()}
	return w, w.begin()
}

// begin starts this program once more.
func (w *processWorker) begin() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := json.Marshal(w.job)
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), workerVariable+"="+string(text), connectionVariable+"="+w.place.connection)
	cmd.Stderr, cmd.WaitDelay = &w.stderr, 5*time.Second
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	w.cmd, w.stdin, w.ended = cmd, stdin, ended
	return nil
}

// progress kills the process and starts another one at certain numbers of messages left.
func (w *processWorker) progress(left int) error {
	select {
	case err := <-w.ended:
		w.ended <- err // for stop
		return fmt.Errorf("the worker process has ended: %v\n%s", err, &w.stderr)
	default:
	}
	if left == 0 && w.killed == 0 {
		return errors.New("the worker was done before it could be killed")
	}
	for left > 0 && len(w.kills) > 0 && left <= w.kills[0] {
		w.kills = w.kills[1:]
		if err := w.cmd.Process.Kill(); err != nil {
			return err
		}
		killed := <-w.ended
		w.killed++
		w.job.Seed++ // the next process meets other faults
		if err := w.begin(); err != nil {
			w.ended <- killed // for stop
			return err
		}
	}
	return nil
}

func (w *processWorker) stop() (string, error) {
	w.stdin.Close()
	overdue := time.AfterFunc(10*time.Second, func() { w.cmd.Process.Kill() })
	defer overdue.Stop()
	if err := <-w.ended; err != nil {
		return "", fmt.Errorf("the worker process: %w\n%s", err, &w.stderr)
	}
	return fmt.Sprintf("killed %d times in the middle, and started again", w.killed), nil
}
