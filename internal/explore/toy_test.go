package explore

import (
	"context"
	"net/http"

	"github.com/tablepatterns/tablepatterns/internal/toy"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// newToy returns a toy as a service.
func newToy() (*storagetest.Service, *toy.Toy) {
	t := toy.New()
	s := &storagetest.Service{TableEndpoint: toy.TableEndpoint, QueueEndpoint: toy.QueueEndpoint}
	s.ClientOptions.Transport = t
	return s, t
}

func put(ctx context.Context, s *storagetest.Service, name, value string) error {
	_, err := toy.Call(ctx, &s.ClientOptions, http.MethodPut, toy.Row(name), value)
	return err
}

func get(ctx context.Context, s *storagetest.Service, name string) (string, error) {
	return toy.Call(ctx, &s.ClientOptions, http.MethodGet, toy.Row(name), "")
}
