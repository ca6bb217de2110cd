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

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/tables"
)

// worker handles the messages of the archive.
type worker struct {
	progress func(left int) error           // is called from time to time with the number of messages left
	stop     func() (did string, err error) // ends the worker, and says what it did
}

// startLocal starts a worker in this program.
func startLocal(ctx context.Context, w *eventual.Worker) worker {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return worker{
		progress: func(int) error { return nil },
		stop: func() (string, error) {
			cancel()
			err := <-ended
			return counted(int(w.Stats().Handled), "message") + " handled", err
		},
	}
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
	return attempt("worker of the archive", func() {
		var j job
		try(json.Unmarshal([]byte(text), &j))
		var inner policy.Transporter
		if j.Proxy != "" {
			inner = &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(must(url.Parse(j.Proxy))), DisableCompression: true}}
		}
		network := newNetwork(inner, j.Seed)
		network.bad.Set(true)
		account := must(tables.NewAccountFromConnectionString(os.Getenv(connectionVariable), &tables.AccountOptions{
			ClientOptions: patient(azcore.ClientOptions{Transport: network}),
			Logger:        slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		}))
		queue := must(eventual.NewQueue(account, j.Queue, archiveQueue(j.Key)))
		movers := newMovers(queue, account.Table(j.Current), account.Table(j.Former), blobstorage.Container(account, j.Blobs))
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
			_, _ = io.Copy(io.Discard, stdin)
			cancel()
		}()
		try(movers.newWorker(processConcurrency).Run(ctx))
	})
}

// processWorker is a worker process, and after its end the next one.
type processWorker struct {
	company *company
	job     job
	kills   []int // how many messages are left when the process is killed

	cmd    *exec.Cmd
	stdin  io.Closer
	stderr bytes.Buffer // may be read when the process has ended
	ended  chan error
}

// startProcess starts a worker that is another process, to be killed.
func startProcess(c *company, j job) worker {
	w := &processWorker{company: c, job: j, kills: killsAt()}
	try(w.begin())
	return worker{w.progress, w.stop}
}

// begin starts this program once more.
func (w *processWorker) begin() error {
	return attempt("start the worker process", func() {
		cmd := exec.Command(must(os.Executable()))
		cmd.Env = append(os.Environ(), workerVariable+"="+string(must(json.Marshal(w.job))), connectionVariable+"="+w.company.place.connection)
		cmd.Stderr, cmd.WaitDelay = &w.stderr, 5*time.Second
		stdin := must(cmd.StdinPipe())
		try(cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		w.cmd, w.stdin, w.ended = cmd, stdin, ended
	})
}

// progress kills the process and starts another one at certain numbers of messages left.
func (w *processWorker) progress(left int) error {
	select {
	case err := <-w.ended:
		w.ended <- err // for stop
		return fmt.Errorf("the worker process has ended: %v\n%s", err, &w.stderr)
	default:
	}
	if left == 0 && w.company.kills == 0 {
		return errors.New("the worker was done before it could be killed")
	}
	for left > 0 && len(w.kills) > 0 && left <= w.kills[0] {
		w.kills = w.kills[1:]
		if err := w.cmd.Process.Kill(); err != nil {
			return err
		}
		killed := <-w.ended
		w.company.kills++
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
	return fmt.Sprintf("killed %d times in the middle, and started again", w.company.kills), nil
}
