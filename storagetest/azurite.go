package storagetest

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/npm"
)

//go:embed azurite/supervisor.js
var supervisor string

const (
	// startTime limits a start, without the installation: less than a second on an idle machine.
	startTime = 90 * time.Second
	// stopTime is how long Stop waits for Azurite's own end.
	stopTime = 15 * time.Second
	// extentMemoryMB limits the memory for blobs and queue messages; Azurite's default is half of the machine's.
	extentMemoryMB = 512
)

// AzuriteOptions are the options of [StartAzurite]; nil is the same as the zero value.
type AzuriteOptions struct {
	// Location is a directory for data between starts (default in memory).
	Location string
	// Progress gets a message for the user when the installation takes long (default none).
	Progress func(message string)
}

// AzuriteServer is a running Azurite. It ends at Stop, or with the process that started it.
type AzuriteServer struct {
	service *Service
	cmd     *exec.Cmd
	stdin   io.Closer

	stop    sync.Once
	stopErr error
}

// StartAzurite installs Azurite if it is missing, starts it on free ports of 127.0.0.1, and returns when its services respond. ctx limits that, not
// the life of the server.
func StartAzurite(ctx context.Context, options *AzuriteOptions) (*AzuriteServer, error) {
	if options == nil {
		options = &AzuriteOptions{}
	}
	progress := options.Progress
	if progress == nil {
		progress = func(string) {}
	}
	node, err := azurite.Node()
	if err != nil {
		return nil, err
	}
	dir, err := azurite.Install(ctx, progress)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	server, err := startServer(ctx, node, dir, options.Location)
	if err != nil {
		return nil, fmt.Errorf("starting Azurite: %w", err)
	}
	return server, nil
}

// ConnectionString is for the server's table, queue and blob services.
func (s *AzuriteServer) ConnectionString() string { return s.service.ConnectionString }

// Service returns the server as a [Service], whose ClientOptions enforce Azure's rules.
func (s *AzuriteServer) Service() *Service {
	service := *s.service
	return &service
}

// Stop ends Azurite, which first writes its data to AzuriteOptions.Location, and waits for its process. A second Stop returns the result of the
// first.
func (s *AzuriteServer) Stop() error {
	s.stop.Do(func() {
		s.stdin.Close()
		overdue := time.AfterFunc(stopTime, func() { s.cmd.Process.Kill() })
		defer overdue.Stop()
		if err := s.cmd.Wait(); err != nil {
			s.stopErr = fmt.Errorf("stopping Azurite: %w", err)
		}
	})
	return s.stopErr
}

// startServer runs the supervisor, a script that runs Azurite in its own process, until the services respond.
func startServer(ctx context.Context, node, dir, location string) (*AzuriteServer, error) {
	entry := filepath.Join(dir, filepath.FromSlash(azuriteEntry))
	args := []string{"-e", supervisor, "--", entry,
		"--blobHost", "127.0.0.1", "--blobPort", "0",
		"--queueHost", "127.0.0.1", "--queuePort", "0",
		"--tableHost", "127.0.0.1", "--tablePort", "0",
		"--skipApiVersionCheck", "--disableTelemetry", "--silent"}
	if location == "" {
		args = append(args, "--inMemoryPersistence", "--extentMemoryLimit", strconv.Itoa(extentMemoryMB))
	} else {
		args = append(args, "--location", location)
	}
	// No CommandContext: the server outlives ctx.
	cmd := exec.Command(node, args...)
	detach(cmd)
	cmd.Stderr = os.Stderr // a file, so os/exec needs no goroutine; Azurite writes to it only on errors
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &AzuriteServer{cmd: cmd, stdin: stdin}
	if s.service, err = awaitReady(ctx, cmd, stdout); err != nil {
		cmd.Process.Kill()
		s.Stop()
		return nil, err
	}
	return s, nil
}

// addresses is the supervisor's line when Azurite listens or has failed to start.
type addresses struct {
	Blob, Queue, Table string
	Error              string
}

// awaitReady kills the process if ctx ends before the services respond.
func awaitReady(ctx context.Context, cmd *exec.Cmd, stdout io.ReadCloser) (*Service, error) {
	defer stdout.Close()
	// That ends the read, as the process closes its end of the pipe: not every platform has deadlines on pipes.
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	s, err := readReady(ctx, stdout)
	if !stop() {
		return nil, ctx.Err()
	}
	return s, err
}

func readReady(ctx context.Context, stdout io.Reader) (*Service, error) {
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		return nil, errors.New("node ended before Azurite listened; see its standard error")
	}
	var a addresses
	if err := json.Unmarshal(line, &a); err != nil {
		return nil, fmt.Errorf("unexpected output %.200q", line)
	}
	if a.Error != "" {
		return nil, errors.New(a.Error)
	}
	s := newAzuriteService(a)
	for _, endpoint := range []string{s.TableEndpoint, s.QueueEndpoint, s.BlobEndpoint} {
		if err := awaitAnswer(ctx, endpoint); err != nil {
			return nil, fmt.Errorf("no answer at %s: %w", endpoint, err)
		}
	}
	return s, nil
}

// awaitAnswer sends requests until one gets any response, such as a refusal for the missing signature.
func awaitAnswer(ctx context.Context, endpoint string) error {
	// A client without idle connections: a test's leak check must find no goroutines.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"?comp=list", nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err == nil {
			return resp.Body.Close()
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

//go:embed azurite/package.json
var packageJSON []byte

//go:embed azurite/package-lock.json
var packageLock []byte

const azuriteEntry = "node_modules/azurite/dist/src/azurite.js"

var azurite = npm.Packages{Name: "Azurite", Dir: "azurite", Manifest: packageJSON, Lock: packageLock, Entry: azuriteEntry, Cost: "about 15 s",
	WithoutTools: "install Node.js 20 or newer with npm, or set " + ConnectionStringVariable + " to the connection string of an account to test on"}
