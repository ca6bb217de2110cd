// Step 6 of the tutorial: an HTTP service that is ready, can be watched, and stops without losing anything.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/httpapi"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Employee is the entity, and the body of requests and responses.
type Employee struct {
	tables.Meta
	Department string
	ID         int
	LastName   string
	Email      string
}

type service struct {
	store     *patterns.Store
	employees *patterns.Repository[Employee]
	byEmail   *interpartition.Unique[Employee, compoundkey.Folded]
	metrics   *metric.ManualReader
}

func (s *service) get(w http.ResponseWriter, r *http.Request) error {
	found, err := s.byEmail.Get(r.Context(), compoundkey.Folded(r.PathValue("email")))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(found)
}

func (s *service) post(w http.ResponseWriter, r *http.Request) error {
	e := new(Employee)
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(e); err != nil {
		return &tables.Error{Op: "Decode", Kind: tables.ErrInvalid, Err: err}
	}
	if err := s.employees.Insert(r.Context(), e); err != nil {
		return err
	}
	w.WriteHeader(http.StatusCreated)
	return nil
}

// ready is for the platform: it sends requests only to a process whose tables can be reached.
func (s *service) ready(_ http.ResponseWriter, r *http.Request) error {
	return s.store.Ready(r.Context())
}

func (s *service) measured(w http.ResponseWriter, r *http.Request) error {
	var all metricdata.ResourceMetrics
	if err := s.metrics.Collect(r.Context(), &all); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(all.ScopeMetrics)
}

// check ends the program if there is an error.
func check(err error) {
	if err != nil {
		slog.Error("ended", "error", err)
		os.Exit(1)
	}
}

func open() *service {
	s := &service{metrics: metric.NewManualReader()}
	credential, err := azidentity.NewDefaultAzureCredential(nil) // on Azure, set AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_AUTH_MODE=login
	check(err)
	account, err := tables.NewAccountFromEnv(&tables.AccountOptions{Credential: credential, MeterProvider: metric.NewMeterProvider(metric.WithReader(s.metrics))})
	check(err)
	s.store, err = patterns.Open("contoso", &patterns.StoreOptions{Account: account})
	check(err)
	byName := intrapartition.NewIndex("name", func(e *Employee) compoundkey.Folded { return compoundkey.Folded(e.LastName) }, nil)
	s.byEmail = interpartition.NewUnique("email", func(e *Employee) compoundkey.Folded { return compoundkey.Folded(e.Email) }, nil)
	s.employees, err = patterns.NewRepository(s.store.Table("Employees"), patterns.Schema[Employee]{
		Key: func(e *Employee) tables.Key {
			return tables.Key{Partition: e.Department, Row: compoundkey.Join("empid", compoundkey.Int(e.ID, 6))}
		},
		Prefix: "empid",
	}, byName, s.byEmail)
	check(err)
	return s
}

func main() {
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil))) // the library logs to slog.Default
	ctx, end := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	s := open()
	stop, err := s.store.Start(ctx)
	check(err)
	mux := http.NewServeMux()
	mux.Handle("GET /employees/{email}", httpapi.Handler(s.get))
	mux.Handle("POST /employees", httpapi.Handler(s.post))
	mux.Handle("GET /ready", httpapi.Handler(s.ready))
	mux.Handle("GET /metrics", httpapi.Handler(s.measured))
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", cmp.Or(os.Getenv("ADDRESS"), "127.0.0.1:8080"))
	check(err)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	slog.Info("serving", "address", listener.Addr().String())

	served := make(chan error, 1)
	go func() { defer end(); served <- server.Serve(listener) }()
	<-ctx.Done() // at SIGTERM, or when the server ends by itself

	// Requests under way may end; then stop waits for what the last writes still do in the background.
	ending, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	err = server.Shutdown(ending)
	if failed := <-served; !errors.Is(failed, http.ErrServerClosed) {
		err = errors.Join(err, failed)
	}
	cancel()
	check(errors.Join(err, stop()))
	slog.Info("stopped")
}
