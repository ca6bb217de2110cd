package harness

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// LateRequest is a fault: the client gets a connection reset, but the request arrives later.
type LateRequest struct {
	// Network sends the late request. It must not be the transport of a schedule, which would hold the request forever.
	Network policy.Transporter
	After   time.Duration
	// Until is the time after which the request is lost instead. Set it where real time passes and a process can be
	// stopped: leases do not cover a request that is delayed by more than their margin. 0 means never.
	Until time.Duration
}

// String names the fault.
func (LateRequest) String() string { return "Late" }

// Meet implements storagetest.Fault.
func (l LateRequest) Meet(_ storagetest.Call, req *http.Request, _ storagetest.Send) (*http.Response, error) {
	again, err := copyOf(req)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	go func() {
		time.Sleep(l.After)
		if l.Until > 0 && time.Since(began) > l.Until {
			return
		}
		if resp, err := l.Network.Do(again); err == nil {
			resp.Body.Close()
		}
	}()
	return nil, connectionReset()
}

// HeldRequest is a fault: the client gets a connection reset, and the request arrives when the test calls
// Arrive.
type HeldRequest struct {
	Network policy.Transporter // sends the request when the test calls Arrive
	held    *http.Request
}

// String names the fault.
func (*HeldRequest) String() string { return "Held" }

// Meet implements storagetest.Fault.
func (h *HeldRequest) Meet(_ storagetest.Call, req *http.Request, _ storagetest.Send) (_ *http.Response, err error) {
	if h.held, err = copyOf(req); err != nil {
		return nil, err
	}
	return nil, connectionReset()
}

// Arrive sends the request and returns the status of its response, 0 if there is none.
func (h *HeldRequest) Arrive() int {
	network := h.Network
	if network == nil {
		network = http.DefaultClient // the transport of an account that is no emulator
	}
	resp, err := network.Do(h.held)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// copyOf returns the request with a body of its own, because the SDK may send the original again meanwhile.
func copyOf(req *http.Request) (*http.Request, error) {
	again := req.Clone(context.WithoutCancel(req.Context()))
	if req.Body == nil {
		return again, nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req.Body.Close()
	again.Body = io.NopCloser(bytes.NewReader(body))
	return again, nil
}

func connectionReset() error {
	return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
}

// Damaged replaces texts in the responses that a client reads, to simulate stored data that no client of this
// module can write. The arguments are pairs of an old and a new text.
func Damaged(oldAndNew ...string) func(*azcore.ClientOptions) {
	replacer := strings.NewReplacer(oldAndNew...)
	return func(o *azcore.ClientOptions) {
		inner := o.Transport
		o.Transport = Transport(func(req *http.Request) (*http.Response, error) {
			resp, err := inner.Do(req)
			if err != nil || resp.Body == nil {
				return resp, err
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close() // the body was read completely
			if err != nil {
				return nil, err
			}
			text := replacer.Replace(string(body))
			resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader([]byte(text))), int64(len(text))
			resp.Header.Del("Content-Length")
			return resp, nil
		})
	}
}

// Recorder is a transport that records every request that got a response, with its body.
type Recorder struct {
	Transport policy.Transporter
	mu        sync.Mutex
	requests  []Recorded
}

// Recorded is a request as it was sent, with its signature.
type Recorded struct {
	Method, URL string
	Header      http.Header
	Body        []byte
}

// Do implements the SDK's Transporter.
func (r *Recorder) Do(req *http.Request) (*http.Response, error) {
	kept := Recorded{Method: req.Method, URL: req.URL.String(), Header: req.Header.Clone()}
	if req.Body != nil {
		var err error
		if kept.Body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(bytes.NewReader(kept.Body))
	}
	resp, err := r.Transport.Do(req)
	if err == nil {
		r.mu.Lock()
		r.requests = append(r.requests, kept)
		r.mu.Unlock()
	}
	return resp, err
}

// Take returns the requests since the last call.
func (r *Recorder) Take() []Recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.requests
	r.requests = nil
	return taken
}

// Replay sends requests again over plain HTTP, as fast as the server accepts them, and passes each with its response to check. Signatures
// are valid for some minutes; the signature of a transaction does not cover the body.
func Replay(b testing.TB, transport policy.Transporter, requests []Recorded, concurrency int, check func(r *Recorded, status int, answer []byte)) {
	b.Helper()
	work := make(chan *Recorded)
	var running sync.WaitGroup
	for range concurrency {
		running.Go(func() {
			for r := range work {
				status, answer, err := r.send(transport)
				for attempt := 0; err != nil && attempt < 3; attempt++ { // try again, since Azurite closes connections now and then
					status, answer, err = r.send(transport)
				}
				if err != nil {
					b.Error(err)
					continue
				}
				check(r, status, answer)
			}
		})
	}
	for i := range requests {
		work <- &requests[i]
	}
	close(work)
	running.Wait()
}

func (r *Recorded) send(transport policy.Transporter) (status int, answer []byte, err error) {
	req, err := http.NewRequest(r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return 0, nil, err
	}
	req.Header = r.Header
	resp, err := transport.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// BareTransport sends requests to the test's service without the checks of Azure's rules. These would add the
// same cost to both sides of a comparison and make their ratio smaller.
func BareTransport(b testing.TB) policy.Transporter {
	b.Helper()
	if s := storagetest.Open(b); s.Clock != nil {
		return s.ClientOptions.Transport
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	b.Cleanup(client.CloseIdleConnections)
	return client
}

// Cosmos returns a table of Azure Cosmos DB that answers queries in the given order of keys, in pages of 3 rows.
func Cosmos(t testing.TB, keys []tables.Key) *tables.Table {
	t.Helper()
	answer := Transport(func(req *http.Request) (*http.Response, error) {
		asked := req.URL.Query()
		var rows []string
		for _, k := range keys {
			if filter := asked.Get("$filter"); filter == "" || strings.Contains(filter, "PartitionKey eq '"+k.Partition+"'") {
				rows = append(rows, fmt.Sprintf(`{"odata.etag":"W/\"1\"","PartitionKey":%q,"RowKey":%q}`, k.Partition, k.Row))
			}
		}
		from, _ := strconv.Atoi(asked.Get("NextPartitionKey"))
		if rows = rows[from:]; len(rows) <= 3 {
			return Reply(req, http.StatusOK, `{"value":[`+strings.Join(rows, ",")+`]}`), nil
		}
		return Reply(req, http.StatusOK, `{"value":[`+strings.Join(rows[:3], ",")+`]}`, "X-Ms-Continuation-Nextpartitionkey", strconv.Itoa(from+3)), nil
	})
	return assert.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(tables.Endpoints{Table: "https://contoso.table.cosmos.azure.com"}, "contoso", "a2V5",
		&tables.AccountOptions{ClientOptions: azcore.ClientOptions{Transport: answer}})).Table("Events")
}
