// Command simulator serves the storage simulator of package storagetest on this machine, so that the programs of the tutorial can run
// where there is no Node.js for Azurite. Everything it stores is lost when it ends.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/storagetest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	service, err := storagetest.NewSimulator(&storagetest.SimulatorOptions{Start: time.Now(), TableDeletion: -1})
	if err != nil {
		return err
	}
	text := service.ConnectionString
	for _, endpoint := range []string{service.TableEndpoint, service.QueueEndpoint, service.BlobEndpoint} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer listener.Close()
		server := &http.Server{Handler: handler(service, endpoint), ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(listener) }() // it ends with the listener
		text = strings.ReplaceAll(text, endpoint, "http://"+listener.Addr().String())
	}
	fmt.Printf("export AZURE_STORAGE_CONNECTION_STRING='%s'\n", text)

	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case now := <-time.After(10 * time.Millisecond): // the simulator's clock stands still unless somebody moves it
			service.Clock.Advance(now.Sub(last))
			last = now
		}
	}
}

// handler passes requests on to one service of the simulator, as if they were sent to the endpoint.
func handler(service *storagetest.Service, endpoint string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to, err := url.Parse(endpoint)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		r.URL.Scheme, r.URL.Host, r.Host = to.Scheme, to.Host, to.Host
		answer, err := service.ClientOptions.Transport.Do(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		for name, values := range answer.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, answer.Body) // the client has gone if this fails
	})
}
