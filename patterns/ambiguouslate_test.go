package patterns_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// latecomer is a request whose connection is reset, and that arrives when the test says so.
type latecomer struct {
	send   func(*http.Request) (*http.Response, error)
	arrive func() (status int)
}

func (l *latecomer) String() string { return "late" }

func (l *latecomer) Meet(_ storagetest.Call, req *http.Request, _ storagetest.Send) (*http.Response, error) {
	later := req.Clone(context.WithoutCancel(req.Context()))
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	later.Body = io.NopCloser(bytes.NewReader(body))
	l.arrive = func() int {
		resp, err := l.send(later)
		if err != nil {
			return 0
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
}

// TestLateCreation: the first attempt to create a table is on its way, the second hears that the table is being deleted, and the
// name is free 5 s later. So the table is made after all, and that answer did not say that it will not be.
func TestLateCreation(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	late := &latecomer{send: s.ClientOptions.Transport.Do}
	faulty, _ := s.WithRetries(1).Faulty(storagetest.On(storagetest.CreateTable, storagetest.Once(storagetest.Always(late))))
	rival, ours := lateTable(t, s, "Contoso"), lateTable(t, faulty, "Contoso")
	if err := errors.Join(rival.Create(t.Context()), rival.Drop(t.Context())); err != nil {
		t.Fatal(err)
	}
	s.Wait(35 * time.Second)
	wantBoth(t, ours.Create(t.Context()), patterns.ErrTableBeingDeleted)
	s.Wait(5 * time.Second)
	if status := late.arrive(); status != http.StatusCreated && status != http.StatusNoContent {
		t.Errorf("the first attempt is answered with %d: the test shows nothing", status)
	}
}

func lateTable(t *testing.T, s *storagetest.Service, name string) *patterns.Table {
	t.Helper()
	a, err := patterns.NewAccountFromConnectionString(s.ConnectionString, &patterns.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		t.Fatal(err)
	}
	return a.Table(name)
}
