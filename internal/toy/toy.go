// Package toy is a service of a few lines, behind the SDK's pipeline like a real one: tests of what meets requests on their way
// need no simulator to be right. Only tests import it.
package toy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
)

// Addresses of the toy.
const (
	TableEndpoint = "http://toy.table.test"
	QueueEndpoint = "http://toy.queue.test"
	Queue         = QueueEndpoint + "/intents/messages"
)

// Row is the address of a row.
func Row(name string) string {
	return TableEndpoint + "/Rows(PartitionKey='p',RowKey='" + name + "')"
}

// ErrRefused is the error of Call for an answer with an error status.
var ErrRefused = errors.New("refused")

// Toy has one value for each address.
type Toy struct {
	mu   sync.Mutex
	rows map[string]string
	log  []string
}

// New returns a toy without values.
func New() *Toy { return &Toy{rows: map[string]string{}} }

// Do implements policy.Transporter.
func (t *Toy) Do(req *http.Request) (*http.Response, error) {
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

// Rows returns a copy of the values.
func (t *Toy) Rows() map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.rows)
}

// Log returns method and path of each request that has arrived.
func (t *Toy) Log() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.log
}

// Call makes one request with these client options.
func Call(ctx context.Context, o *azcore.ClientOptions, method, address, body string) (string, error) {
	req, err := runtime.NewRequest(ctx, method, address)
	if err != nil {
		return "", err
	}
	if body != "" {
		if err := req.SetBody(streaming.NopCloser(bytes.NewReader([]byte(body))), "text/plain"); err != nil {
			return "", err
		}
	}
	resp, err := runtime.NewPipeline("toy", "v1", runtime.PipelineOptions{}, o).Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = ErrRefused
	}
	return string(answer), err
}
