package harness

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/storagetest"
)

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
