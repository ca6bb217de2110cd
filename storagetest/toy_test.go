package storagetest

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/toy"
)

// newToy returns a toy as a service.
func newToy() (*Service, *toy.Toy) {
	t := toy.New()
	s := &Service{TableEndpoint: toy.TableEndpoint, QueueEndpoint: toy.QueueEndpoint}
	s.ClientOptions.Transport = t
	return s, t
}

func put(ctx context.Context, s *Service, name, value string) error {
	_, err := toy.Call(ctx, &s.ClientOptions, http.MethodPut, toy.Row(name), value)
	return err
}

func get(ctx context.Context, s *Service, name string) (string, error) {
	return toy.Call(ctx, &s.ClientOptions, http.MethodGet, toy.Row(name), "")
}

// recorder is a tester that may fail: it keeps what it is told.
type recorder struct {
	testing.TB
	name   string
	failed bool
	said   strings.Builder
	filter func(name string) bool
}

func (r *recorder) Name() string { return r.name }
func (r *recorder) Failed() bool { return r.failed }
func (r *recorder) Helper()      {}
func (r *recorder) run(name string, f func(t testing.TB)) bool {
	if r.filter != nil && !r.filter(name) {
		return true
	}
	sub := &recorder{TB: r.TB, name: r.name + "/" + name}
	sub.do(func() { f(sub) })
	r.failed = r.failed || sub.failed
	r.said.WriteString(sub.said.String())
	return !sub.failed
}

// do runs f, which may end its goroutine.
func (r *recorder) do(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}
