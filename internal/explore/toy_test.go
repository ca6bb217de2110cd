package explore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/tablepatterns/tablepatterns/storagetest"
)

// toy is a service of a few lines: a queue of one message at /queue/messages, and one value for each row of a table.
// It is behind the SDK's pipeline like a real one, so that these tests need no simulator to be right.
type toy struct {
	mu   sync.Mutex
	rows map[string]string
	log  []string
}

// newToy returns a toy as a service that a test reaches with call.
func newToy() (*storagetest.Service, *toy) {
	t := &toy{rows: map[string]string{}}
	s := &storagetest.Service{TableEndpoint: "http://toy.table.test", QueueEndpoint: "http://toy.queue.test"}
	s.ClientOptions.Transport = t
	return s, t
}

func (t *toy) Do(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
		req.Body.Close()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.log = append(t.log, req.Method+" "+req.URL.Path)
	row := req.URL.Path
	answer, status := "", http.StatusNoContent
	switch value, found := t.rows[row]; {
	case req.Method == http.MethodGet && !found, req.Method == http.MethodDelete && !found:
		status = http.StatusNotFound
	case req.Method == http.MethodPost && found:
		status = http.StatusConflict
	case req.Method == http.MethodGet:
		answer, status = value, http.StatusOK
	case req.Method == http.MethodDelete:
		delete(t.rows, row)
	default:
		t.rows[row] = string(body)
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer)), ContentLength: int64(len(answer)), Request: req}, nil
}

var errToy = errors.New("refused")

// call makes one request with the service's client options.
func call(ctx context.Context, s *storagetest.Service, method, address, body string) (string, error) {
	pipeline := runtime.NewPipeline("toy", "v1", runtime.PipelineOptions{}, &s.ClientOptions)
	req, err := runtime.NewRequest(ctx, method, address)
	if err != nil {
		return "", err
	}
	if body != "" {
		if err := req.SetBody(struct {
			*bytes.Reader
			io.Closer
		}{bytes.NewReader([]byte(body)), io.NopCloser(nil)}, "text/plain"); err != nil {
			return "", err
		}
	}
	resp, err := pipeline.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = errToy
	}
	return string(answer), err
}

// Addresses of the toy.
const (
	toyRows  = "http://toy.table.test/Rows(PartitionKey='p',RowKey='"
	toyQueue = "http://toy.queue.test/intents/messages"
)

func row(name string) string { return toyRows + name + "')" }

func put(ctx context.Context, s *storagetest.Service, name, value string) error {
	_, err := call(ctx, s, http.MethodPut, row(name), value)
	return err
}

func get(ctx context.Context, s *storagetest.Service, name string) (string, error) {
	return call(ctx, s, http.MethodGet, row(name), "")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
